package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Ring AllGather. Every rank sends its block to the next rank, and passes on each block that it
// receives, except the last one, which the next rank already has.
//
//	steps            p − 1 messages in a row
//	sent by rank r   all blocks except the block of rank r + 1: (p − 1)·n/p for even blocks,
//	                 the minimum of all algorithms
//	scratch          none: blocks, of any length, are received into their place
//	order            nothing is folded
//
// Use it for large blocks, if simultaneous messages from many ranks to one rank would congest
// the network: each rank has only two neighbours.
//
// Reference: the bucket algorithm of Barnett et al., "Interprocessor Collective Communication
// Library" (SHPCC 1994).
func allGatherRing() *Algorithm {
	return &Algorithm{
		Name: "ring", Collective: program.AllGather,
		Summary:  "blocks go around from neighbour to neighbour",
		Generate: generateAllGatherRing, Cost: allGatherRingCost,
	}
}

func generateAllGatherRing(pr Params, rank int) *program.Program {
	p := newPart(program.AllGather, "ring", pr, rank, pr.P)
	p.In = chunk(rank)
	own, place := program.Chunk(program.In, 0, rank), program.Chunk(program.Out, 0, rank)
	if pr.P == 1 {
		p.copy(p.local(), place, own)
		return p.Program
	}
	lane := p.lane((rank+1)%pr.P, (rank-1+pr.P)%pr.P)
	sent := p.send(lane, own)
	for k := 1; k < pr.P-1; k++ {
		p.add(lane, program.Instruction{Op: program.DoRecvCopySend,
			Dst: program.Chunk(program.Out, 0, (rank-k+pr.P)%pr.P)}, nil)
	}
	p.recv(lane, program.Chunk(program.Out, 0, (rank+1)%pr.P))
	p.copy(p.local(), place, own, sent)
	return p.Program
}

func allGatherRingCost(pr Params) program.Cost {
	return program.Cost{Steps: pr.P - 1, Sent: func(rank int, l program.Layout) int {
		return l.Out[pr.P] - length(l, chunk((rank+1)%pr.P))
	}}
}
