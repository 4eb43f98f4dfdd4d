package forest

import (
	"context"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// builder grows trees on all rows of a job, one at a time. It belongs to one goroutine and
// keeps its memory from tree to tree. A tree depends only on the table, the rules and its
// number.
type builder struct {
	t       *table
	rules   rules
	sampler *sampler
	finder  *finder
	times   []uint8
	entries []entry
	spare   []entry
	waiting grow.Queue[waiting]
	total   int64 // total weight of the tree's rows

	nodes  []tree.Node
	sets   []uint32
	values []float64
	leaves int
}

// waiting is a node that is queued to be split.
type waiting struct {
	node, depth int32
	lo, hi      int // the node has the entries lo to hi−1
	key         uint64
	sums        sums
	split       split
}

func newBuilder(t *table, r rules, s *sampler) *builder {
	b := &builder{t: t, rules: r, sampler: s, finder: newFinder(t, r)}
	if r.leaves > 0 {
		b.waiting.Before = (*waiting).before
	}
	return b
}

// grow returns the tree with the given number. The builder owns the memory of the tree and
// reuses it for the next one. If ctx ends, grow returns an unfinished tree.
func (b *builder) grow(ctx context.Context, number int) tree.Tree {
	b.draw(number)
	var all sums
	for i := range b.entries {
		all.g += b.entries[i].g
		all.w += int64(b.entries[i].w)
	}
	b.total = all.w
	return b.run(ctx, number, waiting{hi: len(b.entries), key: rootKey, sums: all})
}

// run grows the tree with the given number from the node from, whose entries the builder
// already has. Ownership and ctx are as in grow.
func (b *builder) run(ctx context.Context, number int, from waiting) tree.Tree {
	b.nodes, b.sets, b.values, b.waiting.Nodes = b.nodes[:0], b.sets[:0], b.values[:0], b.waiting.Nodes[:0]
	b.leaves = 1
	b.finder.narrow = b.t.classes == 2 && from.sums.w < 1<<32
	random := sharding.NewRandom(b.rules.seed, purposeFeatures, -1, number)
	b.nodes = append(b.nodes, tree.Node{})
	b.open(from, random)
	for len(b.waiting.Nodes) > 0 && (b.rules.leaves == 0 || b.leaves < b.rules.leaves) && ctx.Err() == nil {
		b.divide(b.waiting.Pop(), random)
	}
	t := tree.Tree{Nodes: b.nodes, Weight: 1}
	if len(b.sets) > 0 {
		t.Sets = b.sets
	}
	if b.t.classes > 0 {
		t.Values = b.values
	}
	return t
}

// draw sets the entries of the builder to the rows that the tree with the given number draws.
func (b *builder) draw(number int) {
	b.entries, b.times = b.t.draw(b.sampler, number, b.entries[:0], b.times)
	if len(b.spare) < b.t.rows {
		b.spare = make([]entry, b.t.rows)
	}
}

// draw appends to entries the rows that a tree draws. times is memory that is reused.
func (t *table) draw(s *sampler, number int, entries []entry, times []uint8) ([]entry, []uint8) {
	if cap(entries) == 0 {
		entries = make([]entry, 0, t.rows)
	}
	if len(times) < t.rows {
		times = make([]uint8, t.rows)
	}
	for _, span := range t.spans {
		s.draw(number, span.Shard, times[span.First:span.First+span.Rows])
	}
	several := t.classes > 2
	for i, k := range times[:t.rows] {
		if k == 0 || t.w[i] == 0 {
			continue
		}
		g := t.g[i]
		if !several {
			g *= int64(k)
		}
		entries = append(entries, entry{uint32(i), t.w[i] * uint32(k), g})
	}
	return entries, times
}

// before reports whether w is split before o if the number of leaves is bounded. The node with
// the larger gain is split first; of equal gains, the node with the lower number.
func (w *waiting) before(o *waiting) bool {
	return w.split.gain > o.split.gain || w.split.gain == o.split.gain && w.node < o.node
}

// open sets the values of a node, and queues the node if there is a split for it.
func (b *builder) open(w waiting, random sharding.Random) {
	e := b.entries[w.lo:w.hi]
	w.sums.n = len(e)
	if b.t.classes > 2 {
		b.finder.open(e, b.t.classes)
	}
	n := &b.nodes[w.node]
	b.values = b.t.value(n, w.sums, &b.finder.histogram, b.values)
	if !b.rules.may(int(w.depth), w.sums.n) || b.pure(e, w.sums) {
		return
	}
	var ok bool
	if w.split, ok = b.finder.find(e, w.sums, nodeDraws{random, w.key}); !ok || !b.rules.enough(w.split.gain, float64(b.total)*b.t.wUnit) {
		return
	}
	b.waiting.Push(w)
}

// may reports whether a node at the given depth with the given number of rows may be split.
func (r *rules) may(depth, rows int) bool {
	return depth < r.depth && rows >= r.minSplit && rows >= 2*r.minLeaf
}

// enough reports whether a split gains enough in a tree whose rows have the given weight.
func (r *rules) enough(gain, weight float64) bool {
	return r.minGain == 0 || gain >= float64(r.minGain*weight)
}

// value sets the cover, count and value of a node. For a classification it also appends the
// node's share of each class to values, which it returns. All numbers are integers until the
// last division. With more than two classes the weights of the classes are in h.
func (t *table) value(n *tree.Node, s sums, h *histogram, values []float64) []float64 {
	n.Cover, n.Count = float64(s.w)*t.wUnit, int64(s.n)
	switch {
	case t.classes == 0:
		if s.w > 0 {
			n.Value = t.centre + float64(float64(s.g)/float64(s.w)*(t.gUnit/t.wUnit))
		}
	case t.classes <= 2:
		values = append(values, share(s.w-s.g, s.w))
		if t.classes == 2 {
			values = append(values, share(s.g, s.w))
		}
	default:
		at := len(values)
		for range t.classes {
			values = append(values, 0)
		}
		for i, k := range h.in {
			values[at+int(k)] = share(h.total[i], s.w)
		}
	}
	return values
}

// share returns part/whole, and 0 if whole is 0.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// pure reports whether all rows of a node have the same label.
func (b *builder) pure(e []entry, s sums) bool {
	if b.t.classes > 0 || len(e) == 0 {
		return b.t.pure(s, &b.finder.histogram)
	}
	first := b.t.label[e[0].row]
	for i := range e {
		if b.t.label[e[i].row] != first {
			return false
		}
	}
	return true
}

// pure reports whether all rows of a node have the same label. It must be called only for
// classification, or for an empty node.
func (t *table) pure(s sums, h *histogram) bool {
	switch {
	case s.n == 0 || t.classes == 1:
		return true
	case t.classes == 2:
		return s.g == 0 || s.g == s.w
	}
	return len(h.in) == 1
}

// divide splits a node that was taken from the queue.
func (b *builder) divide(w waiting, random sharding.Random) {
	left := int32(len(b.nodes))
	b.sets = b.t.write(&b.nodes[w.node], &w.split, left, b.sets)
	middle := b.t.part(b.entries[w.lo:w.hi], b.spare, &w.split) + w.lo
	b.nodes = append(b.nodes, tree.Node{}, tree.Node{})
	b.leaves++
	right := waiting{node: left + 1, depth: w.depth + 1, lo: middle, hi: w.hi, key: childKey(w.key, true), sums: w.sums.minus(w.split.left)}
	// The class shares of nodes are stored in the order of the nodes, so the left child is
	// opened first. It must also be split first, so the right child must not come before it in
	// the queue.
	at := len(b.waiting.Nodes)
	b.open(waiting{node: left, depth: w.depth + 1, lo: w.lo, hi: middle, key: childKey(w.key, false), sums: w.split.left}, random)
	came := len(b.waiting.Nodes) > at
	b.open(right, random)
	if w := b.waiting.Nodes; b.rules.leaves == 0 && came && len(w) == at+2 {
		w[at], w[at+1] = w[at+1], w[at]
	}
}

// write turns a node into a split. left is the number of its left child; the right child has
// the number left+1.
func (t *table) write(n *tree.Node, s *split, left int32, sets []uint32) []uint32 {
	f := &t.layout.Features[s.feature]
	n.Feature, n.Left, n.Right, n.Gain = int32(f.Number), left, left+1, s.gain
	if s.missingLeft {
		n.Flags |= tree.DefaultLeft
	}
	if !s.categorical {
		n.Threshold = threshold(f, s)
		return sets
	}
	words, right := f.Set(s.goes, s.missingLeft)
	n.Flags |= tree.Categorical
	if right {
		n.Flags |= tree.SetRight
	}
	n.Set, n.SetWords = int32(len(sets)), int32(len(words))
	return append(sets, words...)
}

// threshold returns the threshold of a split. If several cuts divide the node's rows in the
// same way, it returns the cut nearest to the middle between the outermost of these cuts.
func threshold(f *bins.Feature, s *split) float64 {
	if s.pos < 0 {
		return math.Inf(-1)
	}
	last := max(s.pos, s.next-1)
	middle := float64(float64(f.Cuts[s.pos])/2) + float64(float64(f.Cuts[last])/2)
	return float64(f.Cuts[nearest(f.Cuts, s.pos, last, middle)])
}

// part moves the entries of a node that go left before those that go right, and returns the
// index of the first entry that goes right. The entries of each side keep their order. spare is
// working memory for all entries of the node.
func (t *table) part(e, spare []entry, s *split) int {
	c := &t.cols[s.col]
	if c.wide != nil {
		return c.part(e, spare, s)
	}
	var goes [256]uint8
	for bin := range int(c.missing) {
		if s.categorical && s.set[bin>>6]>>(bin&63)&1 != 0 || !s.categorical && bin <= s.pos {
			goes[bin] = 1
		}
	}
	if s.missingLeft {
		goes[c.missing] = 1
	}
	l, r := 0, 0
	for i := range e {
		x := e[i]
		g := int(goes[c.decode[c.bins[int(x.row)*c.stride]]])
		e[l], spare[r] = x, x
		l += g
		r += 1 - g
	}
	copy(e[l:], spare[:r])
	return l
}

// part does what table.part does, for a column with bins of two bytes.
func (c *column) part(e, spare []entry, s *split) int {
	l, r := 0, 0
	for i := range e {
		x := e[i]
		bin := int(c.wide[x.row])
		if bin == c.missing && s.missingLeft || bin != c.missing && s.goes(bin) {
			e[l] = x
			l++
		} else {
			spare[r] = x
			r++
		}
	}
	copy(e[l:], spare[:r])
	return l
}
