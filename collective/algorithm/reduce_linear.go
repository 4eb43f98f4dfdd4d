package algorithm

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Linear Reduce. Every rank sends its contributions to the root, which folds them.
//
//	steps            1 message in a row; for a forest, the largest number of nodes
//	                 of a rank
//	sent by rank r   n elements for each of its contributions; nothing by the root
//	scratch          on the root, all elements that other ranks send, (p − 1)·n for
//	                 whole buffers; none on other ranks
//	order            the fold tree over ranks, or the aligned tree over the shards
//	                 of a forest (canonical); the root has all contributions
//	                 before it folds, so any order costs the same
//
// Use it for few ranks and for short data. It is the only Reduce that accepts any forest. The
// root receives all messages and does all arithmetic.
//
// Reference: folklore. The order of the fold is a choice of this project.
func reduceLinear() *Algorithm {
	return &Algorithm{
		Name: "linear", Collective: program.Reduce,
		Summary:   "the root receives and folds everything",
		Canonical: Always, RankOrder: Always, Forests: AnyForest,
		Check: checkReduceLinear, Generate: generateReduceLinear, Cost: reduceLinearCost,
	}
}

// partial identifies a contribution by its rank and by the index of its node in the forest of
// that rank.
type partial struct{ rank, node int }

// reducePartials returns the contributions of all ranks from left to right, and the order of
// their fold.
func reducePartials(pr Params) ([]partial, []sharding.FoldStep, error) {
	var leaves []partial
	if pr.Forest == nil {
		for r := range pr.P {
			leaves = append(leaves, partial{r, 0})
		}
		return leaves, sharding.RankSchedule(pr.P, nil), nil
	}
	for r, f := range pr.Forest {
		for e := range f {
			leaves = append(leaves, partial{r, e})
		}
	}
	at := func(l partial) sharding.Node { return pr.Forest[l.rank][l.node] }
	slices.SortStableFunc(leaves, func(a, b partial) int { return at(a).Range().Lo - at(b).Range().Lo })
	nodes := make([]sharding.Node, len(leaves))
	for i, l := range leaves {
		nodes[i] = at(l)
	}
	steps, err := sharding.FoldSchedule(nodes, nil)
	return leaves, steps, err
}

func checkReduceLinear(pr Params) error {
	leaves, _, err := reducePartials(pr)
	if err == nil && len(leaves) == 0 {
		err = fmt.Errorf("no rank brings a node of the forest")
	}
	return err
}

func generateReduceLinear(pr Params, rank int) *program.Program {
	p := newPart(program.Reduce, "linear", pr, rank, 1)
	p.CanonicalTree, p.RankOrder = true, true
	contributed := func(r int) int {
		if pr.Forest == nil {
			return 1
		}
		return len(pr.Forest[r])
	}
	if rank != pr.Root {
		p.Out.Hi = 0
		if contributed(rank) > 0 {
			lane := p.lane(pr.Root, program.NoPeer)
			for e := range contributed(rank) {
				p.send(lane, program.Chunk(program.In, e, 0))
			}
		}
		return p.Program
	}
	refs := map[partial]program.Ref{}
	var received []program.Dep
	for e := range contributed(rank) {
		refs[partial{rank, e}] = program.Chunk(program.In, e, 0)
	}
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		if contributed(peer) == 0 {
			continue
		}
		lane := p.lane(program.NoPeer, peer)
		var last program.Dep
		for e := range contributed(peer) {
			room := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
			refs[partial{peer, e}] = room
			last = p.recv(lane, room)
		}
		received = append(received, last)
	}
	leaves, steps, _ := reducePartials(pr) // the error is nil: Check has called reducePartials
	fold := program.Instruction{Op: program.DoReduce, Dst: whole(program.Out), Fold: steps}
	for _, l := range leaves {
		fold.Src = append(fold.Src, refs[l])
	}
	p.add(p.local(), fold, received)
	return p.Program
}

func reduceLinearCost(pr Params) program.Cost {
	messages := func(r int) int {
		switch {
		case r == pr.Root:
			return 0
		case pr.Forest == nil:
			return 1
		default:
			return len(pr.Forest[r])
		}
	}
	steps := 0
	for r := range pr.P {
		steps = max(steps, messages(r))
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int { return messages(rank) * l.Out[1] }}
}
