package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Binomial AllReduce: a reduction up a binomial tree rooted at rank 0 and a
// broadcast down the same tree. With d the lowest set bit of a rank's number, its
// parent is the rank without that bit, its children those with a lower bit added.
//
//	steps            2·⌊log2 p⌋ messages in a row (at rank 0 ⌈log2 p⌉ come in, and as
//	                 many go out, over one link)
//	sent by rank r   n elements to each child, and n to the parent
//	scratch          none
//	order            the aligned tree over ranks; it is the fold tree over ranks
//	                 (canonical) if p is 1…10…0 in binary, as all powers of two are
//
// For short vectors; every rank has few connections. Recursive doubling takes half the steps,
// but more messages in total. Segments of long vectors follow each other up and down, but rank
// 0 carries n·log2 p elements each way, so other trees are better for them.
//
// Reference: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH" (IJHPCA 19, 2005).
func binomialAllReduce() *Algorithm {
	return &Algorithm{
		Name: "binomial", Collective: program.AllReduce,
		Summary:   "reduce up a binomial tree, broadcast down: few messages, for short vectors",
		Canonical: alignedIsCanonical, RankOrder: Always, Forests: OnePerRank, Check: alignedForest,
		Generate: generateBinomialAllReduce, Cost: binomialAllReduceCost,
	}
}

// generateBinomialAllReduce makes rank's part in time O(log p).
func generateBinomialAllReduce(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "binomial", pr, rank, 1)
	b.claim(alignedIsCanonical(pr.P), true)
	if pr.P == 1 {
		return b.alone()
	}
	in, out := whole(program.In), whole(program.Out)
	children := 0
	for children < bits.Len(uint(pr.P-1-rank)) && rank>>children&1 == 0 {
		children++
	}
	// Lanes begin with the largest subtree, which should get the result first.
	for i := children - 1; i >= 0; i-- {
		b.with(rank + 1<<i)
	}
	has := in
	for i := range children {
		b.recvReduce(b.with(rank+1<<i), out, has, false)
		has = out
	}
	if rank > 0 {
		parent := b.with(rank & (rank - 1))
		b.send(parent, has)
		b.recv(parent, out)
	}
	for i := children - 1; i >= 0; i-- {
		b.send(b.with(rank+1<<i), out)
	}
	return b.finish()
}

// binomialAllReduceCost: the deepest rank has the most set bits of all numbers below p.
func binomialAllReduceCost(pr Params) program.Cost {
	p := pr.P
	return program.Cost{Steps: 2 * (bits.Len(uint(p)) - 1), Sent: func(rank int, l program.Layout) int {
		free := bits.TrailingZeros(uint(rank)) // bits that a child may add
		if rank == 0 {
			free = bits.Len(uint(p - 1))
		}
		edges := min(free, bits.Len(uint(p-1-rank)))
		if rank > 0 {
			edges++
		}
		return edges * l.Out[1]
	}}
}
