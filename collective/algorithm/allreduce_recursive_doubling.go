package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
)

// Recursive doubling AllReduce. At distances 1, 2, 4…, two partners exchange their whole
// vectors, and each partner folds the received vector into its own, with the contribution of
// lower ranks as left operand. If p is not a power of two, the first 2r ranks fold in pairs
// before that, and the second rank of each pair gets the result afterwards. With q the largest
// power of two not above p, r = p − q:
//
//	steps            log2 q messages in a row; 1 more if r > 0, 2 if r > q/2
//	sent by rank r   n·log2 q elements; n more by the first rank of a pair; only n by the
//	                 second rank of a pair
//	scratch          n elements on the q ranks that exchange (none if p < 2)
//	order            the fold tree over ranks (canonical)
//
// Use it for vectors of a few KiB: it has the fewest steps, but sends the most elements.
//
// Since the two directions of an exchange overlap, a rank cannot write to the memory that it is
// sending. So levels alternate between the output and one scratch slot, and the last level ends
// in the output. If the number of levels is odd and the vector begins in the input, which may
// be the output's memory, the first level receives into scratch and folds afterwards.
//
// Reference: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH" (IJHPCA 19, 2005).
func recursiveDoubling() *Algorithm {
	return &Algorithm{
		Name: "recursive-doubling", Collective: program.AllReduce,
		Summary:   "exchange whole vectors at distance 1, 2, 4…: fewest steps, for short vectors",
		Canonical: Always, RankOrder: Always, Forests: OnePerRank,
		Generate: generateRecursiveDoubling, Cost: recursiveDoublingCost,
	}
}

// generateRecursiveDoubling makes the program of rank in time O(log p).
func generateRecursiveDoubling(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "recursive-doubling", pr, rank, 1)
	b.claim(true, true)
	if pr.P == 1 {
		return b.alone()
	}
	in, out := whole(program.In), whole(program.Out)
	f := foldRanks(pr.P)
	me, acts := f.member(rank)
	if !acts {
		lane := b.exchangeLane(rank - 1)
		b.send(lane, in)
		b.recv(lane, out)
		return b.finish()
	}
	aside := program.Chunk(program.Scratch, b.newSlot(chunk(0)), 0)
	other := map[bool]program.Ref{false: aside, true: out}

	present, toOut := in, f.levels%2 == 1 // toOut: the level's result goes to the output
	if f.paired(me) {
		present = other[!toOut]
		b.recvReduce(b.exchangeLane(rank+1), present, in, false)
	}
	for level := range f.levels {
		partner := me ^ 1<<level
		lane := b.exchangeLane(f.rank(partner))
		b.send(lane, present)
		if present == in && toOut {
			b.recv(lane, aside)
			operands := []program.Ref{in, aside}
			if partner < me {
				operands[0], operands[1] = aside, in
			}
			b.reduce(out, operands, oneFold)
		} else {
			b.recvReduce(lane, other[toOut], present, partner < me)
		}
		present, toOut = other[toOut], !toOut
	}
	if f.paired(me) {
		b.send(b.exchangeLane(rank+1), out)
	}
	return b.finish()
}

// recursiveDoublingCost returns the cost of recursive doubling. The longest chain of messages
// begins within a pair and continues to the member whose number has all bits inverted. If that
// member is a pair too, the chain ends with a message within that pair.
func recursiveDoublingCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	f := foldRanks(pr.P)
	steps := f.levels
	if f.pairs > 0 {
		steps++
	}
	if 2*f.pairs > f.members {
		steps++
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int {
		times := f.levels
		if rank < 2*f.pairs {
			times = []int{f.levels + 1, 1}[rank%2]
		}
		return times * l.Out[1]
	}}
}
