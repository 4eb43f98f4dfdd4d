package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Direct AllToAll. Every rank sends every other its block at once.
//
//	steps            1 message in a row
//	sent by rank r   all blocks, of any length, but the one for itself
//	scratch          what half of the other ranks send
//	order            nothing is folded
//
// The default up to a few tens of ranks. Rank r begins with rank r + 1, so that not
// all send to the same one first.
//
// Input and output may be the same memory. Of two ranks that exchange blocks, one sends its own
// and then receives into the same place, so the other must receive into scratch before its own
// block is sent. That one is the rank with the shorter way up to the other, so that each rank
// receives half of the blocks into scratch.
//
// Folklore; the staging is this project's.
func allToAllDirect() *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: program.AllToAll,
		Summary:  "every rank sends every other its block at once",
		Generate: generateAllToAllDirect, Cost: allToAllSends,
	}
}

// exchangeAll begins a rank's part in an AllToAll with the block for itself.
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
			staged := program.Chunk(program.Scratch, p.room(chunk(peer)), peer)
			p.recv(lane, staged)
			p.copy(lane, out, staged, sent)
		} else {
			p.recv(lane, out, sent)
		}
	}
	return p.Program
}

// allToAllSends returns the cost of sending every block directly to its destination, all at
// once.
func allToAllSends(pr Params) program.Cost {
	return program.Cost{Steps: min(1, pr.P-1), Sent: func(rank int, l program.Layout) int {
		return l.In[pr.P] - l.Len(program.Ref{Buffer: program.In, Chunks: sharding.Range{Lo: rank, Hi: rank + 1}})
	}}
}
