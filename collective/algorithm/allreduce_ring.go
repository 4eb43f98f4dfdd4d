package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Ring AllReduce. Chunk c starts at rank c + 1 and travels once around the ring to rank c,
// which owns it. On the way, each rank folds its own contribution into the chunk. Then the
// result travels around the ring once more.
//
//	steps            2·(p − 1) messages in a row
//	sent by rank r   2·n·(p−1)/p elements if p divides n; in general
//	                 2·n − c(r) − c(r + 1), where c(r) is the length of chunk r
//	scratch          none
//	order            different for every chunk: ranks c + 1, …, p − 1, then 0 as left
//	                 operand, then 1, …, c. So results depend on how the data is
//	                 divided into chunks (rank order and canonical for p ≤ 2 only)
//
// Use it for long vectors among many ranks, if only links between neighbours can be used, or if
// p is not a power of two and too large for the direct exchange. Each rank needs only two
// connections.
//
// Reference: Patarasu, Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
// Workstations" (JPDC 69, 2009). Unlike in the reference, rank c owns chunk c, as in a
// ReduceScatter.
func ringAllReduce() *Algorithm {
	return &Algorithm{
		Name: "ring", Collective: program.AllReduce,
		Summary:   "every chunk travels twice around a ring: for long vectors on neighbour links",
		Canonical: atMostTwo, RankOrder: atMostTwo,
		Generate: generateRingAllReduce, Cost: ringAllReduceCost,
	}
}

func atMostTwo(p int) bool { return p <= 2 }

// generateRingAllReduce makes the program of rank in time O(p). There is one lane. In step i <
// p, the rank passes on chunk rank − 1 − i. The result of a chunk is received p − 1 steps after
// its partial sum was sent from the same memory, and must wait until the sum is sent.
func generateRingAllReduce(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "ring", pr, rank, pr.P)
	b.claim(atMostTwo(pr.P), atMostTwo(pr.P))
	if pr.P == 1 {
		return b.alone()
	}
	p := pr.P
	steps := make([]program.Instruction, 0, 2*p-1)
	own := make([]program.Ref, p) // operands, allocated together
	sent := make([]program.Dep, p)
	c := rank
	back := func() int { // returns the next chunk in the order of passing
		if c--; c < 0 {
			c = p - 1
		}
		return c
	}
	for i := range p {
		own[i] = program.Chunk(program.In, 0, back())
		in := program.Instruction{Op: program.DoRecvReduceSend, Src: own[i : i+1 : i+1]}
		in.Dst, in.RecvLeft = program.Chunk(program.Out, 0, c), rank > 0
		if i == 0 {
			in = program.Instruction{Op: program.DoSend, Src: in.Src}
		}
		steps = append(steps, in)
	}
	for i := range p - 1 {
		sent[i] = program.Dep{Lane: 0, Step: i}
		in := program.Instruction{Op: program.DoRecvCopySend, Dst: program.Chunk(program.Out, 0, back()), After: sent[i : i+1 : i+1]}
		if i == p-2 {
			in.Op = program.DoRecv
		}
		steps = append(steps, in)
	}
	b.Lanes = []program.Lane{{SendPeer: (rank + 1) % p, RecvPeer: (rank + p - 1) % p, Steps: steps}}
	return b.Program
}

func ringAllReduceCost(pr Params) program.Cost {
	p := pr.P
	return program.Cost{Steps: 2 * (p - 1), Sent: func(rank int, l program.Layout) int {
		if p == 1 {
			return 0
		}
		own, next := sharding.Range{Lo: rank, Hi: rank + 1}, (rank+1)%p
		return 2*l.Out[p] - length(l, own) - (l.Out[next+1] - l.Out[next])
	}}
}
