package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Direct Scan and Exscan. Every rank sends its data to all higher ranks, and folds its own data
// and the data that it receives.
//
//	steps            1 message in a row
//	sent by rank r   (p − 1 − r)·n elements
//	scratch          r·n elements
//	order            the fold tree over the ranks 0..r, or 0..r−1 (canonical); a rank
//	                 has all contributions before it folds, so any order costs the
//	                 same. In a Scan, the last rank gets the bits of an AllReduce
//
// Use it for few ranks and short data, and if results must have the bits of the canonical tree.
//
// Reference: folklore. The order of the fold is a choice of this project.
func scanDirect(c program.Collective) *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: c,
		Summary:   "every rank sends to all after it and folds what it has",
		Canonical: Always, RankOrder: Always,
		Generate: func(pr Params, rank int) *program.Program { return generateScanDirect(c, pr, rank) },
		Cost:     scanDirectCost,
	}
}

func generateScanDirect(c program.Collective, pr Params, rank int) *program.Program {
	p := newPart(c, "direct", pr, rank, 1)
	p.CanonicalTree, p.RankOrder = true, true
	in, out := whole(program.In), whole(program.Out)
	var operands []program.Ref
	var before []program.Dep // dependencies of the fold; they include the sends, because the fold may overwrite the input
	for peer := range rank {
		room := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		operands = append(operands, room)
		before = append(before, p.recv(p.lane(program.NoPeer, peer), room))
	}
	for peer := rank + 1; peer < pr.P; peer++ {
		before = append(before, p.send(p.lane(peer, program.NoPeer), in))
	}
	if c == program.Scan {
		operands = append(operands, in)
	}
	switch len(operands) {
	case 0:
		p.Out.Hi = 0 // rank 0 of an Exscan
	case 1:
		p.copy(p.local(), out, operands[0], before...)
	default:
		p.add(p.local(), program.Instruction{Op: program.DoReduce, Dst: out, Src: operands,
			Fold: sharding.RankSchedule(len(operands), nil)}, before)
	}
	return p.Program
}

func scanDirectCost(pr Params) program.Cost {
	return program.Cost{Steps: min(1, pr.P-1), Sent: func(rank int, l program.Layout) int {
		return (pr.P - 1 - rank) * l.Out[1]
	}}
}
