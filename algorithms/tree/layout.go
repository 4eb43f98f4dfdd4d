package tree

import (
	"math"
	"slices"
)

// lanes is the number of rows that go through a tree together: the bits of a word.
const lanes = 64

// maxTop is the largest number of levels of a tree that rows go down as bits of words. The work
// doubles with each level, and at about the eighth it equals that of a step of a walk.
const maxTop = 8

// layout is an ensemble laid out for walking.
//
// The upper levels of a tree, its top, are a complete binary tree: position i, from 1, has the
// children 2i and 2i+1. Blocks of 64 rows go down the top as bits of words. A cut of the
// ensemble is a slot and a key. The mask of the cut says which rows are above it. At a node,
// the rows that reach it divide into those in the mask and the others. All nodes with the same
// cut share its mask. The masks of a slot's cuts contain each other, so one binary search per
// row and one pass over the cuts make all of them. A node thus costs a few operations for 64
// rows.
//
// In categorical slots each set has a mask of its own, made from the distinct categories of the
// block.
//
// Nodes below the top are walked along links, and so are all trees for a single row. A link has
// the index of its left child; the right child follows it. A leaf is its own left child and
// sends no row right. So rows that have arrived stay while others walk on, and several walks
// advance together.
type layout[K key] struct {
	e *Ensemble
	// weights has, where the ensemble averages, the number of trees that add to each output.
	weights []float64
	free    chan *area[K] // areas not in use

	slots []slot
	// first has the number of each feature's first slot, and at the end the number of slots.
	first []int32
	// absent has the keys of a sparse row without entries, by Absent.
	absent [2][]K
	// absentRank has for each of these keys the number of cuts that it is above.
	absentRank [2][]int32
	// walks says that some tree has nodes below its top.
	walks bool
	// cuts has, for each slot, the keys that tops compare with, ascending, or the numbers of
	// the sets in which they look categories up. The mask of cut c of slot s is start[s]+1+c.
	// Mask start[s] has no rows, so mask 0 has none either.
	cuts  []cuts[K]
	start []int32

	tops []top
	// masks has the number of the mask for each position of the tops.
	masks []int32
	// ends has the link at which the top ends, for each path through it. values has the leaves'
	// values there, times the weight of the tree, for trees that have no nodes below the top
	// and one output. It has 256 more entries at the end, so that any byte is an index.
	ends   []int32
	values []float64

	links []link[K]
	// leaves has, for links that are leaves, the value times the weight of the tree. numbers
	// has the number of each link's node in its tree.
	leaves  []float64
	numbers []int32
	sets    []set
	words   []uint32
}

// link is a node in a walk. Rows whose key in the slot is larger than above go to link left+1,
// others to left. If slot is negative, its complement is a categorical slot, and above is the
// number of a set.
type link[K key] struct {
	above K
	slot  int32
	left  int32
}

// set is a range of words, with the flags of the node that looks categories up in it.
type set struct {
	first, words int32
	flags        Flags
}

// top is the upper part of a tree.
type top struct {
	// depth is the number of levels, 0 if the tree is walked from its root.
	depth int32
	// first is the index of the top's first position in masks, ends and values. It has 1<<depth
	// entries in each.
	first int32
	// whole says that all rows end at a leaf of the top.
	whole bool
	// sets says that the tree has categorical nodes.
	sets bool
	root int32
}

// newLayout lays a valid ensemble out.
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

// link appends the links of a tree. The children of a node are adjacent. The heavier child is
// followed first, so that the paths of most rows lie close together.
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

// append appends a node as a leaf.
func (l *layout[K]) append(t *Tree, number int32) {
	l.links = append(l.links, link[K]{above: ^lowest[K](), left: int32(len(l.links))})
	l.leaves = append(l.leaves, t.Nodes[number].Value*t.Weight)
	l.numbers = append(l.numbers, number)
}

// slotOf returns the slot that a link looks at, of numbers or of categories.
func (l *layout[K]) slotOf(at int32) int32 {
	s := l.links[at].slot
	return max(s, ^s)
}

// leaf reports whether a link is a leaf.
func (l *layout[K]) leaf(at int32) bool { return l.links[at].left == at }

// placeTops finds the tops of the trees, then their cuts, and fills in the tops.
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

// topDepth chooses the depth of a tree's top: the depth of the tree if this is small, or else
// the number of levels that are at least a quarter full.
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

// eachTop calls f with the links of a top. Nodes get their position, and split is set. For a
// link at which the top ends, position is the number of the path to it.
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

// fillTop fills in the masks of a top's positions and the ends of its paths. Below a leaf the
// top has paths that no row takes: these keep link and mask 0.
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
