package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
)

// Binomial Broadcast. The ranks are divided into two halves. The root sends the data to a rank
// of the other half, which becomes the root of that half. Both roots do the same within their
// halves, and so on: after round k, 2^k ranks have the data. The tree is described in
// gather_tree.go.
//
//	steps            ⌊log2 p⌋ messages in a row for root 0, at most ⌈log2 p⌉ for
//	                 other roots; the messages of a rank do not wait for each
//	                 other, but share its link; those to larger halves are first
//	sent by rank r   n elements to each of its children: ⌊log2 p⌋·n or ⌈log2 p⌉·n by
//	                 the root, nothing by half of the ranks
//	scratch          none
//	order            nothing is folded
//
// It has the fewest rounds, so it is best for short data. The root's link carries the whole
// data log p times, which is slow for long data.
//
// Reference: folklore. It is analysed as the one-to-all broadcast of Johnsson and Ho, "Optimum
// Broadcasting and Personalized Communication in Hypercubes" (IEEE Trans. Computers 38, 1989).
func broadcastBinomial() *Algorithm {
	return &Algorithm{
		Name: "binomial", Collective: program.Broadcast,
		Summary:  "those that have the data double in every round",
		Generate: generateBroadcastBinomial, Cost: broadcastBinomialCost,
	}
}

func generateBroadcastBinomial(pr Params, rank int) *program.Program {
	p := newPart(program.Broadcast, "binomial", pr, rank, 1)
	at := treeOf(pr.P, pr.Root, rank)
	if rank == pr.Root {
		var sent []program.Dep
		for _, c := range at.children {
			sent = append(sent, p.send(p.lane(c.rank, program.NoPeer), whole(program.In)))
		}
		p.copy(p.local(), whole(program.Out), whole(program.In), sent...)
		return p.Program
	}
	p.In.Hi = 0
	have := p.recv(p.lane(program.NoPeer, at.parent), whole(program.Out))
	for _, c := range at.children {
		p.send(p.lane(c.rank, program.NoPeer), whole(program.Out), have)
	}
	return p.Program
}

func broadcastBinomialCost(pr Params) program.Cost {
	return program.Cost{
		Steps: treeSteps(pr.P, pr.Root),
		Sent: func(rank int, l program.Layout) int {
			return len(treeOf(pr.P, pr.Root, rank).children) * l.Out[1]
		},
	}
}
