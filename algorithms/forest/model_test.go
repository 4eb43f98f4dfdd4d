package forest_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestPredictionIsTheMeanOverTrees compares predictions with means, computed by hand, of the
// values of leaves, which are shares of rows.
func TestPredictionIsTheMeanOverTrees(t *testing.T) {
	table := classes(5, 200, 4, 3)
	m := train(t, table, forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 7})
	require.Equal(t, []string{"0", "1", "2"}, m.Classes.Values)
	for i := range 20 {
		x := table.Row(i)
		want := make([]float64, 3)
		for k := range m.Trees.Trees {
			leaf := int(m.Trees.Trees[k].Leaf(x, true))
			for c := range want {
				want[c] += m.Trees.Trees[k].Values[leaf*3+c]
			}
		}
		got := make([]float64, 3)
		require.True(t, m.PredictProbability(x, got))
		best := 0
		for c := range want {
			require.InDelta(t, want[c]/7, got[c], 1e-12)
			if got[c] > got[best] {
				best = c
			}
		}
		require.Equal(t, float64(best), m.Predict(x))
		require.InDelta(t, 1, got[0]+got[1]+got[2], 1e-12)
	}
}

// TestEqualFeaturesShareImportance requires that features with the same values share their
// importance if they are tried together, because it is random which of them splits a node. A
// single tree must use the feature with the lower number.
func TestEqualFeaturesShareImportance(t *testing.T) {
	table := trial.Table{N: 300, D: 3}
	for i := range table.N {
		x := float64(i * 37 % 101)
		table.X = append(table.X, x, x, x)
		table.Label = append(table.Label, math.Sin(x/9))
	}
	for _, method := range []forest.Method{forest.RandomForest, forest.ExtraTrees} {
		m := train(t, table, forest.Params{LabelCol: "label", Method: method, NumTrees: 30, MaxFeatures: "all"})
		for _, share := range m.Importances() {
			require.InDelta(t, 1./3, share, 0.15, method)
		}
	}
	m := train(t, table, forest.Params{LabelCol: "label", Method: forest.SingleTree})
	require.Equal(t, []float64{1, 0, 0}, m.Importances())
}

// TestForestsLearn requires that forests predict the generated labels far better than chance.
func TestForestsLearn(t *testing.T) {
	for method, trees := range map[forest.Method]int{forest.RandomForest: 12, forest.ExtraTrees: 12, forest.SingleTree: 1} {
		m := train(t, numbers(1, 1000, 5), forest.Params{LabelCol: "label", Method: method, NumTrees: trees})
		test := numbers(2, 200, 5)
		var errors, spread float64
		for i, y := range test.Label {
			e := m.Predict(test.Row(i)) - y
			errors += e * e
			spread += y * y
		}
		require.Greater(t, 1-errors/spread, 0.75, method)
	}
}

func TestFilesOfModels(t *testing.T) {
	for _, p := range []forest.Params{
		{LabelCol: "label", NumTrees: 3, MaxDepth: 3, OOBScore: true},
		{LabelCol: "label", Task: forest.Classification, NumTrees: 3, MaxDepth: 3, AbsentIsZero: true, ProbabilityCol: "odds"},
	} {
		table := classes(1, 100, 4, 2)
		m := train(t, table, p)
		back := trial.ModelFile(t, m, forest.Load, forest.Decode, `"dim":4`, `"dim":5`)
		require.Equal(t, m.Summary, back.Summary)
		require.Equal(t, m.OutOfBag, back.OutOfBag)
		for i := range table.N {
			require.Equal(t, m.Predict(table.Row(i)), back.Predict(table.Row(i)))
		}
	}
}

// damaged returns the error of decoding the file of m in which old was replaced by new and the
// checksum was corrected.
func damaged(t *testing.T, m *forest.Model, old, new string) error {
	t.Helper()
	file, err := m.Encode()
	require.NoError(t, err)
	f, err := model.Decode(file, forest.Kind, 1)
	require.NoError(t, err)
	text := string(f.Payload)
	require.Contains(t, text, old)
	changed, err := model.Encode(forest.Kind, 1, f.Inputs, f.Summary, raw(strings.Replace(text, old, new, 1)))
	require.NoError(t, err)
	_, err = forest.Decode(changed)
	return err
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestDamagedModels(t *testing.T) {
	m := train(t, classes(1, 60, 3, 2), forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 1, MaxDepth: 1})
	for _, c := range [][3]string{
		{`"dim":3`, `"dim":4`, "the trees have 3 features, dim is 4"},
		{`"dim":3`, `"dim":0`, "dim is 0"},
		{`"task":"classification"`, `"task":"regression"`, "a regression has no classes"},
		{`"task":"classification"`, `"task":"guess"`, "unknown task"},
		{`"classes":["0","1"]`, `"classes":["0","0"]`, "occurs twice"},
		{`"classes":["0","1"]`, `"classes":["0","1","2"]`, "want 3, averaged"},
		{`"outputs":2`, `"outputs":1`, "is damaged: payload: "},
		{`"average":true`, `"average":false`, "want 2, averaged"},
		{`"left":[1,0,0]`, `"left":[0,0,0]`, "is damaged: payload: "},
		{`"left":[1,0,0]`, `"left":[9,0,0]`, "is damaged: payload: "},
	} {
		require.ErrorContains(t, damaged(t, m, c[0], c[1]), c[2])
	}
}

func TestModelsAreUsedConcurrently(t *testing.T) {
	table := numbers(1, 200, 4)
	trial.Concurrently(t, train(t, table, forest.Params{LabelCol: "label", NumTrees: 5}), forest.Decode, table)
}

