package forest

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/shared"
)

// builder grows trees on all rows of a job, one at a time. It belongs to one goroutine and
// keeps its memory from tree to tree. What it grows depends on the table, the rules and the
// number of the tree alone.
type builder struct {
	t       *table
	rules   rules
	sampler *sampler
	finder  *finder
	times   []uint8
	entries []entry
	spare   []entry
	waiting []waiting
	total   int64 // weight of the tree's rows

	nodes  []tree.Node
	sets   []uint32
	values []float64
	leaves int
}

// waiting is a node that will be split.
type waiting struct {
	node, depth int32
	lo, hi      int // its entries
	key         uint64
	sums        sums
	split       split
}

func newBuilder(t *table, r rules, s *sampler) *builder {
	return &builder{t: t, rules: r, sampler: s, finder: newFinder(t, r)}
}

// grow grows a tree by its number. The tree's memory is its own.
func (b *builder) grow(number int) tree.Tree {
	b.draw(number)
	b.nodes, b.sets, b.values, b.waiting = b.nodes[:0], b.sets[:0], b.values[:0], b.waiting[:0]
	var all sums
	for i := range b.entries {
		all.g += b.entries[i].g
		all.w += int64(b.entries[i].w)
	}
	all.n = len(b.entries)
	b.total, b.leaves = all.w, 1
	b.finder.narrow = b.t.classes == 2 && all.w < 1<<32
	random := shared.NewRandom(b.rules.seed, purposeFeatures, -1, number)
	b.nodes = append(b.nodes, tree.Node{})
	b.open(waiting{hi: len(b.entries), key: rootKey, sums: all}, random)
	for len(b.waiting) > 0 && (b.rules.leaves == 0 || b.leaves < b.rules.leaves) {
		b.divide(b.next(), random)
	}
	t := tree.Tree{Nodes: append([]tree.Node(nil), b.nodes...), Weight: 1}
	if len(b.sets) > 0 {
		t.Sets = append([]uint32(nil), b.sets...)
	}
	if b.t.classes > 0 {
		t.Values = append([]float64(nil), b.values...)
	}
	return t
}

// draw makes the entries of the rows that the tree draws.
func (b *builder) draw(number int) {
	if cap(b.times) < b.t.rows {
		b.times = make([]uint8, b.t.rows)
	}
	times := b.times[:b.t.rows]
	for _, s := range b.t.spans {
		b.sampler.draw(number, s.Shard, times[s.First:s.First+s.Rows])
	}
	if b.entries == nil {
		b.entries, b.spare = make([]entry, 0, b.t.rows), make([]entry, b.t.rows)
	}
	b.entries = b.entries[:0]
	several := b.t.classes > 2
	for i, k := range times {
		if k == 0 || b.t.w[i] == 0 {
			continue
		}
		g := b.t.g[i]
		if !several {
			g *= int64(k)
		}
		b.entries = append(b.entries, entry{uint32(i), b.t.w[i] * uint32(k), g})
	}
}

// push has a node wait. Where leaves are bounded, those that wait are a heap: a node gains
// no less than those at twice its place and behind.
func (b *builder) push(w waiting) {
	b.waiting = append(b.waiting, w)
	for at := len(b.waiting) - 1; b.rules.leaves > 0 && at > 0; {
		up := (at - 1) / 2
		if !b.waiting[at].before(&b.waiting[up]) {
			return
		}
		b.waiting[at], b.waiting[up] = b.waiting[up], b.waiting[at]
		at = up
	}
}

// before tells which of two nodes is split first where leaves are bounded.
func (w *waiting) before(o *waiting) bool {
	return w.split.gain > o.split.gain || w.split.gain == o.split.gain && w.node < o.node
}

// next takes the node that is split next: the last that came, or, where leaves are bounded,
// the one that gains most, the first of equals.
func (b *builder) next() waiting {
	last := len(b.waiting) - 1
	at := last
	if b.rules.leaves > 0 {
		at = 0
	}
	w := b.waiting[at]
	b.waiting[at] = b.waiting[last]
	b.waiting = b.waiting[:last]
	for at < last {
		down := 2*at + 1
		if down+1 < last && b.waiting[down+1].before(&b.waiting[down]) {
			down++
		}
		if down >= last || !b.waiting[down].before(&b.waiting[at]) {
			break
		}
		b.waiting[at], b.waiting[down] = b.waiting[down], b.waiting[at]
		at = down
	}
	return w
}

// open writes what is known of a node, and has it wait if there is a split for it.
func (b *builder) open(w waiting, random shared.Random) {
	e := b.entries[w.lo:w.hi]
	n := &b.nodes[w.node]
	n.Cover, n.Count = float64(w.sums.w)*b.t.wUnit, int64(len(e))
	b.value(n, e, w.sums)
	if int(w.depth) >= b.rules.depth || len(e) < b.rules.minSplit || len(e) < 2*b.rules.minLeaf || b.pure(e, w.sums) {
		return
	}
	w.sums.n = len(e)
	var ok bool
	if w.split, ok = b.finder.find(e, w.sums, nodeDraws{random, w.key}); !ok {
		return
	}
	if b.rules.minGain > 0 && !(w.split.gain >= b.rules.minGain*float64(b.total)*b.t.wUnit) {
		return
	}
	b.push(w)
}

