package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared"
)

// Linear AllReduce. All ranks send what they bring to rank 0, which takes it in
// order from left to right, folds it as it comes, and sends the result to all.
//
//	steps            2 messages in a row (none for p = 1), though rank 0 takes p − 1
//	                 in turn and sends as many; of a forest, 1 more than the most
//	                 nodes that another rank brings
//	sent by rank r   n elements for each contribution; (p − 1)·n by rank 0
//	scratch          n·log2 p elements on rank 0, none elsewhere: what is folded is a
//	                 tree, and only its left siblings wait
//	order            the fold tree over ranks, or the aligned tree over the shards of
//	                 any forest (canonical)
//
// For two or three ranks, for tests, and where rank 0 has the only good link. All
// traffic and all arithmetic meets at rank 0.
func linearAllReduce() *Algorithm {
	return &Algorithm{
		Name: "linear", Collective: program.AllReduce,
		Summary:   "rank 0 takes from everybody in order, and sends the result to all",
		Canonical: Always, RankOrder: Always, Forests: AnyForest, Check: checkReduceLinear,
		Generate: generateLinearAllReduce, Cost: linearAllReduceCost,
	}
}

// generateLinearAllReduce makes rank's part in time O(own contributions), that of
// rank 0 in O(p) or that of sorting a forest.
func generateLinearAllReduce(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "linear", pr, rank, 1)
	b.claim(true, true)
	if rank > 0 {
		lane := b.with(0)
		for j := range contributions(pr, rank) {
			b.send(lane, program.Chunk(program.In, j, 0))
		}
		b.recv(lane, whole(program.Out))
		return b.finish()
	}
	leaves, steps, _ := reducePartials(pr) // Check has seen that there is no error
	b.foldIncoming(leaves, steps)
	for peer := 1; peer < pr.P; peer++ {
		b.send(b.with(peer), whole(program.Out))
	}
	return b.finish()
}

// foldIncoming folds leaves, the own ones and those that come from their ranks, in
// the order of the steps, taking each message only when it is its turn.
func (b *builder) foldIncoming(leaves []partial, steps []shared.FoldStep) {
	out := whole(program.Out)
	if len(leaves) == 1 {
		if l := leaves[0]; l.rank == b.Rank {
			b.copy(out, program.Chunk(program.In, l.node, 0))
		} else {
			b.recv(b.with(l.rank), out)
		}
		return
	}
	plan, err := program.CompileFold(len(leaves), steps)
	if err != nil {
		panic(err) // schedules are trees
	}
	for range plan.Blocks {
		b.room(chunk(0))
	}
	comes := func(x int) bool { return x >= 0 && leaves[x].rank != b.Rank }
	ref := func(x int) program.Ref {
		switch {
		case x == program.ToResult:
			return out
		case x < 0:
			return program.Chunk(program.Scratch, -1-x, 0)
		default:
			return program.Chunk(program.In, leaves[x].node, 0)
		}
	}
	for _, s := range plan.Steps {
		switch dst := ref(s.Dst); {
		case comes(s.A) && comes(s.B):
			b.recv(b.with(leaves[s.A].rank), dst)
			b.recvReduce(b.with(leaves[s.B].rank), dst, dst, false)
		case comes(s.A):
			b.recvReduce(b.with(leaves[s.A].rank), dst, ref(s.B), true)
		case comes(s.B):
			b.recvReduce(b.with(leaves[s.B].rank), dst, ref(s.A), false)
		default:
			b.reduce(dst, []program.Ref{ref(s.A), ref(s.B)}, oneFold)
		}
	}
}

func linearAllReduceCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: mostNodes(pr, 1) + 1, Sent: func(rank int, l program.Layout) int {
		if rank == 0 {
			return (pr.P - 1) * l.Out[1]
		}
		return contributions(pr, rank) * l.Out[1]
	}}
}