// TestPredictInAJob requires that the operator and the methods give predictions with the same
// bits, for dense and for sparse rows.
func TestPredictInAJob(t *testing.T) {
	table := classes(3, 120, 5, 3)
	for i := range table.X {
		if i%3 == 0 {
			table.X[i] = 0
		}
	}
	for _, sparse := range []bool{false, true} {
		table.Sparse = sparse
		m := train(t, table, forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 5, AbsentIsZero: true})
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(m.Transform(table.Dataset(b)), "rows")
		})
		type row struct {
			ID          int64
			Prediction  float64
			Probability []float64
		}
		got, err := engine.Rows[row](r, "rows")
		require.NoError(t, err)
		require.Len(t, got, table.N)
		for i, g := range got {
			want := make([]float64, 3)
			require.True(t, m.PredictProbability(table.Row(i), want))
			require.Equal(t, want, g.Probability)
			require.Equal(t, m.Classes.Values[int(m.Predict(table.Row(i)))], []string{"0", "1", "2"}[int(g.Prediction)])
			indices, values := trial.Sparse(table.Row(i))
			require.Equal(t, m.Predict(table.Row(i)), m.PredictSparse(indices, values))
			other := make([]float64, 3)
			require.True(t, m.PredictProbabilitySparse(indices, values, other))
			require.Equal(t, want, other)
		}
	}
}

func TestRowsThatDoNotFit(t *testing.T) {
	m := train(t, classes(1, 60, 3, 2), forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 2})
	require.Equal(t, -1.0, m.Predict([]float64{1}))
	require.Equal(t, -1.0, m.PredictSparse([]int32{3}, []float64{1}))
	require.Equal(t, -1.0, m.PredictSparse([]int32{1, 1}, []float64{1, 1}))
	require.False(t, m.PredictProbability([]float64{1, 2, 3}, make([]float64, 3)))
	require.False(t, m.PredictProbability([]float64{1, 2}, make([]float64, 2)))
	// Rows with missing and infinite values have predictions.
	require.GreaterOrEqual(t, m.Predict([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}), 0.0)
	n := train(t, numbers(1, 60, 3), forest.Params{LabelCol: "label", NumTrees: 2})
	require.True(t, math.IsNaN(n.Predict([]float64{1})))
	require.False(t, n.PredictProbability([]float64{1, 2, 3}, make([]float64, 1)))
}

// TestForestsGoOn requires that a forest to which trees were added equals a forest that was
// trained at once.
func TestForestsGoOn(t *testing.T) {
	table := classes(1, 150, 4, 3)
	p := forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 30, OOBScore: true, Seed: 5}
	whole := train(t, table, p)
	first := p
	first.NumTrees = 7
	p.Start = train(t, table, first)
	on := train(t, table, p)
	want, err := whole.Encode()
	require.NoError(t, err)
	got, err := on.Encode()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.Len(t, p.Start.Trees.Trees, 7)
}

// TestImportances requires that importances are shares, and that the two features on which the
// label depends have the largest importances.
func TestImportances(t *testing.T) {
	table := trial.Gaussian(1, 500, 5)
	for i := range table.N {
		x := table.Row(i)
		table.Label = append(table.Label, 3*x[2]+x[4])
	}
	m := train(t, table, forest.Params{LabelCol: "label", NumTrees: 20})
	shares := m.Importances()
	require.Len(t, shares, 5)
	sum := 0.0
	for j, v := range shares {
		sum += v
		if j != 2 && j != 4 {
			require.Less(t, v, shares[4])
		}
	}
	require.InDelta(t, 1, sum, 1e-12)
	require.Greater(t, shares[2], shares[4])

	constant := train(t, trial.TableOf([]float64{1, 1}, []float64{1, 2}, []float64{3, 4}), forest.Params{LabelCol: "label", NumTrees: 2})
	require.Equal(t, []float64{0, 0}, constant.Importances())
}

// TestPredictNullVectors requires nulls for rows whose vector, dense or sparse, is null. The
// other rows must get the predictions of the methods, in batches of any size.
func TestPredictNullVectors(t *testing.T) {
	table := classes(4, 300, 5, 3)
	table.Label = append([]float64(nil), table.Label...)
	for i := range table.Label {
		table.Label[i] += table.X[5*i] // makes the labels distinct, so that trees are deep
	}
	type dense struct {
		Features *[]float64 `column:"features,dim=5"`
	}
	type sparse struct {
		Features *operators.SparseVector `column:"features,size=5"`
	}
	type predicted struct{ Prediction *float64 }
	m := train(t, table, forest.Params{LabelCol: "label", NumTrees: 4, MaxDepth: -1})
	var rows []dense
	var entries []sparse
	for i := range table.N {
		if i%50 == 7 {
			rows, entries = append(rows, dense{}), append(entries, sparse{})
			continue
		}
		x := table.Row(i)
		indices, values := trial.Sparse(x)
		rows = append(rows, dense{&x})
		entries = append(entries, sparse{&operators.SparseVector{Size: 5, Indices: indices, Values: values}})
	}
	for _, size := range []int{7, 1024} {
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(m.Transform(operators.FromSlice(b, rows)), "dense")
			engine.Collect(m.Transform(operators.FromSlice(b, entries)), "sparse")
		}, engine.Shards(1), engine.BatchRows(size))
		for name, want := range map[string]func(i int) float64{
			"dense":  func(i int) float64 { return m.Predict(*rows[i].Features) },
			"sparse": func(i int) float64 { v := entries[i].Features; return m.PredictSparse(v.Indices, v.Values) },
		} {
			got, err := engine.Rows[predicted](r, name)
			require.NoError(t, err)
			require.Len(t, got, table.N)
			for i, g := range got {
				if i%50 == 7 {
					require.Nil(t, g.Prediction)
					continue
				}
				require.Equal(t, want(i), *g.Prediction, "%s row %d", name, i)
			}
		}
	}
}
