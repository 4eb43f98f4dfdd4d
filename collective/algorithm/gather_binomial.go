package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Binomial Gather. Each rank receives the blocks of all ranks below it in the tree and sends
// them, with its own block, to its parent in one message. Subtrees are ranges of ranks
// (gather_tree.go), so blocks may have any lengths.
//
//	steps            ⌊log2 p⌋ messages in a row for root 0, at most ⌈log2 p⌉ for
//	                 other roots
//	sent by rank r   its block and the blocks of all ranks below it, so that a block is
//	                 sent up to log p times; nothing by the root
//	scratch          the elements that the rank sends, on ranks with children
//	order            nothing is folded
//
// Use it for small blocks: the root receives log p messages instead of p − 1.
//
// Reference: the personalised communication along a spanning binomial tree of Johnsson and Ho,
// "Optimum Broadcasting and Personalized Communication in Hypercubes" (IEEE Trans. Computers
// 38, 1989), in reverse, for any number of ranks and any root.
func gatherBinomial() *Algorithm {
	return &Algorithm{
		Name: "binomial", Collective: program.Gather,
		Summary:  "ranks collect the blocks below them and hand them up",
		Generate: generateGatherBinomial, Cost: gatherBinomialCost,
	}
}

func generateGatherBinomial(pr Params, rank int) *program.Program {
	p := newPart(program.Gather, "binomial", pr, rank, pr.P)
	p.In = chunk(rank)
	own := program.Chunk(program.In, 0, rank)
	at := treeOf(pr.P, pr.Root, rank)
	if rank != pr.Root {
		p.Out.Hi = 0
	}
	if rank != pr.Root && len(at.children) == 0 {
		p.send(p.lane(at.parent, program.NoPeer), own)
		return p.Program
	}
	buffer := program.Out
	if rank != pr.Root {
		buffer = program.Scratch
		p.newSlot(at.span)
	}
	var have []program.Dep
	for _, c := range at.children {
		have = append(have, p.recv(p.lane(program.NoPeer, c.rank), spanOf(buffer, 0, c.span)))
	}
	have = append(have, p.copy(p.local(), program.Chunk(buffer, 0, rank), own))
	if rank != pr.Root {
		p.send(p.lane(at.parent, program.NoPeer), spanOf(buffer, 0, at.span), have...)
	}
	return p.Program
}

func gatherBinomialCost(pr Params) program.Cost {
	return program.Cost{Steps: treeSteps(pr.P, pr.Root), Sent: func(rank int, l program.Layout) int {
		if rank == pr.Root {
			return 0
		}
		return length(l, treeOf(pr.P, pr.Root, rank).span)
	}}
}
