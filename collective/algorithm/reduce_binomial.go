package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Binomial Reduce. This is the binomial Broadcast in reverse: each rank folds the results of
// its children, the nearest child first, and sends its result to its parent.
//
//	steps            ⌊log2 p⌋ messages in a row for root 0, at most ⌈log2 p⌉ for
//	                 other roots
//	sent by rank r   n elements; nothing by the root
//	scratch          n elements on ranks with children, except the root
//	order            the fold tree over ranks (canonical) for every root, since the
//	                 halves of the tree do not depend on the root
//
// Use it for short data and many ranks. With long data, the root would receive log p messages
// of n elements one after another.
//
// Reference: folklore. This project keeps the same order for every root, with subtrees of
// contiguous ranks (see gather_tree.go). Other libraries rotate the ranks by the root, which
// changes the bits of the result, or let rank 0 send the result to the root.
func reduceBinomial() *Algorithm {
	return &Algorithm{
		Name: "binomial", Collective: program.Reduce,
		Summary:   "ranks that still have something to fold halve in every round",
		Canonical: Always, RankOrder: Always, Forests: OnePerRank,
		Generate: generateReduceBinomial, Cost: reduceBinomialCost,
	}
}

func generateReduceBinomial(pr Params, rank int) *program.Program {
	p := newPart(program.Reduce, "binomial", pr, rank, 1)
	p.CanonicalTree, p.RankOrder = true, true
	at := treeOf(pr.P, pr.Root, rank)
	have, sum := whole(program.In), whole(program.Out)
	if rank != pr.Root {
		p.Out.Hi = 0
		if len(at.children) > 0 {
			sum = program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		}
	}
	var done []program.Dep
	for i := len(at.children) - 1; i >= 0; i-- {
		c := at.children[i]
		step := p.recvReduce(p.lane(program.NoPeer, c.rank), sum, have, c.rank < rank, done)
		have, done = sum, []program.Dep{step}
	}
	switch {
	case rank != pr.Root:
		p.send(p.lane(at.parent, program.NoPeer), have, done...)
	case pr.P == 1:
		p.copy(p.local(), whole(program.Out), whole(program.In))
	}
	return p.Program
}

func reduceBinomialCost(pr Params) program.Cost {
	return program.Cost{Steps: treeSteps(pr.P, pr.Root), Sent: func(rank int, l program.Layout) int {
		if rank == pr.Root {
			return 0
		}
		return l.Out[1]
	}}
}
