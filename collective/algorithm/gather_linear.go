package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Linear Gather. Every rank sends its block to the root.
//
//	steps            1 message in a row
//	sent by rank r   its block; nothing by the root
//	scratch          none: blocks, of any length, are received into their place
//	order            nothing is folded
//
// Use it for large blocks, since each block is sent once, and for few ranks, since the root
// receives p − 1 messages.
//
// Reference: folklore.
func gatherLinear() *Algorithm {
	return &Algorithm{
		Name: "linear", Collective: program.Gather,
		Summary:  "every rank sends its block to the root",
		Generate: generateGatherLinear, Cost: gatherLinearCost,
	}
}

func generateGatherLinear(pr Params, rank int) *program.Program {
	p := newPart(program.Gather, "linear", pr, rank, pr.P)
	p.In = chunk(rank)
	if rank != pr.Root {
		p.Out.Hi = 0
		p.send(p.lane(pr.Root, program.NoPeer), program.Chunk(program.In, 0, rank))
		return p.Program
	}
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		p.recv(p.lane(program.NoPeer, peer), program.Chunk(program.Out, 0, peer))
	}
	p.copy(p.local(), program.Chunk(program.Out, 0, rank), program.Chunk(program.In, 0, rank))
	return p.Program
}

func gatherLinearCost(pr Params) program.Cost {
	return program.Cost{Steps: min(1, pr.P-1), Sent: func(rank int, l program.Layout) int {
		if rank == pr.Root {
			return 0
		}
		return length(l, chunk(rank))
	}}
}
