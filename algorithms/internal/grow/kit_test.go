package grow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// These are the ways in which a layout can store a feature.
const (
	asColumn = iota
	asBundle
	asSparse
	asNothing
	asWide
)

// randomProblem returns a random problem of n rows and the storage of each feature. Features
// have few bins and missing values, and gradients repeat, so that equal gains are common.
func randomProblem(rng *rand.Rand, n int) (*problem, []int) {
	x := &problem{bins: make([][]int, n), trees: 1 + rng.IntN(3), first: rng.IntN(5), large: rng.IntN(2) == 0, tight: rng.IntN(4) == 0}
	count := 1 + rng.IntN(7)
	kinds := make([]int, count)
	for f := range count {
		feature := bins.Feature{Name: fmt.Sprint("f", f), Number: f, Column: -1, Slot: -1, Implicit: -1}
		feature.Bins = 1 + rng.IntN(9)
		kinds[f] = rng.IntN(5)
		if kinds[f] == asNothing && rng.IntN(3) > 0 {
			kinds[f] = asColumn
		}
		if feature.Categorical = rng.IntN(3) == 0 || kinds[f] == asWide; feature.Categorical {
			for b := range feature.Bins {
				feature.Codes = append(feature.Codes, int32(3*b+rng.IntN(3)))
			}
		} else {
			for b := range feature.Bins - 1 {
				feature.Cuts = append(feature.Cuts, float32(b)+0.5)
			}
		}
		switch kinds[f] {
		case asNothing:
			feature.Bins, feature.Cuts, feature.Codes = 0, nil, nil
		case asBundle, asSparse:
			feature.Implicit = rng.IntN(feature.Bins + 1)
		}
		x.features = append(x.features, feature)
	}
	missing := rng.IntN(3) // 0: no missing values, 1: some, 2: many
	for r := range n {
		x.bins[r] = make([]int, count)
		bundled := false
		for f := range x.features {
			feature := &x.features[f]
			bin := rng.IntN(feature.Bins + 1)
			if missing == 0 || missing == 1 && rng.IntN(3) > 0 {
				bin = rng.IntN(max(feature.Bins, 1))
			}
			switch {
			case kinds[f] == asNothing:
				bin = 0
			case kinds[f] == asBundle && (bundled || rng.IntN(2) == 0):
				bin = feature.Implicit
			case kinds[f] == asSparse && rng.IntN(2) == 0:
				bin = feature.Implicit
			}
			bundled = bundled || kinds[f] == asBundle && bin != feature.Implicit
			x.bins[r][f] = bin
		}
	}
	randomTargets(rng, x, n)
	return x, kinds
}

func randomTargets(rng *rand.Rand, x *problem, n int) {
	coarse := rng.IntN(2) == 0
	heavy := rng.IntN(4) == 0
	targets := 1 + rng.IntN(x.trees)
	for range targets {
		g, h := make([]float64, n), make([]float64, n)
		for r := range n {
			g[r], h[r] = rng.NormFloat64(), rng.Float64()
			if coarse {
				g[r], h[r] = math.Round(2*g[r]), math.Round(2*h[r])
			}
			if heavy && rng.IntN(20) == 0 {
				g[r] *= 1e5
			}
		}
		x.g, x.h = append(x.g, g), append(x.h, h)
	}
	x.bag = make([][]int32, x.trees)
	for k := range x.bag {
		if rng.IntN(3) == 0 {
			x.bag[k] = []int32{}
			for r := range n {
				if rng.IntN(3) > 0 {
					x.bag[k] = append(x.bag[k], int32(r))
				}
			}
			if len(x.bag[k]) == 0 {
				x.bag[k] = append(x.bag[k], 0)
			}
		}
	}
}

