package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Linear Scatter. The root sends every rank its block.
//
//	steps            1 message in a row
//	sent by rank r   all blocks except its own by the root; nothing by other ranks
//	scratch          none: blocks, of any length, are received into their place
//	order            nothing is folded
//
// Use it for large blocks, since each block is sent once, and for few ranks, since the root
// sends p − 1 messages.
//
// Reference: folklore.
func scatterLinear() *Algorithm {
	return &Algorithm{
		Name: "linear", Collective: program.Scatter,
		Summary:  "the root sends every rank its block",
		Generate: generateScatterLinear, Cost: scatterLinearCost,
	}
}

func generateScatterLinear(pr Params, rank int) *program.Program {
	p := newPart(program.Scatter, "linear", pr, rank, pr.P)
	p.Out = chunk(rank)
	if rank != pr.Root {
		p.In.Hi = 0
		p.recv(p.lane(program.NoPeer, pr.Root), program.Chunk(program.Out, 0, rank))
		return p.Program
	}
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		p.send(p.lane(peer, program.NoPeer), program.Chunk(program.In, 0, peer))
	}
	p.copy(p.local(), program.Chunk(program.Out, 0, rank), program.Chunk(program.In, 0, rank))
	return p.Program
}

func scatterLinearCost(pr Params) program.Cost {
	return program.Cost{Steps: min(1, pr.P-1), Sent: func(rank int, l program.Layout) int {
		if rank != pr.Root {
			return 0
		}
		return l.Out[pr.P] - length(l, chunk(rank))
	}}
}
