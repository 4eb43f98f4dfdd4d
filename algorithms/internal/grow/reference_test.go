package grow

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// The reference builder reads every row for every split, adds big integers, and splits one leaf
// at a time. It uses no code of the package except the draws.

// problem holds training data in plain slices.
type problem struct {
	features []bins.Feature // names, cuts or codes, and numbers of bins; layout sets columns and slots
	bins     [][]int        // bins[r][f] is the bin of feature f in row r
	g, h     [][]float64    // g[k][r] and h[k][r] are gradient and hessian of row r in target k
	bag      [][]int32      // bag of each tree; nil if it has all rows
	trees    int
	first    int
	wide     map[int]bool // features in columns of two bytes
	large    bool         // whether the job is treated as large, so that packed pairs may be used
	tight    bool         // whether the limits passBytes and keptBytes are small
}

// exact has the sums of a node as big integers.
type exact []*big.Int

func (e exact) float(i int) float64 {
	if !e[i].IsInt64() {
		panic("a sum does not fit")
	}
	return float64(e[i].Int64())
}

func (e exact) isZero() bool {
	for _, v := range e {
		if v.Sign() != 0 {
			return false
		}
	}
	return true
}

// unitOf returns the unit in which values of at most m are rounded to integers of at most
// 2^bits. The unit is 2^(e-bits), where 2^e is the smallest power of two that is not below m.
func unitOf(m float64, bits int) float64 {
	e := -900
	for m > math.Ldexp(1, e) {
		e++
	}
	return math.Ldexp(1, e-bits)
}

// rounded returns x/unit, rounded half to even.
func rounded(x, unit float64) *big.Int {
	q := new(big.Rat).Quo(new(big.Rat).SetFloat64(x), new(big.Rat).SetFloat64(unit))
	twice := new(big.Rat).Mul(q, big.NewRat(2, 1))
	floor := new(big.Int).Div(q.Num(), q.Denom())
	half := new(big.Rat).Sub(twice, new(big.Rat).SetInt(new(big.Int).Lsh(floor, 1))) // twice the fractional part, from 0 to 2
	switch half.Cmp(big.NewRat(1, 1)) {
	case 1:
		floor.Add(floor, big.NewInt(1))
	case 0:
		floor.Add(floor, new(big.Int).And(floor, big.NewInt(1)))
	}
	return floor
}

// builder grows one tree.
type builder struct {
	p            *Params
	x            *problem
	rows         []int32
	coarse, fine []exact // the pairs of each row
	unit, fines  [2]float64
	draws        draws
	features     []int32
	nodes        []*refNode
	target       int
}

type refNode struct {
	parent, left int
	depth        int
	path         uint64
	rows         []int32
	sums         exact
	lo, hi       float64
	gain         float64
	open         bool
	best         *refSplit
}

type refSplit struct {
	feature, place int
	missingLeft    bool
	categorical    bool
	left           map[int]bool // left[b] is set if bin b goes left
	score          float64
	sums           exact
	// These are set with LearnCategories. soft has the shrunk gradients, sorted has the
	// categories on the left in sorted order, and some is set if the feature is missing in at
	// least one row.
	soft   map[int]float64
	sorted []int
	some   bool
}

// prepare rounds the gradients and hessians of all rows to integers.
func (b *builder) prepare(target int) {
	x, n := b.x, len(b.x.bins)
	b.target = target
	lenBits := 0
	for 1<<lenBits < n {
		lenBits++
	}
	fine := 62 - lenBits
	if x.large {
		fine = min(fine, 48)
	}
	one := big.NewInt(1)
	b.coarse, b.fine = make([]exact, n), make([]exact, n)
	g, h := slices.Clone(x.g[target]), slices.Clone(x.h[target])
	var most [2]float64
	for r := range n {
		most[0], most[1] = max(most[0], math.Abs(g[r])), max(most[1], math.Abs(h[r]))
		if x.large {
			g[r], h[r] = float64(float32(g[r])), float64(float32(h[r]))
		}
	}
	b.fines = [2]float64{unitOf(most[0], fine), unitOf(most[1], fine)}
	b.unit = b.fines
	if x.large {
		packed := [2]float64{unitOf(most[0], 17), unitOf(most[1], 17)}
		var spread [2]float64
		for r := range n {
			spread[0] += math.Abs(float64(rounded(g[r], packed[0]).Int64()))
			spread[1] += math.Abs(float64(rounded(h[r], packed[1]).Int64()))
		}
		even := true
		for _, s := range spread {
			even = even && (s == 0 || s/float64(n) >= 128)
		}
		if even {
			b.unit = packed
		}
	}
	for r := range n {
		b.coarse[r] = exact{rounded(g[r], b.unit[0]), rounded(h[r], b.unit[1]), one}
		b.fine[r] = exact{rounded(g[r], b.fines[0]), rounded(h[r], b.fines[1]), one}
	}
}

