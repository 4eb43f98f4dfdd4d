package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Binomial AllReduce: a reduction up a binomial tree rooted at rank 0 and a broadcast down the
// same tree. Let d be the lowest set bit of a rank's number. The number of its parent is this
// number without bit d. The numbers of its children are this number with one bit below d added.
//
//	steps            2·⌊log2 p⌋ messages in a row (rank 0 receives ⌈log2 p⌉ and sends
//	                 ⌈log2 p⌉ over one link)
//	sent by rank r   n elements to each child, and n to the parent
//	scratch          none
//	order            the aligned tree over ranks; it is the fold tree over ranks
//	                 (canonical) if p is 1…10…0 in binary, as all powers of two are
//
// Use it for short vectors. Every rank has few connections. Recursive doubling takes half as
// many steps, but more messages in total. Long vectors are pipelined in segments up and down
// the tree. But rank 0 receives and sends n·log2 p elements, so other trees are better for long
// vectors.
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

// generateBinomialAllReduce makes the program of rank in time O(log p).
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
		b.exchangeLane(rank + 1<<i)
	}
	present := in
	for i := range children {
		b.recvReduce(b.exchangeLane(rank+1<<i), out, present, false)
		present = out
	}
	if rank > 0 {
		parent := b.exchangeLane(rank & (rank - 1))
		b.send(parent, present)
		b.recv(parent, out)
	}
	for i := children - 1; i >= 0; i-- {
		b.send(b.exchangeLane(rank+1<<i), out)
	}
	return b.finish()
}

// binomialAllReduceCost returns the cost of the binomial AllReduce. The depth of a rank in the
// tree is the number of set bits of its rank number, and is at most ⌊log2 p⌋.
func binomialAllReduceCost(pr Params) program.Cost {
	p := pr.P
	return program.Cost{Steps: 2 * (bits.Len(uint(p)) - 1), Sent: func(rank int, l program.Layout) int {
		free := bits.TrailingZeros(uint(rank)) // number of bits that a child may add
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
