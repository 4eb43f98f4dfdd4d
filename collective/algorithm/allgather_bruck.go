package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Bruck AllGather. After round k each rank has the blocks of 2^(k+1) ranks from its own on. In
// a round it sends the blocks that it has to the rank 2^k before it, and receives as many from
// the rank 2^k after it; in the last round, only those that are missing.
//
//	steps            ⌈log2 p⌉ messages in a row, and one more if p is a power of two
//	                 from 4 on: a message in two pieces is then the last of a chain
//	sent by rank r   for even blocks (p − 1)·n/p, which no algorithm betters
//	scratch          none: blocks, of any length, arrive where they belong, and need
//	                 no rotation in the end; a range of ranks that goes past rank
//	                 p − 1 to rank 0 takes two messages for that
//	order            nothing is folded
//
// For small blocks and any number of ranks.
//
// Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport
// Message-Passing Systems" (IEEE Trans. Parallel Distrib. Syst. 8, 1997): concatenation.
func allGatherBruck() *Algorithm {
	return &Algorithm{
		Name: "bruck", Collective: program.AllGather,
		Summary:  "ranks send all they have to distances 1, 2, 4, and so on",
		Generate: generateAllGatherBruck, Cost: allGatherBruckCost,
	}
}

// circular divides n numbers from lo on, modulo p, into ranges: one, or two if they go past p −
// 1. 0 < n ≤ p.
func circular(lo, n, p int) []sharding.Range {
	if lo+n <= p {
		return []sharding.Range{{Lo: lo, Hi: lo + n}}
	}
	return []sharding.Range{{Lo: lo, Hi: p}, {Lo: 0, Hi: lo + n - p}}
}

// held is a range of output chunks and the instruction that filled it.
type held struct {
	chunks sharding.Range
	by     program.Dep
}

// fillers returns the instructions that filled chunks of r.
func fillers(have []held, r sharding.Range) []program.Dep {
	var by []program.Dep
	for _, h := range have {
		if !h.chunks.Intersect(r).Empty() {
			by = append(by, h.by)
		}
	}
	return by
}

func generateAllGatherBruck(pr Params, rank int) *program.Program {
	p := newPart(program.AllGather, "bruck", pr, rank, pr.P)
	p.In = chunk(rank)
	own, place := program.Chunk(program.In, 0, rank), program.Chunk(program.Out, 0, rank)
	if pr.P == 1 {
		p.copy(p.local(), place, own)
		return p.Program
	}
	var have []held
	for d := 1; d < pr.P; d *= 2 {
		n := min(d, pr.P-d)
		from := (rank + d) % pr.P
		lane := p.lane((rank-d+pr.P)%pr.P, from)
		if d == 1 {
			sent := p.send(lane, own)
			have = append(have, held{chunk(rank), p.copy(p.local(), place, own, sent)})
		} else {
			for _, r := range circular(rank, n, pr.P) {
				p.send(lane, spanOf(program.Out, 0, r), fillers(have, r)...)
			}
		}
		for _, r := range circular(from, n, pr.P) {
			have = append(have, held{r, p.recv(lane, spanOf(program.Out, 0, r))})
		}
	}
	return p.Program
}

func allGatherBruckCost(pr Params) program.Cost {
	steps := bits.Len(uint(pr.P))
	if pr.P <= 2 {
		steps = pr.P - 1
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int {
		sent := 0
		for d := 1; d < pr.P; d *= 2 {
			for _, r := range circular(rank, min(d, pr.P-d), pr.P) {
				sent += length(l, r)
			}
		}
		return sent
	}}
}
