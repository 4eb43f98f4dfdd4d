package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Ring ReduceScatter. Chunk c starts at rank c + 1 and travels once around the ring to rank c.
// On the way, each rank folds its own contribution into the chunk.
//
//	steps            p − 1 messages in a row
//	sent by rank r   n − c elements, where c is the length of chunk r
//	scratch          n elements (none if p < 3)
//	order            different for every chunk: ranks c + 1, …, p − 1, then 0 as left
//	                 operand, then 1, …, c (rank order and canonical for p ≤ 2 only)
//
// Use it for long vectors among many ranks, if only links between neighbours can be used. It
// folds in the same order as the ring AllReduce.
//
// Reference: Patarasu, Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters
// of Workstations" (JPDC 69, 2009).
func ringReduceScatter() *Algorithm {
	return &Algorithm{
		Name: "ring", Collective: program.ReduceScatter,
		Summary:   "every chunk travels once around a ring: for long vectors on neighbour links",
		Canonical: atMostTwo, RankOrder: atMostTwo,
		Generate: generateRingReduceScatter, Cost: ringReduceScatterCost,
	}
}

// generateRingReduceScatter makes the program of rank in time O(p).
func generateRingReduceScatter(pr Params, rank int) *program.Program {
	b := build(program.ReduceScatter, "ring", pr, rank, pr.P)
	b.claim(atMostTwo(pr.P), atMostTwo(pr.P))
	b.Out = chunk(rank)
	p := pr.P
	if p == 1 {
		return b.alone()
	}
	partial := 0
	if p > 2 {
		partial = b.newSlot(sharding.Range{Lo: 0, Hi: p})
	}
	steps := make([]program.Instruction, p)
	own := make([]program.Ref, p) // operands, allocated together
	for i := range steps {
		c := (rank - 1 - i + p) % p
		own[i] = program.Chunk(program.In, 0, c)
		in := program.Instruction{Op: program.DoRecvReduceSend, Src: own[i : i+1 : i+1]}
		switch i {
		case 0:
			in.Op = program.DoSend
		case p - 1:
			in.Op, in.Dst, in.RecvLeft = program.DoRecvReduce, program.Chunk(program.Out, 0, c), rank > 0
		default:
			in.Dst, in.RecvLeft = program.Chunk(program.Scratch, partial, c), rank > 0
		}
		steps[i] = in
	}
	b.Lanes = []program.Lane{{SendPeer: (rank + 1) % p, RecvPeer: (rank + p - 1) % p, Steps: steps}}
	return b.Program
}

func ringReduceScatterCost(pr Params) program.Cost {
	return program.Cost{Steps: pr.P - 1, Sent: func(rank int, l program.Layout) int {
		return l.Out[pr.P] - length(l, chunk(rank))
	}}
}