func (b *builder) sum(of []exact, rows []int32, keep func(row int32) bool) exact {
	sum := make(exact, len(of[0]))
	for i := range sum {
		sum[i] = new(big.Int)
	}
	for _, r := range rows {
		if keep(r) {
			for i := range sum {
				sum[i].Add(sum[i], of[r][i])
			}
		}
	}
	return sum
}

func always(int32) bool { return true }

// value returns the leaf value by its definition: it minimises the penalised second-order loss
// within the bounds.
func (b *builder) value(g, h, lambda, lo, hi float64) float64 {
	if h+lambda <= 0 {
		return min(max(0, lo), hi)
	}
	t := math.Copysign(max(math.Abs(g)-b.p.Alpha, 0), g)
	if t == 0 {
		t = 0
	}
	w := -t / (h + lambda)
	if b.p.MaxDeltaStep > 0 {
		w = min(max(w, -b.p.MaxDeltaStep), b.p.MaxDeltaStep)
	}
	return min(max(w, lo), hi)
}

func (b *builder) score(e exact, lambda, lo, hi float64) float64 {
	return b.scoreOf(e.float(0)*b.unit[0], e.float(1)*b.unit[1], lambda, lo, hi)
}

// scoreOf returns the score of a node with gradient sum g and hessian sum h.
func (b *builder) scoreOf(g, h, lambda, lo, hi float64) float64 {
	if h+lambda <= 0 {
		return 0
	}
	t := max(math.Abs(g)-b.p.Alpha, 0)
	w := b.value(g, h, lambda, lo, hi)
	if w == b.value(g, h, lambda, math.Inf(-1), math.Inf(1)) && (b.p.MaxDeltaStep == 0 || math.Abs(-t/(h+lambda)) == math.Abs(w)) {
		return float64(t*t) / (h + lambda)
	}
	return -(2*float64(g*w) + float64(float64((h+lambda)*w)*w) + 2*float64(b.p.Alpha*math.Abs(w)))
}

// weightOf returns the sum of hessians in e.
func (b *builder) weightOf(e exact) float64 { return e.float(1) * b.unit[1] }

func (b *builder) childOK(e exact, lambda float64) bool {
	if e[len(e)-1].Int64() < int64(max(b.p.MinRows, 1)) || b.weightOf(e) < b.p.MinChildWeight {
		return false
	}
	return !e[:2].isZero() && b.weightOf(e)+lambda > 0
}

// place adds a node, finds its best split if the depth allows one, and returns its index.
func (b *builder) place(v *refNode) int {
	v.sums = b.sum(b.coarse, v.rows, always)
	b.nodes = append(b.nodes, v)
	if b.p.MaxDepth < 0 || v.depth < b.p.MaxDepth {
		b.look(v)
	}
	return len(b.nodes) - 1
}

