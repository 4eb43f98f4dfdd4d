package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file has the tree of the rooted collectives. The ranks are halved recursively, at the
// same ranks as in the canonical fold tree over ranks (sharding.RankSchedule). The first rank
// of the half without the root becomes the root of that half, and a child of the root of the
// whole tree. For p = 2^k this is a binomial tree. For every p and every root,
//
//	subtrees are ranges of ranks: the blocks of a subtree, of any length, are one
//	  message of a Gather or Scatter. In a tree over rotated ranks, some subtrees
//	  would wrap around and need two messages;
//	a fold along the tree is the canonical tree, whatever the root, because the
//	  halves do not depend on the root;
//	the depth is ⌊log2 p⌋ for root 0, and at most ⌈log2 p⌉ for other roots.
//
// As in the fold tree, the ranks are grouped in q = 2^⌊log2 p⌋ places. The first p − q places
// have two ranks each, and each other place has one rank. First the range of places is halved
// repeatedly; then each place with two ranks is halved. See placeStart.

// treePlace has the parent and the children of a rank in the tree, and the ranks of its
// subtree.
type treePlace struct {
	parent   int            // rank, or −1 for the root
	span     sharding.Range // this rank and all ranks below it in the tree
	children []treeChild    // in order of halving: the child with the largest half is first
}

// treeChild is a child of a rank, with the range of all ranks in the subtree of the child.
type treeChild struct {
	rank int
	span sharding.Range
}

// placeStart returns the first rank of place v among q places; the first r places have two
// ranks.
func placeStart(v, r int) int { return v + min(v, r) }

// treeOf returns the treePlace of rank in the tree over p ranks, in time O(log p).
func treeOf(p, root, rank int) treePlace {
	q := 1 << (bits.Len(uint(p)) - 1)
	r := p - q
	place := treePlace{parent: -1, span: sharding.Range{Lo: 0, Hi: p}}
	lo, size, top := 0, q, root // the subtree with root top has the places [lo, lo+size)
	for s := place.span; s.Len() > 1; {
		mid := s.Lo + 1 // where a place of two ranks is halved
		size /= 2
		if size > 0 {
			mid = placeStart(lo+size, r)
		}
		kept, other := sharding.Range{Lo: s.Lo, Hi: mid}, sharding.Range{Lo: mid, Hi: s.Hi}
		if top >= mid {
			kept, other = other, kept
		}
		switch {
		case rank == top:
			place.children = append(place.children, treeChild{other.Lo, other})
			s = kept
		case other.Contains(rank):
			if rank == other.Lo {
				place.parent, place.span = top, other
			}
			s, top = other, other.Lo
		default:
			s = kept
		}
		if s.Lo == mid {
			lo += size
		}
	}
	return place
}

// treeSteps returns the number of edges of the longest path from the root to a leaf. A path
// that begins with an edge to a half of h ranks has at most 1 + ⌊log2 h⌋ edges.
func treeSteps(p, root int) int {
	steps := 0
	for _, c := range treeOf(p, root, root).children {
		steps = max(steps, bits.Len(uint(c.span.Len())))
	}
	return steps
}
