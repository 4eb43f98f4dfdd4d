package forest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// train returns the model that is trained on table.
func train(t testing.TB, table trial.Table, p forest.Params, options ...engine.Option) *forest.Model {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(forest.Train(table.Dataset(b), p), "model")
	}, options...)
	m, err := forest.ModelOf(r, "model")
	require.NoError(t, err)
	// Training encodes its trees one by one, and must give the same bytes as encoding the whole
	// model.
	written, err := model.Encoded(r, "model")
	require.NoError(t, err)
	again, err := m.Encode()
	require.NoError(t, err)
	require.Equal(t, string(written), string(again))
	return m
}

// fails requires that training fails with an error that contains texts.
func fails(t *testing.T, table trial.Table, p forest.Params, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(forest.Train(table.Dataset(b), p), "model")
	}, texts...)
}

// classes returns n rows of d normal features with one of k classes.
func classes(seed uint64, n, d, k int) trial.Table {
	t := trial.Gaussian(seed, n, d)
	for i := range n {
		x := t.Row(i)
		t.Label = append(t.Label, math.Mod(math.Floor(math.Abs(2*x[0]+x[1]*x[2])), float64(k)))
		t.Weight = append(t.Weight, 0.5+math.Mod(float64(i), 3))
	}
	return t
}

// numbers returns n rows of d normal features with a label that depends on two of them.
func numbers(seed uint64, n, d int) trial.Table {
	t := trial.Gaussian(seed, n, d)
	for i := range n {
		x := t.Row(i)
		t.Label = append(t.Label, 2*x[0]+x[1]*x[2])
		t.Weight = append(t.Weight, 0.5+math.Mod(float64(i), 3))
	}
	return t
}

// coded returns the table with a first feature of more than 255 categories.
func coded(t trial.Table) trial.Table {
	for i := range t.N {
		t.Row(i)[0] = float64(i * 7919 % 331 * 190)
	}
	return t
}

// TestSingleTreeIsExact requires that each leaf of a single tree has one row, or rows with the
// same features. The only remaining error is the difference between the labels of rows with the
// same features: 0.05 for the two rows (1, 2).
func TestSingleTreeIsExact(t *testing.T) {
	table := trial.TableOf([]float64{.8, .7, .4, .4, .6, .2, .3},
		[]float64{1, 2}, []float64{1, 2}, []float64{0, 3}, []float64{0, 2}, []float64{1, 3}, []float64{4, 3}, []float64{4, 4})
	m := train(t, table, forest.Params{LabelCol: "label", Method: forest.SingleTree})
	want := []float64{.75, .75, .4, .4, .6, .2, .3}
	var squares float64
	for i, y := range table.Label {
		got := m.Predict(table.Row(i))
		require.InDelta(t, want[i], got, 1e-12)
		squares += (got - y) * (got - y)
	}
	require.InDelta(t, 0.026726, math.Sqrt(squares/7), 5e-7)
	require.Len(t, m.Trees.Trees, 1)
}

// TestMemoryChangesNoBit requires the same trees whether subtasks have copies of all rows or
// not, and with any size of the buffers that they exchange.
func TestMemoryChangesNoBit(t *testing.T) {
	for name, c := range map[string]struct {
		table trial.Table
		p     forest.Params
	}{
		"two classes":     {classes(1, 150, 6, 2), forest.Params{Task: forest.Classification, OOBScore: true, MinSplitGain: 0.001}},
		"three classes":   {classes(2, 150, 5, 3), forest.Params{Task: forest.Classification, Criterion: forest.Entropy, Balanced: true, WeightCol: "weight", MaxFeatures: "1"}},
		"numbers":         {numbers(3, 150, 6), forest.Params{WeightCol: "weight", OOBScore: true, MinSamplesLeaf: 2}},
		"random splits":   {numbers(4, 150, 5), forest.Params{Method: forest.ExtraTrees}},
		"bounded leaves":  {numbers(4, 150, 5), forest.Params{MaxLeaves: 12}},
		"wild":            {trial.Wild(150, 5), forest.Params{WeightCol: "weight", Sampling: forest.Subset}},
		"many categories": {coded(numbers(3, 400, 3)), forest.Params{CategoricalAt: []int{0}, WeightCol: "weight", OOBScore: true, MinSamplesLeaf: 2, MaxFeatures: "2"}},
		"their classes":   {coded(classes(3, 400, 3, 3)), forest.Params{CategoricalAt: []int{0}, Task: forest.Classification, OOBScore: true}},
		"random sets":     {coded(numbers(3, 400, 3)), forest.Params{CategoricalAt: []int{0}, Method: forest.ExtraTrees}},
		"one tree":        {trial.Wild(150, 5), forest.Params{WeightCol: "weight", Method: forest.SingleTree}},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.p
			p.LabelCol = "label"
			if p.Method != forest.SingleTree {
				p.NumTrees = 3
			}
			want, err := train(t, c.table, p, engine.Parallelism(1)).Encode()
			require.NoError(t, err)
			for _, memory := range []int64{1, 3000, 20_000} {
				p.Memory = memory
				got, err := train(t, c.table, p, engine.Parallelism(3)).Encode()
				require.NoError(t, err)
				require.Equal(t, string(want), string(got), "the model must not depend on a memory of %d bytes", memory)
			}
		})
	}
}

func TestSameBits(t *testing.T) {
	for name, c := range map[string]struct {
		table trial.Table
		p     forest.Params
	}{
		"two classes":      {classes(1, 150, 6, 2), forest.Params{Task: forest.Classification, NumTrees: 26, MaxDepth: 5, OOBScore: true}},
		"three classes":    {classes(2, 120, 5, 3), forest.Params{Task: forest.Classification, NumTrees: 5, Criterion: forest.Entropy, Balanced: true, WeightCol: "weight", OOBScore: true}},
		"numbers":          {numbers(3, 150, 6), forest.Params{NumTrees: 5, WeightCol: "weight", OOBScore: true, MinSamplesLeaf: 2}},
		"many categories":  {coded(numbers(3, 400, 3)), forest.Params{NumTrees: 3, CategoricalAt: []int{0}, OOBScore: true}},
		"random splits":    {numbers(4, 120, 5), forest.Params{NumTrees: 4, Method: forest.ExtraTrees}},
		"wild":             {trial.Wild(120, 5), forest.Params{NumTrees: 4, WeightCol: "weight", OOBScore: true}},
		"wild and bounded": {trial.Wild(120, 5), forest.Params{Task: forest.Classification, NumTrees: 4, MaxLeaves: 9, WeightCol: "weight", Sampling: forest.Subset}},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.p
			p.LabelCol = "label"
			trial.SameBits(t, func(b *engine.Builder) {
				rows := c.table.Dataset(b)
				made := forest.Train(rows, p)
				engine.Collect(made, "model")
				engine.Collect(forest.Predict(rows, made, forest.PredictOptions{}), "rows")
			}, forest.Kind)
		})
	}
}