// grow grows the tree with the given number in the batch, one leaf after the other.
func (b *builder) grow(tree int) {
	var draw uint64
	b.draws, draw = treeDraws(b.p.Seed, b.x.first+tree)
	for f := range b.x.features {
		if b.x.features[f].Bins > 0 {
			b.features = append(b.features, int32(f))
		}
	}
	b.features = part(b.features, b.p.ByTree, draw)
	b.place(&refNode{parent: -1, path: 1, rows: b.rows, lo: math.Inf(-1), hi: math.Inf(1)})
	for leaves := 1; b.p.MaxLeaves == 0 || leaves < b.p.MaxLeaves; leaves++ {
		next := -1
		for i, v := range b.nodes {
			if v.open && (next < 0 || b.earlier(v, b.nodes[next])) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		b.split(next)
	}
}

// earlier reports whether v is split before w.
func (b *builder) earlier(v, w *refNode) bool {
	if !b.p.LeafWise && v.depth != w.depth {
		return v.depth < w.depth
	}
	return cmp.Or(-cmp.Compare(v.gain, w.gain), cmp.Compare(v.depth, w.depth), cmp.Compare(v.path, w.path)) < 0
}

func (b *builder) split(n int) {
	v := b.nodes[n]
	s := v.best
	v.open = false
	l := &refNode{parent: n, depth: v.depth + 1, path: 2 * v.path, lo: v.lo, hi: v.hi}
	r := &refNode{parent: n, depth: v.depth + 1, path: 2*v.path + 1, lo: v.lo, hi: v.hi}
	for _, row := range v.rows {
		bin := b.x.bins[row][s.feature]
		left := s.left[bin]
		if bin == b.x.features[s.feature].Bins {
			left = s.missingLeft
		}
		if left {
			l.rows = append(l.rows, row)
		} else {
			r.rows = append(r.rows, row)
		}
	}
	if b.p.Monotone != nil && !s.categorical {
		wl, wr := b.coarseValue(l, v), b.coarseValue(r, v)
		switch b.p.Monotone[b.x.features[s.feature].Number] {
		case 1:
			l.hi, r.lo = (wl+wr)/2, (wl+wr)/2
		case -1:
			l.lo, r.hi = (wl+wr)/2, (wl+wr)/2
		}
	}
	v.left = b.place(l)
	b.place(r)
}

// coarseValue returns the value of a child within the bounds of its parent.
func (b *builder) coarseValue(child, parent *refNode) float64 {
	sums := b.sum(b.coarse, child.rows, always)
	return b.value(sums.float(0)*b.unit[0], sums.float(1)*b.unit[1], b.p.Lambda, parent.lo, parent.hi)
}

// tree returns the tree, with nodes level by level or in the order of splits, and the leaf of
// each row in the bag.
func (b *builder) tree() (tree.Tree, map[int32]int32) {
	order := []int{0}
	if b.p.LeafWise {
		for i := 1; i < len(b.nodes); i++ {
			order = append(order, i)
		}
	} else {
		for i := 0; i < len(order); i++ {
			if v := b.nodes[order[i]]; v.left != 0 {
				order = append(order, v.left, v.left+1)
			}
		}
	}
	at := map[int]int32{}
	for i, n := range order {
		at[n] = int32(i)
	}
	t, leaf := tree.Tree{Weight: 1}, map[int32]int32{}
	for i, n := range order {
		v := b.nodes[n]
		sums := b.sum(b.fine, v.rows, always)
		node := tree.Node{Count: int64(len(v.rows))}
		b.unit, b.fines = b.fines, b.unit
		node.Cover = b.weightOf(sums)
		b.unit, b.fines = b.fines, b.unit
		node.Value = b.value(sums.float(0)*b.fines[0], sums.float(1)*b.fines[1], b.p.Lambda, v.lo, v.hi) + 0
		if v.left == 0 {
			for _, r := range v.rows {
				leaf[r] = int32(i)
			}
			t.Nodes = append(t.Nodes, node)
			continue
		}
		f := &b.x.features[v.best.feature]
		node.Feature, node.Gain, node.Left, node.Right = int32(f.Number), v.gain, at[v.left], at[v.left+1]
		if v.best.missingLeft {
			node.Flags |= tree.DefaultLeft
		}
		switch {
		case v.best.categorical:
			words, setRight := f.Set(func(bin int) bool { return v.best.left[bin] }, v.best.missingLeft)
			node.Flags |= tree.Categorical
			if setRight {
				node.Flags |= tree.SetRight
			}
			node.Set, node.SetWords = int32(len(t.Sets)), int32(len(words))
			t.Sets = append(t.Sets, words...)
		case v.best.place < 0:
			node.Threshold = math.Inf(-1)
		default:
			node.Threshold = float64(f.Cuts[v.best.place])
		}
		t.Nodes = append(t.Nodes, node)
	}
	return t, leaf
}
