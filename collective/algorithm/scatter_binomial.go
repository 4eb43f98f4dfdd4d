package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Binomial Scatter. The ranks are divided into two halves. The root sends all blocks of the
// other half to a rank of that half, which becomes its root. Both roots do the same within
// their halves, and so on. This is the binomial Gather in reverse, for blocks of any length.
//
//	steps            ⌊log2 p⌋ messages in a row for root 0, at most ⌈log2 p⌉ for
//	                 other roots
//	sent by rank r   the blocks of all ranks below it, so that a block is sent up
//	                 to log p times
//	scratch          its block and the blocks of all ranks below it, on ranks with
//	                 children, except the root
//	order            nothing is folded
//
// Use it for small blocks: the root sends log p messages instead of p − 1.
//
// Reference: the personalised communication along a spanning binomial tree of Johnsson and Ho,
// "Optimum Broadcasting and Personalized Communication in Hypercubes" (IEEE Trans. Computers
// 38, 1989), for any number of ranks and any root.
func scatterBinomial() *Algorithm {
	return &Algorithm{
		Name: "binomial", Collective: program.Scatter,
		Summary:  "blocks are handed down a tree, half of the ranks at once",
		Generate: generateScatterBinomial, Cost: scatterBinomialCost,
	}
}

func generateScatterBinomial(pr Params, rank int) *program.Program {
	p := newPart(program.Scatter, "binomial", pr, rank, pr.P)
	p.Out = chunk(rank)
	own := program.Chunk(program.Out, 0, rank)
	at := treeOf(pr.P, pr.Root, rank)
	buffer := program.In
	var have []program.Dep
	if rank != pr.Root {
		p.In.Hi = 0
		lane := p.lane(program.NoPeer, at.parent)
		if len(at.children) == 0 {
			p.recv(lane, own)
			return p.Program
		}
		buffer = program.Scratch
		p.newSlot(at.span)
		have = append(have, p.recv(lane, spanOf(buffer, 0, at.span)))
	}
	for _, c := range at.children {
		p.send(p.lane(c.rank, program.NoPeer), spanOf(buffer, 0, c.span), have...)
	}
	p.copy(p.local(), own, program.Chunk(buffer, 0, rank), have...)
	return p.Program
}

func scatterBinomialCost(pr Params) program.Cost {
	return program.Cost{Steps: treeSteps(pr.P, pr.Root), Sent: func(rank int, l program.Layout) int {
		return length(l, treeOf(pr.P, pr.Root, rank).span) - length(l, chunk(rank))
	}}
}