// layout returns a layout in which each feature of the problem has the kind of storage in
// kinds.
func (x *problem) layout(rng *rand.Rand, kinds []int) *bins.Layout {
	l := &bins.Layout{Features: x.features}
	x.wide = map[int]bool{}
	var bundle []int
	for f, kind := range kinds {
		feature := &l.Features[f]
		switch kind {
		case asColumn:
			feature.Column, feature.Slot = len(l.Columns), l.Slots
			l.Columns = append(l.Columns, bins.Column{Slot: l.Slots, Width: feature.Bins + 1, Features: []int{f}})
			l.Slots += feature.Bins + 1
		case asBundle:
			bundle = append(bundle, f)
		}
	}
	if len(bundle) > 0 {
		c := bins.Column{Slot: l.Slots, Width: 1, Features: bundle}
		for _, f := range bundle {
			feature := &l.Features[f]
			feature.Column, feature.Slot = len(l.Columns), l.Slots+c.Width
			c.Width += feature.Bins
		}
		l.Slots += c.Width
		l.Columns = append(l.Columns, c)
	}
	for f, kind := range kinds {
		if kind == asWide {
			l.Wide = append(l.Wide, f)
			x.wide[f] = true
			l.Features[f].Slot = l.Slots
			l.Slots += l.Features[f].Bins + 1
		}
	}
	l.ColumnSlots = l.Slots
	for f, kind := range kinds {
		if kind == asSparse {
			l.Features[f].Slot = l.Slots
			l.Slots += l.Features[f].Bins
		}
	}
	most := 1 + rng.IntN(4)
	for c := range l.Columns {
		l.Columns[c].Block, l.Columns[c].Offset = c/most, c%most
	}
	return l
}

// data returns the data of a subtask with the rows [lo, hi).
func (x *problem) data(l *bins.Layout, lo, hi int) *bins.Data {
	d := &bins.Data{Facts: &bins.Facts{Rows: int64(len(x.bins))}, Layout: l, Rows: hi - lo}
	for c := range l.Columns {
		column := &l.Columns[c]
		if column.Offset == 0 {
			d.Blocks = append(d.Blocks, bins.Block{First: c})
		}
		d.Blocks[column.Block].Stride++
	}
	for b := range d.Blocks {
		d.Blocks[b].Bins = make([]byte, d.Rows*d.Blocks[b].Stride)
	}
	for range l.Wide {
		d.Wide = append(d.Wide, make([]uint16, d.Rows))
	}
	sparse := l.Slots > l.ColumnSlots
	if sparse {
		d.Sparse.RowPtr = []int64{0}
	}
	for r := range d.Rows {
		for f := range l.Features {
			feature := &l.Features[f]
			slot := feature.SlotOf(x.bins[lo+r][f])
			wide := l.WideColumn(f)
			switch {
			case slot < 0:
			case wide >= 0:
				d.Wide[wide][r] = uint16(x.bins[lo+r][f])
			case feature.Column < 0:
				d.Sparse.Slots = append(d.Sparse.Slots, uint32(slot))
			default:
				c := &l.Columns[feature.Column]
				block := &d.Blocks[c.Block]
				block.Bins[r*block.Stride+c.Offset] = byte(slot - c.Slot)
			}
		}
		if sparse {
			d.Sparse.RowPtr = append(d.Sparse.RowPtr, int64(len(d.Sparse.Slots)))
		}
	}
	return d
}

// outcome is the result of a run. leaves and routed have, for each tree, the leaf of each row,
// from State.Leaves and State.Route. bags has, for each tree, the rows in the bag of each leaf.
type outcome struct {
	trees  []tree.Tree
	leaves [][]int32
	routed [][]int32
	bags   []map[int32][]int32
}

