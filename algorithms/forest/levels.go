package forest

import (
	"context"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// levels grows trees if no subtask has a copy of all rows. The trees are the same, bit for bit,
// as those of a builder with all rows. It works in passes. For a node of many rows, each
// subtask sums up its rows for each bin of the features that the node tries. The total over all
// subtasks decides the split. The rows of a node of few rows are sent to one subtask, whose
// builder grows the subtree below the node. All subtasks have the same open nodes and make the
// same decisions, so they exchange only sums, rows and grown subtrees. Sums are integers, so
// their order does not matter.
type levels struct {
	t       *table // has the subtask's rows
	rules   rules
	sampler *sampler
	finder  *finder
	task    int
	tasks   int
	budget  int64 // largest number of bytes of sums, and of rows, that a pass sends
	rowSize int   // number of bytes of a row that is sent
	rowBins int   // number of bytes of the bins of a row
	active  int   // largest number of trees that grow at the same time

	growing []*growingTree // trees that currently grow
	free    []*growingTree
	next    int // number of the next tree to begin; until is the number after the last tree
	until   int
	done    []finished

	large, small []*openNode // open nodes of many and of few rows, in the order in which they were made
	asked        []*openNode // the nodes of large whose sums this pass sends
	sent         []*openNode // the nodes of small whose rows this pass sends
	cols         []int32
	builder      *builder
	subtree      tree.Tree // memory for the subtree that is being decoded
	times        []uint8

	sums   []int64   // sums of the open nodes in asked
	ranges []float64 // for each node in asked: the largest label and the negated smallest label
	rows   []uint8   // encoded rows of the open nodes in sent
	grown  []uint8   // encoded subtrees that this subtask has grown
}

// finished is a completed tree.
type finished struct {
	number int
	tree   tree.Tree
}

// growingTree is a tree that is not complete yet.
type growingTree struct {
	number  int
	random  sharding.Random
	entries []entry // the subtask's rows that the tree draws
	spare   []entry
	t       tree.Tree
	weight  int64 // total weight of the tree's rows on all subtasks
	open    int   // number of its open nodes
}

// openNode is a node for which it is not yet decided whether it is split.
type openNode struct {
	of     *growingTree
	node   int32
	depth  int
	key    uint64
	lo, hi int // the node has the subtask's entries lo to hi−1
	root   bool
	sums   sums    // sums over the node's rows on all subtasks
	counts []int64 // weights of classes, if there are more than two
	tried  int     // number of features tried so far
}

func newLevels(t *table, r rules, s *sampler, task, tasks int, memory, rows int64) *levels {
	l := &levels{t: t, rules: r, sampler: s, finder: newFinder(t, r), task: task, tasks: tasks}
	l.finder.keeping = true
	for i := range t.cols {
		l.rowBins += t.cols[i].bytes()
	}
	l.rowSize = l.rowBins + 4 + 8 + 8
	l.budget = memory / 4
	// Half of the memory is for the entries of the growing trees, on all subtasks together.
	l.active = int(max(1, memory/2/(16*max(1, rows))))
	return l
}

// begin starts a batch of trees.
func (l *levels) begin(next, until int) { l.next, l.until, l.done = next, until, l.done[:0] }

// over reports whether all trees of the batch are complete.
func (l *levels) over() bool { return len(l.growing) == 0 && l.next == l.until }

// trees returns the trees of the batch in the order of their numbers.
func (l *levels) trees() []tree.Tree {
	slices.SortFunc(l.done, func(a, b finished) int { return a.number - b.number })
	trees := make([]tree.Tree, len(l.done))
	for i := range trees {
		trees[i] = l.done[i].tree
	}
	return trees
}

// ask prepares the data that a pass sends.
func (l *levels) ask() {
	for len(l.growing) < l.active && l.next < l.until {
		l.start(l.next)
		l.next++
	}
	l.sums, l.ranges, l.rows = l.sums[:0], l.ranges[:0], l.rows[:0]
	l.asked, l.sent = l.asked[:0], l.sent[:0]
	for _, b := range l.large {
		need := l.need(b)
		if len(l.asked) > 0 && 8*int64(len(l.sums)+need) > l.budget {
			break
		}
		l.sumUp(b, need)
		l.asked = append(l.asked, b)
	}
	size := int64(0)
	for _, b := range l.small {
		if size += int64(b.sums.n * l.rowSize); len(l.sent) > 0 && size > l.budget {
			break
		}
		l.rows = l.t.appendRows(l.rows, b.of.entries[b.lo:b.hi])
		l.sent = append(l.sent, b)
	}
}

// start begins the tree with the given number.
func (l *levels) start(number int) {
	s := &growingTree{}
	if k := len(l.free); k > 0 {
		s, l.free = l.free[k-1], l.free[:k-1]
	}
	*s = growingTree{number: number, random: sharding.NewRandom(l.rules.seed, purposeFeatures, -1, number), entries: s.entries, spare: s.spare, open: 1}
	s.entries, l.times = l.t.draw(l.sampler, number, s.entries[:0], l.times)
	if len(s.spare) < len(s.entries) {
		s.spare = make([]entry, len(s.entries))
	}
	s.t = tree.Tree{Nodes: []tree.Node{{}}, Weight: 1}
	l.growing = append(l.growing, s)
	l.large = append(l.large, &openNode{of: s, key: rootKey, hi: len(s.entries), root: true})
}

// columns returns the columns that an open node tries next.
func (l *levels) columns(b *openNode) []int32 {
	to := min(b.tried+l.rules.tried, len(l.t.cols))
	l.cols = l.finder.drawn(nodeDraws{b.of.random, b.key}, b.tried, to, l.cols[:0])
	return l.cols
}

// need returns the number of integers that are sent for an open node: the sums of all its rows,
// and the sums of each bin of each column that it tries.
func (l *levels) need(b *openNode) int {
	bins := 1
	for _, col := range l.columns(b) {
		bins += l.t.cols[col].missing + 1
	}
	return bins * loadWidth(l.t.classes)
}

// sumUp adds up the subtask's rows of an open node in l.sums, which the pass sends.
func (l *levels) sumUp(b *openNode, need int) {
	at := len(l.sums)
	for range need {
		l.sums = append(l.sums, 0)
	}
	out, e := l.sums[at:], b.of.entries[b.lo:b.hi]
	width := loadWidth(l.t.classes)
	hi, lo := math.Inf(-1), math.Inf(-1)
	for i := range e {
		l.t.count(out[:width], &e[i])
		y := l.t.label[e[i].row]
		hi, lo = max(hi, y), max(lo, -y)
	}
	l.ranges = append(l.ranges, hi, lo)
	out = out[width:]
	for _, col := range l.columns(b) {
		c := &l.t.cols[col]
		for i := range e {
			bin := c.bin(e[i].row)
			l.t.count(out[bin*width:(bin+1)*width], &e[i])
		}
		out = out[(c.missing+1)*width:]
	}
}

// count adds an entry to slot, the integers that histogram.load reads for one bin.
func (t *table) count(slot []int64, e *entry) {
	slot[0]++
	if t.classes > 2 {
		slot[1+e.g] += int64(e.w)
		return
	}
	slot[1] += e.g
	slot[2] += int64(e.w)
}

// answer processes the sums, ranges and rows of all subtasks. It decides about the nodes in
// asked. It also grows the subtrees of this subtask's share of the nodes in sent.
func (l *levels) answer(ctx context.Context, all []int64, ranges []float64, rows []uint8) error {
	l.large = l.large[len(l.asked):]
	for i, b := range l.asked {
		n := l.need(b)
		l.decide(b, all[:n], ranges[2*i] == -ranges[2*i+1])
		all = all[n:]
	}
	l.small = l.small[len(l.sent):]
	return l.grow(ctx, rows)
}

// decide splits an open node, makes it a leaf, or lets it try more features in the next pass.
// same means that all rows of the node have the same label.
func (l *levels) decide(b *openNode, all []int64, same bool) {
	f, width := l.finder, loadWidth(l.t.classes)
	if b.root {
		l.meet(b, all[:width])
	}
	all = all[width:]
	several := l.t.classes > 2
	if several {
		f.openCounts(b.counts)
	}
	if b.tried == 0 {
		n := &b.of.t.Nodes[b.node]
		values := l.t.value(n, b.sums, &f.histogram, nil)
		copy(b.of.t.Values[int(b.node)*l.t.classes:], values)
		if pure := l.t.classes == 0 && same || (l.t.classes > 0 || b.sums.n == 0) && l.t.pure(b.sums, &f.histogram); pure || !l.rules.may(b.depth, b.sums.n) {
			l.close(b)
			return
		}
	}
	cols := l.columns(b)
	f.draws, f.found = nodeDraws{b.of.random, b.key}, false
	for i, col := range cols {
		if b.tried+i >= l.rules.tried && f.found {
			break
		}
		c := &l.t.cols[col]
		n := (c.missing + 1) * width
		f.load(c.missing, l.t.classes, all[:n])
		f.trySplits(int(col), b.sums)
		f.clear(c.missing)
		all = all[n:]
	}
	b.tried += len(cols)
	split, ok := f.finish(b.sums)
	switch {
	case ok && l.rules.enough(split.gain, float64(b.of.weight)*l.t.wUnit):
		l.fork(b, &split)
	case !ok && b.tried < len(l.t.cols):
		l.large = append(l.large, b)
	default:
		l.close(b)
	}
}

// meet sets the sums of the root b of a tree from all, the sums over all rows of the tree.
func (l *levels) meet(b *openNode, all []int64) {
	b.root = false
	b.sums.n = int(all[0])
	if l.t.classes > 2 {
		b.counts = append([]int64(nil), all[1:]...)
		for _, w := range b.counts {
			b.sums.w += w
		}
	} else {
		b.sums.g, b.sums.w = all[1], all[2]
	}
	b.of.weight = b.sums.w
	b.of.t.Values = make([]float64, l.t.classes)
}

// fork makes an open node a split, and opens its two children.
func (l *levels) fork(b *openNode, s *split) {
	t := &b.of.t
	left := int32(len(t.Nodes))
	t.Sets = l.t.write(&t.Nodes[b.node], s, left, t.Sets)
	t.Nodes = append(t.Nodes, tree.Node{}, tree.Node{})
	t.Values = append(t.Values, make([]float64, 2*l.t.classes)...)
	middle := b.lo + l.t.part(b.of.entries[b.lo:b.hi], b.of.spare, s)
	one := &openNode{of: b.of, node: left, depth: b.depth + 1, key: childKey(b.key, false), lo: b.lo, hi: middle, sums: s.left}
	two := &openNode{of: b.of, node: left + 1, depth: b.depth + 1, key: childKey(b.key, true), lo: middle, hi: b.hi, sums: b.sums.minus(s.left)}
	if l.t.classes > 2 {
		one.counts, two.counts = make([]int64, l.t.classes), append([]int64(nil), b.counts...)
		for i, k := range l.finder.in {
			one.counts[k] = l.finder.kept[i]
			two.counts[k] -= l.finder.kept[i]
		}
	}
	b.of.open++
	for _, x := range []*openNode{one, two} {
		if int64(x.sums.n)*int64(l.rowSize) <= l.budget {
			l.small = append(l.small, x)
		} else {
			l.large = append(l.large, x)
		}
	}
}

// close records that an open node has been decided. If it was the last open node of its tree,
// the tree is complete.
func (l *levels) close(b *openNode) {
	s := b.of
	if s.open--; s.open > 0 {
		return
	}
	l.done = append(l.done, finished{s.number, inBuilderOrder(&s.t, l.t.classes, l.rules.leaves)})
	for i := range l.growing {
		if l.growing[i] == s {
			l.growing = append(l.growing[:i], l.growing[i+1:]...)
			break
		}
	}
	l.free = append(l.free, s)
}
