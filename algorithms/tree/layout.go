package tree

import (
	"math"
	"slices"
)

// lanes is the number of rows that pass through a tree together: the number of bits of a word.
const lanes = 64

// maxTop is the largest number of levels of a tree in which rows are handled as bits of words.
// The work for this doubles with each level. At about the eighth level it equals the work for a
// step of a walk.
const maxTop = 8

// layout is an ensemble in the form that is used to score rows.
//
// The upper levels of a tree, its top, are a complete binary tree: the children of position i,
// counted from 1, are at the positions 2i and 2i+1. Blocks of 64 rows pass through the top as
// bits of words. A cut is a slot and a key. The mask of the cut has the bits of the rows whose
// key in the slot is above the cut's key. At a node, the rows in the mask go right, and the
// other rows go left. All nodes with the same cut share its mask. Each mask of a slot contains
// the masks of the slot's higher cuts, so one binary search per row and one pass over the cuts
// compute all masks of the slot. A node thus costs a few operations for 64 rows.
//
// In categorical slots each set has its own mask, which is computed from the distinct
// categories in the block.
//
// Below the top, rows walk from link to link; a single row does so in whole trees. There is a
// link for each node. It has the index of the link of the node's left child. The link of the
// right child comes directly after it. The link of a leaf is its own left child and sends no
// row right. So rows that have reached a leaf stay there while other rows walk on, and several
// walks can advance together.
type layout[K key] struct {
	e *Ensemble
	// weights has the number of trees that add to each output, if the ensemble averages.
	weights []float64
	free    chan *area[K] // areas that are not in use

	slots []slot
	// first has the index of the first slot of each feature, and then the number of slots.
	first []int32
	// absent has the keys of a sparse row without entries, for each value of Absent.
	absent [2][]K
	// absentRank has, for each key in absent, the number of cuts of the slot that are below the
	// key.
	absentRank [2][]int32
	// walks is true if at least one tree has nodes below its top.
	walks bool
	// cuts has, for each slot, the keys of its cuts in ascending order, or for a categorical
	// slot the numbers of its sets. The mask of cut c of slot s has the number start[s]+1+c.
	// The mask with the number start[s] has no rows, so mask 0 has none either.
	cuts  []cuts[K]
	start []int32

	tops []top
	// masks has the number of the mask for each position in the tops.
	masks []int32
	// ends has, for each path through a top, the link at which the path ends. values has, if
	// this link is a leaf, its value times the weight of the tree. values is used for trees
	// with one output that have no nodes below the top. It has 256 more entries at the end, so
	// that any byte can be used as an index.
	ends   []int32
	values []float64

	links []link[K]
	// leaves has, for each link that is a leaf, the value times the weight of the tree. numbers
	// has, for each link, the number of its node in the tree.
	leaves  []float64
	numbers []int32
	sets    []set
	words   []uint32
}

// link is a node in the form that is used for walks. Rows whose key in slot is larger than the
// field above go to link left+1, and other rows go to link left. If slot is negative, its
// bitwise complement is a categorical slot, and the field above is the number of a set.
type link[K key] struct {
	above K
	slot  int32
	left  int32
}

// set is a range of the words, and the flags of the categorical node to which it belongs.
type set struct {
	first, words int32
	flags        Flags
}

// top is the upper part of a tree.
type top struct {
	// depth is the number of levels of the top. It is 0 if rows walk from the root of the tree.
	depth int32
	// first is the index of the first position of the top in masks, ends and values. The top
	// has 1<<depth entries in each of them.
	first int32
	// whole is true if all paths through the top end at leaves.
	whole bool
	// sets is true if the tree has categorical nodes.
	sets bool
	root int32
}

// newLayout returns the layout of the valid ensemble e.
func newLayout[K key](e *Ensemble) *layout[K] {
	l := &layout[K]{e: e, weights: treesOf(e), free: make(chan *area[K], areas())}
	var place map[slot]int32
	l.slots, place = slotsOf(e)
	l.first = make([]int32, len(e.Features)+1)
	for _, s := range l.slots {
		l.first[s.feature+1]++
	}
	for f := range e.Features {
		l.first[f+1] += l.first[f]
	}
	for s := range l.slots {
		l.absent[AbsentIsMissing] = append(l.absent[AbsentIsMissing], l.keyAt(int32(s), math.NaN()))
		l.absent[AbsentIsZero] = append(l.absent[AbsentIsZero], l.keyAt(int32(s), 0))
	}
	nodes := 0
	for t := range e.Trees {
		nodes += len(e.Trees[t].Nodes)
	}
	if nodes > math.MaxInt32 {
		panic("tree: an ensemble of more than 2,147,483,647 nodes")
	}
	l.links = make([]link[K], 0, nodes)
	l.leaves = make([]float64, 0, nodes)
	l.numbers = make([]int32, 0, nodes)
	l.tops = make([]top, len(e.Trees))
	for t := range e.Trees {
		l.link(&e.Trees[t], &l.tops[t], place)
	}
	l.placeTops(e)
	return l
}

// treesOf returns the number of trees that add to each output.
func treesOf(e *Ensemble) []float64 {
	trees := make([]float64, e.Outputs)
	for t := range e.Trees {
		if e.Trees[t].Values == nil {
			trees[e.Trees[t].Output]++
			continue
		}
		for o := range trees {
			trees[o]++
		}
	}
	return trees
}

