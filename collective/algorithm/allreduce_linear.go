package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Linear AllReduce. All ranks send their contributions to rank 0, which receives them in order
// from left to right, folds them as they arrive, and sends the result to all ranks.
//
//	steps            2 messages in a row (none for p = 1), although rank 0 receives
//	                 p − 1 messages one after another and sends p − 1; for a forest,
//	                 1 more than the largest number of nodes of another rank
//	sent by rank r   n elements for each contribution; (p − 1)·n by rank 0
//	scratch          n·log2 p elements on rank 0, for left siblings in the tree that
//	                 wait for the right sibling; none on other ranks
//	order            the fold tree over ranks, or the aligned tree over the shards of
//	                 any forest (canonical)
//
// Use it for two or three ranks, for tests, and if rank 0 has the only fast link. All messages
// and all arithmetic are at rank 0.
func linearAllReduce() *Algorithm {
	return &Algorithm{
		Name: "linear", Collective: program.AllReduce,
		Summary:   "rank 0 takes from everybody in order, and sends the result to all",
		Canonical: Always, RankOrder: Always, Forests: AnyForest, Check: checkReduceLinear,
		Generate: generateLinearAllReduce, Cost: linearAllReduceCost,
	}
}

// generateLinearAllReduce makes the program of rank in time proportional to the contributions
// of rank. For rank 0 the time is O(p), or the time of sorting the nodes of a forest.
func generateLinearAllReduce(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "linear", pr, rank, 1)
	b.claim(true, true)
	if rank > 0 {
		lane := b.exchangeLane(0)
		for j := range contributions(pr, rank) {
			b.send(lane, program.Chunk(program.In, j, 0))
		}
		b.recv(lane, whole(program.Out))
		return b.finish()
	}
	leaves, steps, _ := reducePartials(pr) // the error is nil: Check has called reducePartials
	b.foldIncoming(leaves, steps)
	for peer := 1; peer < pr.P; peer++ {
		b.send(b.exchangeLane(peer), whole(program.Out))
	}
	return b.finish()
}

// foldTree adds the instructions that fold a tree whose leaves are contributions of this rank
// and of other ranks. The leaves of other ranks are received from left to right.
type foldTree struct {
	*builder
	leaves []partial
	pairs  [][2]int // pairs[i] has the two nodes that node len(leaves) + i of the tree joins
	free   []int    // scratch slots
}

// foldIncoming adds instructions that fold leaves in the order of the steps into the output.
func (b *builder) foldIncoming(leaves []partial, steps []sharding.FoldStep) {
	t := foldTree{builder: b, leaves: leaves}
	node := make([]int, len(leaves)) // node[s] is the node whose value is in slot s of the steps
	for i := range node {
		node[i] = i
	}
	for i, s := range steps {
		t.pairs = append(t.pairs, [2]int{node[s.Left], node[s.Right]})
		node[s.Left] = len(leaves) + i
	}
	out := whole(program.Out)
	if top := node[0]; t.isRemote(top) {
		b.recv(b.exchangeLane(leaves[top].rank), out)
	} else if ref := t.fold(top, &out); ref != out {
		b.copy(out, ref)
	}
}

// isRemote reports whether a node is a leaf that is received from another rank.
func (t *foldTree) isRemote(node int) bool {
	return node < len(t.leaves) && t.leaves[node].rank != t.Rank
}

// laneOf returns the lane on which a leaf is received.
func (t *foldTree) laneOf(leaf int) int { return t.exchangeLane(t.leaves[leaf].rank) }

// fold adds instructions that compute a node that is not received from another rank. It returns
// a reference to the value. The value is in the input if the node is a leaf, and otherwise in
// *to or, if to is nil, in a scratch slot.
func (t *foldTree) fold(node int, to *program.Ref) program.Ref {
	if node < len(t.leaves) {
		return program.Chunk(program.In, t.leaves[node].node, 0)
	}
	a, b := t.pairs[node-len(t.leaves)][0], t.pairs[node-len(t.leaves)][1]
	var left, right program.Ref
	leftRemote, rightRemote := t.isRemote(a), t.isRemote(b)
	if leftRemote && b >= len(t.leaves) { // receive a before the messages for the nodes below b
		left, leftRemote = t.freeSlot(), false
		t.recv(t.laneOf(a), left)
	} else if !leftRemote {
		left = t.fold(a, nil)
	}
	if !rightRemote {
		right = t.fold(b, nil)
	}
	dst := left
	switch {
	case to != nil:
		dst = *to
	case !leftRemote && left.Buffer == program.Scratch:
	case !rightRemote && right.Buffer == program.Scratch:
		dst = right
	default:
		dst = t.freeSlot()
	}
	switch {
	case leftRemote && rightRemote:
		t.recv(t.laneOf(a), dst)
		t.recvReduce(t.laneOf(b), dst, dst, false)
	case leftRemote:
		t.recvReduce(t.laneOf(a), dst, right, true)
	case rightRemote:
		t.recvReduce(t.laneOf(b), dst, left, false)
	default:
		t.reduce(dst, []program.Ref{left, right}, oneFold)
	}
	for _, r := range [2]program.Ref{right, left} {
		if r.Buffer == program.Scratch && r != dst {
			t.free = append(t.free, r.Slot)
		}
	}
	return dst
}

// freeSlot returns a free scratch slot.
func (t *foldTree) freeSlot() program.Ref {
	n := len(t.free)
	if n == 0 {
		return program.Chunk(program.Scratch, t.newSlot(chunk(0)), 0)
	}
	slot := t.free[n-1]
	t.free = t.free[:n-1]
	return program.Chunk(program.Scratch, slot, 0)
}

func linearAllReduceCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: maxNodes(pr, 1) + 1, Sent: func(rank int, l program.Layout) int {
		if rank == 0 {
			return (pr.P - 1) * l.Out[1]
		}
		return contributions(pr, rank) * l.Out[1]
	}}
}
