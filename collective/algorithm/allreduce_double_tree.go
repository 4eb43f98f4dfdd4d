package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Double tree AllReduce. The algorithm uses two binary trees. Each tree reduces one half of the
// data to its root and broadcasts the result down again. No rank has children in both trees.
// Every rank except the roots sends and receives in both trees, so the load is even.
//
// The first tree is in order: with d the lowest set bit of a rank's number, the children of
// rank r are r − d/2 and r + d/2 (or a closer rank above r, if rank r + d/2 does not exist).
// Rank 0 is the root. Ranks with odd numbers are leaves. The second tree is the mirror image of
// the first if p is even. If p is odd, it is the first tree over ranks 1…p − 1 with rank 0 as
// the left child of its root, so that ranks with even numbers are leaves.
//
//	steps            2·⌈log2 p⌉ messages in a row
//	sent by rank r   n/2 elements for each edge of rank r: at most 2·n
//	scratch          none
//	order            rank order: both trees fold the value of the left child, the value
//	                 of the rank and the value of the right child. The two trees differ
//	                 from each other and from the fold tree (canonical for p ≤ 2
//	                 only)
//
// Segments are pipelined through the trees, up and down at the same time. So a long vector
// takes as long as sending 2·n elements over a link, and the latency is logarithmic in p. Use
// it for vectors of medium length among many ranks. p may be any number.
//
// References: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan" (Parallel Computing 35, 2009); the shape of the first tree is that of
// NCCL. For odd p, both Sanders et al. and NCCL shift the tree by one rank, which would break
// the order of ranks and give one rank children in both trees. This implementation does not
// shift the tree.
func doubleTree() *Algorithm {
	return &Algorithm{
		Name: "double-tree", Collective: program.AllReduce,
		Summary:   "two binary trees with half of the data each: middle lengths, many ranks",
		Canonical: atMostTwo, RankOrder: Always,
		Generate: generateDoubleTree, Cost: doubleTreeCost,
	}
}

// binaryNode has the neighbours of a rank in a binary tree. −1 means that the rank has no such
// neighbour.
type binaryNode struct{ parent, left, right int }

// inOrderTree returns the neighbours of x in the tree over 0..p−1 with root 0. The number of
// every other node is between the numbers of its children.
func inOrderTree(p, x int) binaryNode {
	n := binaryNode{-1, -1, -1}
	d := x & -x
	switch {
	case x == 0:
		if p > 1 {
			n.right = 1 << (bits.Len(uint(p-1)) - 1)
		}
		return n
	case x^d|2*d < p:
		n.parent = x ^ d | 2*d
	default:
		n.parent = x ^ d
	}
	if d > 1 {
		n.left = x - d/2
	}
	for d /= 2; d > 0 && n.right < 0; d /= 2 {
		if x+d < p {
			n.right = x + d
		}
	}
	return n
}

// secondTree returns the neighbours of rank in the second tree, whose inner nodes are leaves of
// inOrderTree.
func secondTree(p, rank int) binaryNode {
	if p%2 == 0 {
		n := inOrderTree(p, p-1-rank)
		mirror := func(x int) int {
			if x < 0 {
				return x
			}
			return p - 1 - x
		}
		return binaryNode{mirror(n.parent), mirror(n.right), mirror(n.left)}
	}
	switch {
	case p == 1:
		return binaryNode{-1, -1, -1}
	case rank == 0:
		return binaryNode{1, -1, -1}
	}
	n := inOrderTree(p-1, rank-1)
	shift := func(x int) int {
		if x < 0 {
			return x
		}
		return x + 1
	}
	n = binaryNode{shift(n.parent), shift(n.left), shift(n.right)}
	if rank == 1 {
		n.left = 0
	}
	return n
}

// generateDoubleTree makes the program of rank in time O(log p). Tree t has chunk t and channel
// t; each neighbour has a lane.
func generateDoubleTree(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "double-tree", pr, rank, 2)
	b.claim(atMostTwo(pr.P), true)
	if pr.P == 1 {
		return b.alone()
	}
	for tree, n := range [2]binaryNode{inOrderTree(pr.P, rank), secondTree(pr.P, rank)} {
		lane := func(peer int) int { return b.lane(peer, peer, tree) }
		out := program.Chunk(program.Out, 0, tree)
		present := program.Chunk(program.In, 0, tree)
		if n.left >= 0 {
			b.recvReduce(lane(n.left), out, present, true)
			present = out
		}
		if n.right >= 0 {
			b.recvReduce(lane(n.right), out, present, false)
			present = out
		}
		if n.parent >= 0 {
			b.send(lane(n.parent), present)
			b.recv(lane(n.parent), out)
		}
		if n.left >= 0 {
			b.send(lane(n.left), out)
		}
		if n.right >= 0 {
			b.send(lane(n.right), out)
		}
	}
	return b.finish()
}

// doubleTreeCost returns the cost of the double tree, for which it counts edges. In the first
// tree, rank x > 0 has one edge to its parent and, if x is even, two to children, or one if x
// is the last rank. The second tree is counted as the mirrored or shifted first tree.
func doubleTreeCost(pr Params) program.Cost {
	p := pr.P
	if p == 1 {
		return program.Cost{}
	}
	degree := func(p, x int) int {
		switch {
		case x == 0:
			return min(p-1, 1)
		case x%2 == 1:
			return 1
		case x == p-1:
			return 2
		default:
			return 3
		}
	}
	return program.Cost{Steps: 2 * bits.Len(uint(p-1)), Sent: func(rank int, l program.Layout) int {
		second := 1
		switch {
		case p%2 == 0:
			second = degree(p, p-1-rank)
		case rank > 0:
			second = degree(p-1, rank-1)
		}
		if p%2 == 1 && rank == 1 {
			second++
		}
		return degree(p, rank)*l.Out[1] + second*(l.Out[2]-l.Out[1])
	}}
}
