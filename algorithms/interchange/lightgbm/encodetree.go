package lightgbm

import (
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// placed describes a tree of the file, which is a tree of the ensemble for one of its outputs.
// If field tree is nil, the tree of the file is a single leaf.
type placed struct {
	tree   *tree.Tree
	number int // number of the tree in the ensemble, for errors
	output int
	scale  float64 // factor by which leaf values are multiplied
	add    float64 // number that is added to each leaf value after scaling
}

// place arranges the trees in iterations, in the order of the ensemble. An iteration has one
// tree for each output. Outputs with fewer trees get trees of a single leaf with the value 0.
func (m *Model) place() []placed {
	e := m.Ensemble
	of := make([][]placed, e.Outputs)
	for i := range e.Trees {
		t := &e.Trees[i]
		first, last := int(t.Output), int(t.Output)
		if t.Values != nil {
			first, last = 0, e.Outputs-1
		}
		for o := first; o <= last; o++ {
			of[o] = append(of[o], placed{tree: t, number: i, output: o, scale: t.Weight})
		}
	}
	rounds := 0
	for o := range of {
		if len(of[o]) == 0 && e.Base[o] != 0 {
			of[o] = []placed{{output: o}}
		}
		rounds = max(rounds, len(of[o]))
	}
	all := make([]placed, 0, rounds*e.Outputs)
	for i := range rounds {
		for o := range of {
			p := placed{output: o}
			if i < len(of[o]) {
				p = of[o][i]
			}
			if e.Average { // LightGBM averages over all iterations, including the added single leaves
				p.scale, p.add = p.scale*float64(rounds)/float64(len(of[o])), e.Base[o]
			} else if i == 0 {
				p.add = e.Base[o]
			}
			all = append(all, p)
		}
	}
	return all
}

// split is a node with children, or a leaf, in the form that the file has.
type split struct {
	from        int32 // number of the node in the tree
	left, right int32 // 0 at leaves
	// missing marks a node that sends rows right if its feature is missing, and all other rows
	// left.
	missing bool
	// copied marks a node that only missing values reach. The cover and the count of such a
	// node are unknown.
	copied bool
}

// layout is a tree in the form that the file has. LightGBM numbers splits and leaves
// separately. Unless nodes are inserted, splits and leaves are in the order of the tree's
// nodes.
type layout struct {
	*placed
	e       *tree.Ensemble
	splits  []split
	pending []int32 // copied nodes whose children are not made yet
}

// newLayout returns the layout of a tree.
func (p *placed) newLayout(e *tree.Ensemble) (*layout, error) {
	l := &layout{placed: p, e: e}
	nodes := p.tree.Nodes
	l.splits = make([]split, len(nodes))
	for i := range nodes {
		l.splits[i].from = int32(i)
		if n := &nodes[i]; !n.Leaf() {
			l.splits[i].left, l.splits[i].right = l.sides(n)
		}
	}
	for i := range nodes {
		if !nodes[i].Leaf() && l.missingInSet(&nodes[i], int32(i)) {
			l.separateMissing(int32(i))
		}
	}
	for at := 0; at < len(l.pending); at++ {
		if len(l.splits) > 2*maxLeaves {
			return nil, fmt.Errorf("it would have more than %d leaves: subtrees are copied for missing values that go with the categories of a set", maxLeaves)
		}
		l.copy(l.pending[at])
	}
	if len(l.splits) > len(nodes) {
		l.sort()
	}
	return l, nil
}

// sides returns the children that are left and right in the file. LightGBM sends categories in
// the set left. If all rows with a value go to one child, that child is left.
func (l *layout) sides(n *tree.Node) (int32, int32) {
	categorical := n.Flags&tree.Categorical != 0
	if categorical && n.Flags&tree.SetRight != 0 || !categorical && math.IsInf(n.Threshold, -1) {
		return n.Right, n.Left
	}
	return n.Left, n.Right
}

// missingInSet reports whether missing values go to the same side as the categories in a node's
// set.
func (l *layout) missingInSet(n *tree.Node, at int32) bool {
	if n.Flags&tree.Categorical == 0 {
		return false
	}
	inSet, _ := l.sides(n)
	return l.tree.Left(at, math.NaN(), l.e.Single) == (inSet == n.Left)
}

// separateMissing replaces split i by a node that separates missing values. The split itself
// moves to the end of the list. Missing values go to a copy of the subtree on the side of the
// split's set.
func (l *layout) separateMissing(i int32) {
	s := l.splits[i]
	moved := int32(len(l.splits))
	l.splits = append(l.splits, s, split{from: l.splits[s.left].from, copied: true})
	l.splits[i] = split{from: s.from, left: moved, right: moved + 1, missing: true, copied: s.copied}
	l.pending = append(l.pending, moved+1)
}

// copy makes the children of a copied node.
func (l *layout) copy(i int32) {
	from := l.splits[i].from
	n := &l.tree.Nodes[from]
	if n.Leaf() {
		return
	}
	at := int32(len(l.splits))
	left, right := l.sides(n)
	l.splits = append(l.splits, split{from: left, copied: true}, split{from: right, copied: true})
	l.splits[i].left, l.splits[i].right = at, at+1
	l.pending = append(l.pending, at, at+1)
	if l.missingInSet(n, from) {
		l.separateMissing(i)
	}
}

// sort moves splits after their parents, where insertions have changed the order.
func (l *layout) sort() {
	order := append(make([]int32, 0, len(l.splits)), 0)
	number := make([]int32, len(l.splits))
	for at := 0; at < len(order); at++ {
		number[order[at]] = int32(at)
		if s := &l.splits[order[at]]; s.left != 0 {
			order = append(order, s.left, s.right)
		}
	}
	sorted := make([]split, len(order))
	for i, from := range order {
		s := l.splits[from]
		if s.left != 0 {
			s.left, s.right = number[s.left], number[s.right]
		}
		sorted[i] = s
	}
	l.splits = sorted
}

// lines has the lists of numbers that the file has for a tree.
type lines struct {
	features, kinds, left, right []int32
	thresholds                   []float64
	gains, values, covers        []float64
	counts                       []int64
	bounds                       []int32
	words                        []uint32
	leaves, leafCovers           []float64
	leafCounts                   []int64
}

// append appends the tree as number i of the file, and adds the number of its splits on each
// feature to splits.
func (p *placed) append(b []byte, i int, e *tree.Ensemble, splits []int) ([]byte, error) {
	w := &lines{bounds: []int32{0}}
	if p.tree == nil {
		w.leaves, w.leafCovers, w.leafCounts = []float64{p.add}, []float64{0}, []int64{0}
	} else {
		l, err := p.newLayout(e)
		if err == nil {
			err = l.lines(w)
		}
		if err != nil {
			return nil, fmt.Errorf("tree %d: %w", p.number, err)
		}
	}
	for _, f := range w.features {
		splits[f]++
	}
	b = append(strconv.AppendInt(append(b, "Tree="...), int64(i), 10), '\n')
	b = appendLine(b, "num_leaves", []int{len(w.leaves)}, appendInteger)
	b = appendLine(b, "num_cat", []int{len(w.bounds) - 1}, appendInteger)
	b = appendLine(b, "split_feature", w.features, appendInteger)
	b = appendLine(b, "split_gain", w.gains, appendNumber)
	b = appendLine(b, "threshold", w.thresholds, appendNumber)
	b = appendLine(b, "decision_type", w.kinds, appendInteger)
	b = appendLine(b, "left_child", w.left, appendInteger)
	b = appendLine(b, "right_child", w.right, appendInteger)
	b = appendLine(b, "leaf_value", w.leaves, appendNumber)
	b = appendLine(b, "leaf_weight", w.leafCovers, appendNumber)
	b = appendLine(b, "leaf_count", w.leafCounts, appendInteger)
	b = appendLine(b, "internal_value", w.values, appendNumber)
	b = appendLine(b, "internal_weight", w.covers, appendNumber)
	b = appendLine(b, "internal_count", w.counts, appendInteger)
	if len(w.bounds) > 1 {
		b = appendLine(b, "cat_boundaries", w.bounds, appendInteger)
		b = appendLine(b, "cat_threshold", w.words, appendInteger)
	}
	return append(b, "is_linear=0\nshrinkage=1\n\n\n"...), nil
}

// lines fills w with the numbers of all splits and leaves.
func (l *layout) lines(w *lines) error {
	number := make([]int32, len(l.splits)) // number of each node as in lists of children: leaf i has the number −1−i
	splits, leaves := int32(0), int32(0)
	for i := range l.splits {
		if l.splits[i].left == 0 {
			leaves++
			number[i] = -leaves
		} else {
			number[i] = splits
			splits++
		}
	}
	for i := range l.splits {
		s := &l.splits[i]
		n := l.tree.Nodes[s.from]
		if l.tree.Values != nil {
			n.Value = l.tree.Values[int(s.from)*l.e.Outputs+l.output]
		}
		if n.Value = float64(n.Value * l.scale); l.add != 0 { // not adding 0 keeps −0
			n.Value += l.add
		}
		if n.Value-n.Value != 0 {
			return fmt.Errorf("node %d: its value times the weight is %v", s.from, n.Value)
		}
		if s.copied {
			n.Cover, n.Count = 0, 0
		}
		if s.left == 0 {
			w.leaves, w.leafCovers, w.leafCounts = append(w.leaves, n.Value), append(w.leafCovers, n.Cover), append(w.leafCounts, n.Count)
			continue
		}
		if s.missing {
			n.Gain = 0
		}
		w.left, w.right = append(w.left, number[s.left]), append(w.right, number[s.right])
		w.features, w.gains, w.values = append(w.features, n.Feature), append(w.gains, n.Gain), append(w.values, n.Value)
		w.covers, w.counts = append(w.covers, n.Cover), append(w.counts, n.Count)
		l.decision(w, s, &n)
	}
	return nil
}

// decision appends to w how a split sends rows to its children.
func (l *layout) decision(w *lines, s *split, n *tree.Node) {
	var kind int32
	threshold := math.MaxFloat64
	switch {
	case s.missing:
		kind = missingNaN << missingShift
	case n.Flags&tree.Categorical != 0:
		kind = isCategorical
		threshold = float64(len(w.bounds) - 1)
		l.set(w, s, n)
	default:
		if threshold = atMost(n.Threshold, l.e.Single); threshold < 0 {
			threshold = min(threshold, -smallest)
		}
		left := n.Flags&tree.DefaultLeft != 0
		if math.IsInf(n.Threshold, -1) { // the file has the children swapped, see sides
			left, threshold = !left, math.Inf(1)
		}
		if left {
			kind = isDefaultLeft
		}
		switch {
		case n.Flags&tree.ZeroMissing != 0:
			kind |= missingZero << missingShift
		case n.Flags&tree.NaNIsZero == 0:
			kind |= missingNaN << missingShift
		}
	}
	w.kinds, w.thresholds = append(w.kinds, kind), append(w.thresholds, threshold)
}

// set appends the set of a categorical node to w. Category 0 is put into the set if and only if
// zeros go to the side of the set, because zeros may be treated as missing.
func (l *layout) set(w *lines, s *split, n *tree.Node) {
	from := len(w.words)
	w.words = append(w.words, l.tree.Sets[n.Set:n.Set+n.SetWords]...)
	inSet, _ := l.sides(n)
	zero := l.tree.Left(s.from, 0, l.e.Single) == (inSet == n.Left)
	if zero && len(w.words) == from {
		w.words = append(w.words, 0)
	}
	if len(w.words) > from {
		if w.words[from] &^= 1; zero {
			w.words[from] |= 1
		}
	}
	w.bounds = append(w.bounds, int32(len(w.words)))
}

// atMost returns the largest float64 below a threshold, because LightGBM sends values up to and
// including its threshold left. If single is true, values are rounded to float32 before they
// are compared, and atMost returns the largest float64 that is rounded to a float32 below the
// threshold.
func atMost(threshold float64, single bool) float64 {
	if !single {
		return math.Nextafter(threshold, math.Inf(-1))
	}
	below := float64(math.Nextafter32(float32(threshold), float32(math.Inf(-1))))
	// Beyond the largest float32, values are rounded as if 2^128 were a float32.
	const beyond = 1 << 128
	middle := float64(max(below, -beyond)/2) + float64(min(threshold, beyond)/2)
	if float64(float32(middle)) < threshold {
		return middle
	}
	return math.Nextafter(middle, math.Inf(-1))
}
