package algorithm

import (
	"fmt"
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Recursive doubling AllGather, for p = 2^k ranks. In round j each rank has 2^j blocks and
// exchanges all of them with the rank whose number differs in bit j.
//
//	steps            log2 p messages in a row
//	sent by rank r   the blocks of its half of the ranks, of its quarter, and so on
//	                 down to its own: (p − 1)·n/p for even blocks, the minimum of
//	                 all algorithms
//	scratch          none: blocks, of any length, are received into their place
//	order            nothing is folded
//
// Use it for small and medium blocks. It has the fewest messages, and each message consists of
// contiguous blocks.
//
// Reference: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH" (IJHPCA 19, 2005).
func allGatherRecursiveDoubling() *Algorithm {
	return &Algorithm{
		Name: "recursive-doubling", Collective: program.AllGather,
		Summary: "pairs exchange all they have, at distances 1, 2, 4, and so on",
		Check: func(pr Params) error {
			if pr.P&(pr.P-1) != 0 {
				return fmt.Errorf("%d ranks are not a power of two; bruck serves any number", pr.P)
			}
			return nil
		},
		Generate: generateAllGatherRecursiveDoubling, Cost: allGatherRecursiveDoublingCost,
	}
}

// alignedBlock returns the aligned range of size ranks that contains rank; size is a power of
// two.
func alignedBlock(rank, size int) sharding.Range {
	lo := rank &^ (size - 1)
	return sharding.Range{Lo: lo, Hi: lo + size}
}

func generateAllGatherRecursiveDoubling(pr Params, rank int) *program.Program {
	p := newPart(program.AllGather, "recursive-doubling", pr, rank, pr.P)
	p.In = chunk(rank)
	own, place := program.Chunk(program.In, 0, rank), program.Chunk(program.Out, 0, rank)
	if pr.P == 1 {
		p.copy(p.local(), place, own)
		return p.Program
	}
	var have []program.Dep
	for d := 1; d < pr.P; d *= 2 {
		peer := rank ^ d
		lane := p.lane(peer, peer)
		if d == 1 {
			sent := p.send(lane, own)
			have = append(have, p.copy(p.local(), place, own, sent))
		} else {
			p.send(lane, spanOf(program.Out, 0, alignedBlock(rank, d)), have...)
		}
		have = append(have, p.recv(lane, spanOf(program.Out, 0, alignedBlock(peer, d))))
	}
	return p.Program
}

func allGatherRecursiveDoublingCost(pr Params) program.Cost {
	return program.Cost{Steps: bits.Len(uint(pr.P)) - 1, Sent: func(rank int, l program.Layout) int {
		sent := 0
		for d := 1; d < pr.P; d *= 2 {
			sent += length(l, alignedBlock(rank, d))
		}
		return sent
	}}
}
