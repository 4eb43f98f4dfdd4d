package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Direct AllToAll. Every rank sends to every other rank the block for that rank, all at the
// same time.
//
//	steps            1 message in a row
//	sent by rank r   all blocks, of any length, except the block for itself
//	scratch          the blocks from half of the other ranks
//	order            nothing is folded
//
// It is the best choice up to a few tens of ranks. Rank r first sends to rank r + 1, so that
// not all ranks send to the same rank first.
//
// Input and output may be the same memory. Of two ranks a and b that exchange blocks, one first
// sends its block and then receives into the memory of that block. So the other rank must
// receive into scratch before it has sent its own block. That is rank a if (b − a) mod p < (a −
// b) mod p, or if both are equal and a < b. So each rank receives half of the blocks into
// scratch.
//
// Reference: folklore. The receives into scratch were added in this project.
func allToAllDirect() *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: program.AllToAll,
		Summary:  "every rank sends every other its block at once",
		Generate: generateAllToAllDirect, Cost: allToAllSends,
	}
}

// exchangeAll begins the program of a rank in an AllToAll with the copy of the rank's block for
// itself.
func exchangeAll(name string, pr Params, rank int) partOf {
	p := newPart(program.AllToAll, name, pr, rank, pr.P)
	p.copy(p.local(), program.Chunk(program.Out, 0, rank), program.Chunk(program.In, 0, rank))
	return p
}

func generateAllToAllDirect(pr Params, rank int) *program.Program {
	p := exchangeAll("direct", pr, rank)
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		lane := p.lane(peer, peer)
		sent := p.send(lane, program.Chunk(program.In, 0, peer))
		out := program.Chunk(program.Out, 0, peer)
		if 2*k < pr.P || 2*k == pr.P && rank < peer {
			staged := program.Chunk(program.Scratch, p.newSlot(chunk(peer)), peer)
			p.recv(lane, staged)
			p.copy(lane, out, staged, sent)
		} else {
			p.recv(lane, out, sent)
		}
	}
	return p.Program
}

// allToAllSends returns the cost of an AllToAll that sends every block directly to its
// destination, all at the same time.
func allToAllSends(pr Params) program.Cost {
	return program.Cost{Steps: min(1, pr.P-1), Sent: func(rank int, l program.Layout) int {
		return l.In[pr.P] - l.Len(program.Ref{Buffer: program.In, Chunks: sharding.Range{Lo: rank, Hi: rank + 1}})
	}}
}