// value writes the value of a node: integers until the last division.
func (b *builder) value(n *tree.Node, e []entry, s sums) {
	switch {
	case b.t.classes == 0:
		if s.w > 0 {
			n.Value = b.t.centre + float64(s.g)*b.t.gUnit/(float64(s.w)*b.t.wUnit)
		}
	case b.t.classes <= 2:
		b.values = append(b.values, share(s.w-s.g, s.w))
		if b.t.classes == 2 {
			b.values = append(b.values, share(s.g, s.w))
		}
	default:
		at := len(b.values)
		for range b.t.classes {
			b.values = append(b.values, 0)
		}
		h := &b.finder.histogram
		h.open(e, b.t.classes)
		for i, k := range h.in {
			b.values[at+int(k)] = share(h.total[i], s.w)
		}
	}
}

// share returns a part of a whole, 0 of nothing.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// pure tells whether all rows of a node have the same label.
func (b *builder) pure(e []entry, s sums) bool {
	switch {
	case len(e) == 0 || b.t.classes == 1:
		return true
	case b.t.classes == 2:
		return s.g == 0 || s.g == s.w
	case b.t.classes > 2:
		return len(b.finder.in) == 1
	}
	first := b.t.label[e[0].row]
	for i := range e {
		if b.t.label[e[i].row] != first {
			return false
		}
	}
	return true
}

// divide splits a node that waited.
func (b *builder) divide(w waiting, random shared.Random) {
	f := &b.t.layout.Features[w.split.feature]
	left := int32(len(b.nodes))
	n := &b.nodes[w.node]
	n.Feature, n.Left, n.Right, n.Gain = int32(f.Number), left, left+1, w.split.gain
	if w.split.missingLeft {
		n.Flags |= tree.DefaultLeft
	}
	if w.split.categorical {
		words, right := f.Set(func(bin int) bool { return w.split.set[bin>>6]>>(bin&63)&1 != 0 }, w.split.missingLeft)
		n.Flags |= tree.Categorical
		if right {
			n.Flags |= tree.SetRight
		}
		n.Set, n.SetWords = int32(len(b.sets)), int32(len(words))
		b.sets = append(b.sets, words...)
	} else {
		n.Threshold = threshold(f, &w.split)
	}
	middle, sums := b.part(&w)
	b.nodes = append(b.nodes, tree.Node{}, tree.Node{})
	b.leaves++
	right := waiting{node: left + 1, depth: w.depth + 1, lo: middle, hi: w.hi, key: childKey(w.key, true), sums: w.sums.minus(sums)}
	// The values of classes stand in the order of nodes, so that the left child opens first;
	// it is split first too, so that the later one must not stand behind it.
	at := len(b.waiting)
	b.open(waiting{node: left, depth: w.depth + 1, lo: w.lo, hi: middle, key: childKey(w.key, false), sums: sums}, random)
	came := len(b.waiting) > at
	b.open(right, random)
	if b.rules.leaves == 0 && came && len(b.waiting) == at+2 {
		b.waiting[at], b.waiting[at+1] = b.waiting[at+1], b.waiting[at]
	}
}

// threshold returns the threshold of a split: of all cuts between the bins of the node's
// rows that it parts, the one nearest to the middle of the outermost.
func threshold(f *bins.Feature, s *split) float64 {
	if s.pos < 0 {
		return math.Inf(-1)
	}
	last := max(s.pos, s.next-1)
	middle := float64(f.Cuts[s.pos])/2 + float64(f.Cuts[last])/2
	return float64(f.Cuts[nearest(f.Cuts, s.pos, last, middle)])
}

// part brings the entries of a node that go left before those that go right, in the order
// they had, and returns where these begin, and the sums of the former.
func (b *builder) part(w *waiting) (middle int, left sums) {
	c := &b.t.cols[w.split.col]
	var goes [256]uint8
	for bin := range int(c.missing) {
		if w.split.categorical && w.split.set[bin>>6]>>(bin&63)&1 != 0 || !w.split.categorical && bin <= w.split.pos {
			goes[bin] = 1
		}
	}
	if w.split.missingLeft {
		goes[c.missing] = 1
	}
	e, spare := b.entries[w.lo:w.hi], b.spare
	l, r := 0, 0
	for i := range e {
		x := e[i]
		g := int(goes[c.decode[c.bins[int(x.row)*c.stride]]])
		e[l], spare[r] = x, x
		l += g
		r += 1 - g
	}
	copy(e[l:], spare[:r])
	left = w.split.left
	left.n = l
	return w.lo + l, left
}
