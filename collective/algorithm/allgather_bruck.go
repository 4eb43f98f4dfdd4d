package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Bruck AllGather. After round k each rank has its own block and the blocks of the next 2^(k+1)
// − 1 ranks. In round k, rank r sends all blocks that it has to rank r − 2^k (modulo p), and
// receives the same number of blocks from rank r + 2^k. In the last round, only the missing
// blocks are sent.
//
//	steps            ⌈log2 p⌉ messages in a row, and one more if p is a power of two
//	                 above 2, because the longest chain then ends with a range that takes
//	                 two messages
//	sent by rank r   for even blocks (p − 1)·n/p, the minimum of all algorithms
//	scratch          none: blocks, of any length, are received into their place in
//	                 the output and need no rotation; for that, a range of ranks
//	                 that goes past rank p − 1 to rank 0 takes two messages
//	order            nothing is folded
//
// Use it for small blocks and any number of ranks.
//
// Reference: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport
// Message-Passing Systems" (IEEE Trans. Parallel Distrib. Syst. 8, 1997): concatenation.
func allGatherBruck() *Algorithm {
	return &Algorithm{
		Name: "bruck", Collective: program.AllGather,
		Summary:  "ranks send all they have to distances 1, 2, 4, and so on",
		Generate: generateAllGatherBruck, Cost: allGatherBruckCost,
	}
}

// circular returns the n numbers lo, lo + 1, …, modulo p, as ranges: one range, or two if the
// numbers go past p − 1. 1 ≤ n ≤ p.
func circular(lo, n, p int) []sharding.Range {
	if lo+n <= p {
		return []sharding.Range{{Lo: lo, Hi: lo + n}}
	}
	return []sharding.Range{{Lo: lo, Hi: p}, {Lo: 0, Hi: lo + n - p}}
}

// arrival is a range of output chunks and the instruction that filled it.
type arrival struct {
	chunks sharding.Range
	dep    program.Dep
}

// writers returns the instructions that filled the chunks in r.
func writers(arrivals []arrival, r sharding.Range) []program.Dep {
	var deps []program.Dep
	for _, h := range arrivals {
		if !h.chunks.Intersect(r).Empty() {
			deps = append(deps, h.dep)
		}
	}
	return deps
}

func generateAllGatherBruck(pr Params, rank int) *program.Program {
	p := newPart(program.AllGather, "bruck", pr, rank, pr.P)
	p.In = chunk(rank)
	own, place := program.Chunk(program.In, 0, rank), program.Chunk(program.Out, 0, rank)
	if pr.P == 1 {
		p.copy(p.local(), place, own)
		return p.Program
	}
	var have []arrival
	for d := 1; d < pr.P; d *= 2 {
		n := min(d, pr.P-d)
		from := (rank + d) % pr.P
		lane := p.lane((rank-d+pr.P)%pr.P, from)
		if d == 1 {
			sent := p.send(lane, own)
			have = append(have, arrival{chunk(rank), p.copy(p.local(), place, own, sent)})
		} else {
			for _, r := range circular(rank, n, pr.P) {
				p.send(lane, spanOf(program.Out, 0, r), writers(have, r)...)
			}
		}
		for _, r := range circular(from, n, pr.P) {
			have = append(have, arrival{r, p.recv(lane, spanOf(program.Out, 0, r))})
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
