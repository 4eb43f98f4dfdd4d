package grow

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// plainProblem returns a problem of n rows with one numeric feature of four bins, and its
// layout.
func plainProblem(n int) (*problem, *bins.Layout) {
	x := &problem{trees: 1, bag: make([][]int32, 1), g: [][]float64{make([]float64, n)}, h: [][]float64{make([]float64, n)}}
	x.features = []bins.Feature{{Name: "age", Bins: 4, Cuts: []float32{1, 2, 3}, Column: -1, Slot: -1, Implicit: -1}}
	for r := range n {
		x.bins = append(x.bins, []int{r % 4})
		x.g[0][r], x.h[0][r] = float64(r%4)-1.5, 1
	}
	return x, x.layout(rand.New(rand.NewPCG(1, 1)), []int{asColumn})
}

// try runs a problem, which must fail, and returns the error.
func (x *problem) try(t *testing.T, params Params, l *bins.Layout, p int) error {
	t.Helper()
	g := New(params)
	if x.large {
		g.packedFrom = 0
	}
	result, err := trial.Try(t, func(b *engine.Builder) {
		q := comqueue.New(b, "growth").Do(func(ctx *comqueue.ComContext) error {
			own := sharding.Split(len(x.bins), ctx.NumTask(), ctx.TaskID())
			s, err := g.Open(ctx, x.data(l, own.Lo, own.Hi))
			if err != nil {
				return err
			}
			x.begin(s, own)
			return nil
		})
		for _, stage := range g.Stages() {
			q.Add(stage)
		}
		rows := q.SetMaxIter(1).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]struct{ X int64 }, error) { return nil, nil })).Exec()
		engine.Collect(rows, "rows")
	}, engine.Parallelism(p))
	if err == nil {
		result.Release()
	}
	return err
}

// TestBadTargets requires that a target on which no tree can be grown causes an error that
// names the tree.
func TestBadTargets(t *testing.T) {
	for name, c := range map[string]struct {
		params Params
		change func(x *problem)
		text   string
	}{
		"gradient is NaN": {Params{}, func(x *problem) { x.g[0][3] = math.NaN() }, "the target of tree 0: a gradient or hessian is not finite or too large"},
		"hessian is Inf":  {Params{}, func(x *problem) { x.h[0][9] = math.Inf(1) }, "not finite"},
		"above float32":   {Params{}, func(x *problem) { x.large = true; x.g[0][0] = 1e39 }, "too large"},
		"monotone, short": {Params{Monotone: []int8{}}, func(*problem) {}, `there are 0 monotone constraints, and feature "age" has number 0`},
	} {
		for _, p := range []int{1, 2} {
			x, l := plainProblem(10)
			c.change(x)
			require.ErrorContains(t, x.try(t, c.params, l, p), c.text, name)
		}
	}
	x, l := plainProblem(10)
	l.Features[0].Categorical = true
	require.ErrorContains(t, x.try(t, Params{Monotone: []int8{1}}, l, 1), `feature "age" is categorical and has a monotone constraint`)
}

// TestBadRow requires that the run fails if a bag has a row that the subtask does not have.
func TestBadRow(t *testing.T) {
	g := New(Params{})
	x, l := plainProblem(10)
	for _, row := range []int32{-1, 10} {
		_, err := trial.Try(t, func(b *engine.Builder) {
			q := comqueue.New(b, "growth").Do(func(ctx *comqueue.ComContext) error {
				s, err := g.Open(ctx, x.data(l, 0, 10))
				if err != nil {
					return err
				}
				s.Begin(0, 1)
				s.Target(0).Set(0, x.g[0], x.h[0])
				s.SetRows(0, []int32{row})
				return nil
			})
			for _, stage := range g.Stages() {
				q.Add(stage)
			}
			engine.Collect(q.SetMaxIter(1).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]struct{ X int64 }, error) { return nil, nil })).Exec(), "rows")
		})
		require.ErrorContains(t, err, "is in the bag of tree 0, and the subtask has 10")
	}
}

// TestLonely requires that a tree is a single leaf if no split is possible.
func TestLonely(t *testing.T) {
	for name, c := range map[string]struct {
		rows   int
		params Params
		change func(x *problem)
	}{
		"one row":          {1, Params{MaxDepth: 5}, func(*problem) {}},
		"depth 0":          {10, Params{MaxDepth: 0}, func(*problem) {}},
		"one leaf":         {10, Params{MaxDepth: 5, MaxLeaves: 1}, func(*problem) {}},
		"constant feature": {10, Params{MaxDepth: 5}, func(x *problem) { x.same(1) }},
		"all missing":      {10, Params{MaxDepth: 5}, func(x *problem) { x.same(4) }},
		"no gradients":     {10, Params{MaxDepth: 5}, func(x *problem) { clear(x.g[0]) }},
		"heavy children":   {10, Params{MaxDepth: 5, MinChildWeight: 6}, func(*problem) {}},
		"gain too small":   {10, Params{MaxDepth: 5, Gamma: 1e6}, func(*problem) {}},
	} {
		for _, p := range []int{1, 3} {
			x, l := plainProblem(c.rows)
			c.change(x)
			got, _ := x.run(t, c.params, l, p, 1)
			require.Len(t, got.trees[0].Nodes, 1, name)
			require.Equal(t, int64(c.rows), got.trees[0].Nodes[0].Count, name)
			require.Equal(t, make([]int32, c.rows), got.leaves[0], name)
		}
	}
}

func (x *problem) same(bin int) {
	for r := range x.bins {
		x.bins[r][0] = bin
	}
}

// TestNoFeatures requires that a tree is a single leaf if there is no feature, or only a
// feature that is missing in every row.
func TestNoFeatures(t *testing.T) {
	for _, features := range [][]bins.Feature{nil, {{Name: "gone", Column: -1, Slot: -1, Implicit: -1}}} {
		x, _ := plainProblem(10)
		x.features = features
		for r := range x.bins {
			x.bins[r] = make([]int, len(features))
		}
		l := x.layout(rand.New(rand.NewPCG(1, 1)), make([]int, len(features))[:0])
		for _, p := range []int{1, 2} {
			got, _ := x.run(t, Params{MaxDepth: 5}, l, p, 1)
			require.Len(t, got.trees[0].Nodes, 1)
		}
	}
}

// TestOneValueMissing tests a feature that has the same value in some rows and is missing in
// the other rows. It requires a split into this value and missing values. Any other value must
// go to the child of this value.
func TestOneValueMissing(t *testing.T) {
	x, l := plainProblem(10)
	for r := range x.bins {
		x.bins[r][0] = 2
		if r < 4 {
			x.bins[r][0] = 4
		}
		x.g[0][r] = 1
		if r < 4 {
			x.g[0][r] = -1
		}
	}
	got, _ := x.run(t, Params{MaxDepth: 5}, l, 1, 1)
	require.Len(t, got.trees[0].Nodes, 3)
	root := got.trees[0].Nodes[0]
	require.True(t, math.IsInf(root.Threshold, -1))
	require.Equal(t, int64(4), got.trees[0].Nodes[root.Left].Count)
}