// run grows the trees of a problem at parallelism p once in each superstep. rounds is the
// number of supersteps. It returns the outcome of the last superstep.
func (x *problem) run(t *testing.T, params Params, l *bins.Layout, p int, rounds int, options ...engine.Option) (outcome, *engine.Result) {
	t.Helper()
	g := New(params)
	g.packedFrom = math.MaxInt64
	if x.large {
		g.packedFrom = 0
	}
	if x.tight {
		g.passBytes, g.keptBytes = 3000, 1000
	}
	n := len(x.bins)
	var mu sync.Mutex
	out := outcome{leaves: make([][]int32, x.trees), routed: make([][]int32, x.trees), bags: make([]map[int32][]int32, x.trees)}
	for k := range x.trees {
		out.leaves[k], out.routed[k], out.bags[k] = make([]int32, n), make([]int32, n), map[int32][]int32{}
	}
	whole := x.data(l, 0, n)
	begin := func(ctx *comqueue.ComContext) error {
		own := sharding.Split(n, ctx.NumTask(), ctx.TaskID())
		s, ok := g.Lookup(ctx)
		if !ok {
			var err error
			if s, err = g.Open(ctx, x.data(l, own.Lo, own.Hi)); err != nil {
				return err
			}
		}
		x.begin(s, own)
		return nil
	}
	end := func(ctx *comqueue.ComContext) error {
		own := sharding.Split(n, ctx.NumTask(), ctx.TaskID())
		s := g.State(ctx)
		mu.Lock()
		defer mu.Unlock()
		if ctx.StepNo() < rounds {
			return nil
		}
		var unsorted error
		for k := range x.trees {
			copy(out.leaves[k][own.Lo:own.Hi], s.Leaves(k, nil))
			s.EachLeaf(k, func(node int32, rows []int32) {
				if !slices.IsSorted(rows) {
					unsorted = fmt.Errorf("the rows of leaf %d of tree %d are not in order: %v", node, k, rows)
				}
				for _, r := range rows {
					out.bags[k][node] = append(out.bags[k][node], r+int32(own.Lo))
				}
			})
			if ctx.TaskID() == 0 {
				out.trees = append(out.trees, *s.Tree(k))
				out.routed[k] = s.Route(k, whole, nil)
			} else if k < len(out.trees) {
				if err := sameTree(&out.trees[k], s.Tree(k)); err != nil {
					return err
				}
			}
		}
		return unsorted
	}
	result := trial.Run(t, func(b *engine.Builder) {
		q := comqueue.New(b, "growth").Do(begin)
		for _, stage := range g.Stages() {
			q.Add(stage)
		}
		rows := q.Add(comqueue.Named("end", comqueue.Do(end))).SetMaxIter(rounds).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]struct{ X int64 }, error) { return nil, nil })).Exec()
		engine.Collect(rows, "rows")
	}, append(options, engine.Parallelism(p))...)
	return out, result
}

// begin begins the batch on the subtask that has the rows in the range own, and sets the
// targets and bags of the batch.
func (x *problem) begin(s *State, own sharding.Range) {
	s.Begin(x.first, x.trees)
	for k := range x.trees {
		g, h := x.g[k%len(x.g)], x.h[k%len(x.h)]
		for lo := own.Lo; lo < own.Hi; lo += 7 {
			hi := min(lo+7, own.Hi)
			s.Target(k).Set(lo-own.Lo, g[lo:hi], h[lo:hi])
		}
	}
	for k, bag := range x.bag {
		if bag == nil {
			continue
		}
		var rows []int32
		for _, r := range bag {
			if int(r) >= own.Lo && int(r) < own.Hi {
				rows = append(rows, r-int32(own.Lo))
			}
		}
		s.SetRows(k, rows)
	}
}

func sameTree(a, b *tree.Tree) error {
	if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
		return fmt.Errorf("two subtasks have different trees:\n%s\n%s", x, y)
	}
	return nil
}

// randomParams returns random parameters.
func randomParams(rng *rand.Rand) Params {
	some := func(v float64) float64 {
		if rng.IntN(3) == 0 {
			return v
		}
		return 0
	}
	p := Params{
		LeafWise: rng.IntN(2) == 0, MaxDepth: rng.IntN(6) - 1, MaxLeaves: []int{0, 2, 5, 9}[rng.IntN(4)],
		Lambda: some(rng.Float64()), Alpha: some(0.3), Gamma: some(0.2), MaxDeltaStep: some(0.4), MinChildWeight: some(1.2),
		MinRows: []int{0, 0, 1, 3}[rng.IntN(4)], ByTree: some(0.6), ByLevel: some(0.6), ByNode: some(0.6),
		MaxOneHot: rng.IntN(6), MaxCategories: rng.IntN(4), CategorySmooth: some(1), RootOfCategories: rng.IntN(2) == 0,
		CategoryLambda: some(2), LearnCategories: rng.IntN(2) == 0, MinCategoryRows: []int{0, 0, 1, 4}[rng.IntN(4)], Seed: rng.Uint64(),
	}
	return p
}