// link appends the links of a tree. The children of a node are adjacent. The nodes below the
// child with the larger cover come first, so that the paths of most rows are close together in
// memory.
func (l *layout[K]) link(t *Tree, top *top, place map[slot]int32) {
	top.root = int32(len(l.links))
	l.append(t, 0)
	for open := []int32{top.root}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		n := &t.Nodes[l.numbers[at]]
		if n.Leaf() {
			continue
		}
		left := int32(len(l.links))
		l.append(t, n.Left)
		l.append(t, n.Right)
		way := place[n.way()]
		l.links[at] = link[K]{slot: way, left: left}
		if n.Flags&Categorical != 0 {
			top.sets = true
			l.links[at].slot = ^way
			l.links[at].above = K(len(l.sets))
			l.sets = append(l.sets, set{first: int32(len(l.words)), words: n.SetWords, flags: n.Flags})
			l.words = append(l.words, t.Sets[n.Set:n.Set+n.SetWords]...)
		} else { // x < t if and only if not key(x) > key(t)-1
			l.links[at].above = keyOf[K](n.Threshold) - 1
		}
		if t.Nodes[n.Left].Cover > t.Nodes[n.Right].Cover {
			open = append(open, left+1, left)
		} else {
			open = append(open, left, left+1)
		}
	}
}

// append appends a link for the node with the given number, as if the node were a leaf.
func (l *layout[K]) append(t *Tree, number int32) {
	l.links = append(l.links, link[K]{above: ^lowest[K](), left: int32(len(l.links))})
	l.leaves = append(l.leaves, t.Nodes[number].Value*t.Weight)
	l.numbers = append(l.numbers, number)
}

// slotOf returns the slot whose key is compared at a link, for numbers and for categories.
func (l *layout[K]) slotOf(at int32) int32 {
	s := l.links[at].slot
	return max(s, ^s)
}

// leaf reports whether a link is a leaf.
func (l *layout[K]) leaf(at int32) bool { return l.links[at].left == at }

// placeTops determines the top of each tree, then the cuts of all tops, and then fills in the
// tops.
func (l *layout[K]) placeTops(e *Ensemble) {
	var size int32
	bySlot := make([][]K, len(l.slots))
	level, next := []int32{}, []int32{}
	for t := range l.tops {
		top := &l.tops[t]
		top.depth = l.topDepth(top.root, level, next)
		top.first = size
		size += 1 << top.depth
		l.eachTop(top, func(_ int32, at int32, split bool) {
			if split {
				s := l.slotOf(at)
				bySlot[s] = append(bySlot[s], l.links[at].above)
			}
		})
	}
	l.start = make([]int32, len(l.slots)+1)
	l.cuts = make([]cuts[K], len(l.slots))
	for s, keys := range bySlot {
		slices.Sort(keys)
		bySlot[s] = slices.Compact(keys)
		if l.slots[s].flags&Categorical != 0 {
			l.cuts[s] = cuts[K]{sets: bySlot[s]}
		} else {
			l.cuts[s] = newCuts(bySlot[s])
		}
		l.start[s+1] = l.start[s] + int32(len(bySlot[s])) + 1
	}
	for meaning, keys := range l.absent {
		for s, k := range keys {
			l.absentRank[meaning] = append(l.absentRank[meaning], l.cuts[s].rank(k))
		}
	}
	l.masks = make([]int32, size)
	l.ends = make([]int32, size)
	l.values = make([]float64, size+256)
	for t := range l.tops {
		l.fillTop(&l.tops[t], bySlot, e.Trees[t].Values == nil)
		l.walks = l.walks || !l.tops[t].whole
	}
}

// topDepth returns the depth of a tree's top. If the tree is small, the top has the depth of
// the tree. Otherwise it has 6 to maxTop levels: the seventh and the eighth level belong to the
// top only if at least a quarter of their positions are splits.
func (l *layout[K]) topDepth(root int32, level, next []int32) int32 {
	level = append(level[:0], root)
	for depth := int32(0); ; depth++ {
		next = next[:0]
		for _, at := range level {
			if !l.leaf(at) {
				next = append(next, l.links[at].left, l.links[at].left+1)
			}
		}
		if len(next) == 0 || depth == maxTop || depth > 5 && len(next) < 1<<depth>>1 {
			return depth
		}
		level, next = next, level
	}
}

// eachTop calls f with the links of a top. For a node with children in the top, split is true
// and position is its position. For a link at which the top ends, split is false and position
// is the number of the path to it.
func (l *layout[K]) eachTop(top *top, f func(position, at int32, split bool)) {
	var walk func(position, depth, at int32)
	walk = func(position, depth, at int32) {
		if depth == top.depth || l.leaf(at) {
			f(position<<(top.depth-depth)-1<<top.depth, at, false)
			return
		}
		f(position, at, true)
		walk(2*position, depth+1, l.links[at].left)
		walk(2*position+1, depth+1, l.links[at].left+1)
	}
	walk(1, 0, top.root)
}

// fillTop sets the masks of a top's positions and the ends of its paths. Below a leaf the top
// has paths that no row takes; these keep link 0 and mask 0.
func (l *layout[K]) fillTop(top *top, cuts [][]K, single bool) {
	top.whole = true
	l.eachTop(top, func(position, at int32, split bool) {
		if split {
			s := l.slotOf(at)
			c, _ := slices.BinarySearch(cuts[s], l.links[at].above)
			l.masks[top.first+position] = l.start[s] + int32(c) + 1
			return
		}
		l.ends[top.first+position] = at
		if !l.leaf(at) {
			top.whole = false
		} else if single {
			l.values[top.first+position] = l.leaves[at]
		}
	})
}
