package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Direct AllGather. Every rank sends its block to every other rank.
//
//	steps            1 message in a row
//	sent by rank r   its block p − 1 times: (p − 1)·n/p for even blocks, the minimum
//	                 of all algorithms
//	scratch          none: blocks, of any length, are received into their place
//	order            nothing is folded
//
// It is the best choice on a flat network up to a few tens of ranks. For more ranks, the
// overhead of p − 1 messages costs more than their bytes. Rank r first sends to rank r + 1, so
// that not all ranks send to the same rank first.
//
// Reference: folklore.
func allGatherDirect() *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: program.AllGather,
		Summary:  "every rank sends its block to every other",
		Generate: generateAllGatherDirect, Cost: allGatherDirectCost,
	}
}

func generateAllGatherDirect(pr Params, rank int) *program.Program {
	p := newPart(program.AllGather, "direct", pr, rank, pr.P)
	p.In = chunk(rank)
	own := program.Chunk(program.In, 0, rank)
	var sent []program.Dep
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		lane := p.lane(peer, peer)
		sent = append(sent, p.send(lane, own))
		p.recv(lane, program.Chunk(program.Out, 0, peer))
	}
	p.copy(p.local(), program.Chunk(program.Out, 0, rank), own, sent...)
	return p.Program
}

func allGatherDirectCost(pr Params) program.Cost {
	return program.Cost{Steps: min(1, pr.P-1), Sent: func(rank int, l program.Layout) int {
		return (pr.P - 1) * length(l, chunk(rank))
	}}
}
