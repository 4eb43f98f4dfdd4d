package gbdt_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// softmaxModel returns a model of three classes and the rows that it was trained on.
func softmaxModel(t *testing.T) (*gbdt.Model, trial.Table) {
	table := made(41, 120, 4)
	for _, y := range table.Label {
		table.Words = append(table.Words, []string{"low", "mid", "top"}[int(max(0, min(2, y/2)))])
	}
	table.Label = nil
	return train(t, table, gbdt.Params{LabelCol: "label", Objective: gbdt.Softmax, NumTrees: 6, MaxDepth: 3}), table
}

func TestFile(t *testing.T) {
	m, table := softmaxModel(t)
	read := trial.ModelFile(t, m, gbdt.Load, gbdt.Decode, `"dim":4`, `"dim":5`)
	sameTrees(t, m, read)
	require.Equal(t, m.Summary, read.Summary)
	for i := range table.N {
		require.Equal(t, m.Predict(table.Row(i)), read.Predict(table.Row(i)))
	}
	require.Equal(t, []string{"low", "mid", "top"}, read.Classes.Values)
}

// TestDamagedModels requires that an inconsistent model gives an error with the reason, and
// never a panic.
func TestDamagedModels(t *testing.T) {
	m, _ := softmaxModel(t)
	for _, c := range []struct {
		damage func(m *gbdt.Model)
		want   string
	}{
		{func(m *gbdt.Model) { m.Ensemble = nil }, "there is no ensemble"},
		{func(m *gbdt.Model) { m.Dim = 0 }, "dim is 0"},
		{func(m *gbdt.Model) { m.Dim = 5 }, "4 features of 5"},
		{func(m *gbdt.Model) { m.Columns = []int32{3, 1} }, "do not ascend"},
		{func(m *gbdt.Model) { m.Objective = 77 }, "Objective(77)"},
		{func(m *gbdt.Model) { m.Objective = gbdt.Squared }, "the link shares does not go"},
		{func(m *gbdt.Model) { m.Link = gbdt.Identity }, "the link identity does not go"},
		{func(m *gbdt.Model) { m.Objective, m.Link = gbdt.Logistic, gbdt.Sigmoid }, "has 3 classes and 3 outputs"},
		{func(m *gbdt.Model) { m.Objective, m.Link = gbdt.Gamma, gbdt.Exponential }, "has no classes"},
		{func(m *gbdt.Model) { m.Classes.Values = []string{"a", "a", "b"} }, "a"},
		{func(m *gbdt.Model) { m.Ensemble.Trees = m.Ensemble.Trees[:4] }, "4 trees for 3 outputs"},
		{func(m *gbdt.Model) { m.Ensemble.Trees[1].Output = 2 }, "tree 1 is not one of output 1"},
		{func(m *gbdt.Model) { m.Ensemble.Average = true }, "averaged"},
		{func(m *gbdt.Model) { m.Ensemble.Trees[0].Nodes[0].Left = 0x7fffffff }, "tree 0"},
	} {
		file, err := m.Encode()
		require.NoError(t, err)
		damaged, err := gbdt.Decode(file)
		require.NoError(t, err)
		c.damage(damaged)
		_, err = damaged.Encode()
		require.ErrorContains(t, err, c.want)
	}
	file, err := m.Encode()
	require.NoError(t, err)
	for _, text := range []string{"", "{}", strings.Replace(string(file), `"gbdt"`, `"mlp"`, 1), string(file[:len(file)/2])} {
		_, err := gbdt.Decode([]byte(text))
		require.Error(t, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"objective":"squared","link":"identity","label_type":"","classes":null,"dim":1,"ensemble":null}`)
	f.Add(`{"objective":"squared","link":"identity","label_type":"","classes":null,"dim":1,"ensemble":{"features":["a"],"outputs":1,"base":[0],"single":true,"trees":[]}}`)
	f.Fuzz(func(t *testing.T, payload string) {
		file, err := model.Encode(gbdt.Kind, 1, []model.Input{{Column: "x", Type: "vector[1]"}}, nil, rawJSON(payload))
		if err != nil {
			return
		}
		m, err := gbdt.Decode(file)
		if err != nil {
			return
		}
		m.Predict([]float64{1})
		m.PredictSparse([]int32{0}, []float64{1})
	})
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// TestPredictions requires that the operator, the methods and the bound step give predictions
// with the same bits.
func TestPredictions(t *testing.T) {
	m, table := softmaxModel(t)
	o := gbdt.PredictOptions{MarginCol: "margin", LeafCol: "leaf", ContributionCol: "why"}
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(gbdt.Predict(table.Dataset(b), m.Dataset(b), o), "rows")
		engine.Collect(m.Transform(table.Dataset(b)), "plain")
	})
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	cells := layout.NewRow()
	places := layout.Columns()
	recs, err := arrowbridge.Records(r, "rows")
	require.NoError(t, err)
	seen := 0
	for _, rec := range recs {
		column := func(name string) int {
			at := rec.Schema().FieldIndices(name)
			require.Len(t, at, 1)
			return at[0]
		}
		vector := func(name string, i int) []float64 {
			list := rec.Column(column(name)).(*array.List)
			lo, hi := list.ValueOffsets(i)
			return list.ListValues().(*array.Float64).Float64Values()[lo:hi]
		}
		for i := range int(rec.NumRows()) {
			x := table.Row(seen)
			class := m.Classes.Values[int(m.Predict(x))]
			require.Equal(t, class, rec.Column(column("prediction")).(*array.String).Value(i))
			probability, margins := make([]float64, 3), make([]float64, 3)
			leaves, why := make([]int32, len(m.Ensemble.Trees)), make([]float64, m.Contributions())
			require.True(t, m.PredictProbability(x, probability) && m.Margins(x, margins) && m.Leaves(x, leaves) && m.Contribute(x, why))
			require.Equal(t, probability, vector("probability", i))
			require.Equal(t, margins, vector("margin", i))
			require.Equal(t, why, vector("why", i))
			for q, n := range vector("leaf", i) {
				require.Equal(t, float64(leaves[q]), n)
				require.True(t, m.Ensemble.Trees[q].Nodes[leaves[q]].Leaf())
			}
			for k := range margins {
				sum := m.Ensemble.Base[k]
				for q := k; q < len(leaves); q += 3 {
					sum += m.Ensemble.Trees[q].Nodes[leaves[q]].Value
				}
				require.Equal(t, sum, margins[k])
				var parts float64
				for _, v := range why[k*5 : (k+1)*5] {
					parts += v
				}
				require.InDelta(t, margins[k], parts, 1e-9)
			}
			require.InDelta(t, 1, probability[0]+probability[1]+probability[2], 1e-12)
			require.Equal(t, slices.Index(probability, slices.Max(probability)), int(m.Predict(x)))
			cells[0].SetDense(x)
			require.NoError(t, step(cells))
			require.Equal(t, class, cells[places["prediction"]].Text)
			require.Equal(t, probability, cells[places["probability"]].Values)
			seen++
		}
	}
	require.Equal(t, table.N, seen)

	x, margins, want := table.X, make([]float64, table.N*3), make([]float64, 3)
	numbers := make([]float64, table.N)
	require.True(t, m.MarginsRows(x, table.N, margins, 2) && m.PredictRows(x, table.N, numbers, 2))
	for i := range table.N {
		require.True(t, m.Margins(table.Row(i), want))
		require.Equal(t, want, margins[3*i:3*i+3])
		require.Equal(t, m.Predict(table.Row(i)), numbers[i])
	}
	require.False(t, m.PredictRows(x, table.N-1, numbers, 1))
	require.False(t, m.MarginsRows(x, table.N, want, 1))
}

// TestSparseRows requires that values absent from sparse rows are missing, or 0 with
// AbsentIsZero. Dense rows with NaN or 0 in the places of absent values must give the same
// predictions.
func TestSparseRows(t *testing.T) {
	const n, d = 150, 30
	table := trial.Table{N: n, D: d, X: make([]float64, n*d)}
	for i := range n {
		for q := range 4 {
			table.X[i*d+(i*(q+3)+q*q)%d] = float64(1 + (i+q)%5)
		}
		table.Label = append(table.Label, table.X[i*d+3]+2*table.X[i*d+7]*table.X[i*d+9])
	}
	missing := table
	missing.X = append([]float64(nil), table.X...)
	for i, v := range missing.X {
		if v == 0 {
			missing.X[i] = math.NaN()
		}
	}
	sparse := table
	sparse.Sparse = true
	for _, zero := range []bool{false, true} {
		dense := missing
		if zero {
			dense = table
		}
		p := gbdt.Params{LabelCol: "label", NumTrees: 10, AbsentIsZero: zero}
		m := train(t, sparse, p)
		want := train(t, dense, p)
		require.Less(t, last(m, 0, 0), 0.6*float64(m.Summary.Record[0][0][0]))
		require.Equal(t, zero, m.AbsentIsZero)
		for i := range n {
			var indices []int32
			var values []float64
			for j, v := range table.Row(i) {
				if v != 0 {
					indices, values = append(indices, int32(j)), append(values, v)
				}
			}
			require.InDelta(t, want.Predict(dense.Row(i)), m.PredictSparse(indices, values), 1e-9)
			require.Equal(t, m.Predict(dense.Row(i)), m.PredictSparse(indices, values))
		}
	}
}

// TestManyFeatures requires that a model of very many features keeps only those that its trees
// use.
func TestManyFeatures(t *testing.T) {
	const d = 70_000
	table := trial.Table{N: 60, D: d, X: make([]float64, 60*d), Sparse: true}
	for i := range table.N {
		table.X[i*d+100+1000*(i%7)] = 1
		table.X[i*d+66_000] = float64(1 + i%3)
		table.Label = append(table.Label, float64(i%7)+10*float64(i%3))
	}
	p := gbdt.Params{LabelCol: "label", NumTrees: 6, LearningRate: 0.5, MinChildWeight: -1}
	m := run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(table.Dataset(b), p) }, engine.Shards(2))
	require.Equal(t, d, m.Dim)
	require.Contains(t, m.Columns, int32(66_000))
	require.Less(t, len(m.Columns), 10)
	require.Len(t, m.Ensemble.Features, len(m.Columns))
	v := m.PredictSparse([]int32{103, 66_000}, []float64{1, 2})
	require.Equal(t, m.PredictSparse([]int32{66_000}, []float64{2}), v)
	require.Less(t, m.PredictSparse([]int32{100, 66_000}, []float64{1, 1}), m.PredictSparse([]int32{100, 66_000}, []float64{1, 3}))
	p.Start = m
	p.NumTrees = 3
	more := run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(table.Dataset(b), p) }, engine.Shards(2))
	require.Equal(t, 9, more.Rounds())
	require.Less(t, last(more, 0, 0), last(m, 0, 0))
}

// TestCodesThatWereSeen requires that a model keeps the numeric categories that were seen in
// its training, and also the numeric categories of the model that it continues.
func TestCodesThatWereSeen(t *testing.T) {
	type row struct {
		X     float64
		Code  int64
		Label float64
	}
	rowsOf := func(codes ...int64) (rows []row) {
		for i := range 60 {
			c := codes[i%len(codes)]
			rows = append(rows, row{float64(i), c, float64(c)})
		}
		return rows
	}
	p := gbdt.Params{FeatureCols: []string{"x", "code"}, CategoricalCols: []string{"code"}, LabelCol: "label", NumTrees: 3}
	p.Start = trainRows(t, rowsOf(2, 5, 9), p)
	require.Equal(t, [][]int32{nil, {2, 5, 9}}, p.Start.Ensemble.Seen)
	require.Equal(t, [][]int32{nil, {0, 2, 5, 9}}, trainRows(t, rowsOf(0, 9), p).Ensemble.Seen)
	p.Start.Ensemble.Seen = nil // as in a model file without seen codes
	require.Nil(t, trainRows(t, rowsOf(0, 9), p).Ensemble.Seen)
}

// TestContinueWithOtherCategories requires that a continued model has the categories of both
// trainings.
func TestContinueWithOtherCategories(t *testing.T) {
	type row struct {
		Word  string
		Label float64
	}
	rowsOf := func(words ...string) (rows []row) {
		for i := range 60 {
			w := words[i%len(words)]
			rows = append(rows, row{w, float64(w[0] - 'a')})
		}
		return rows
	}
	p := gbdt.Params{FeatureCols: []string{"word"}, LabelCol: "label", NumTrees: 30, LearningRate: 0.5, CategoryLambda: -1}
	first := trainRows(t, rowsOf("b", "d", "f"), p)
	p.Start = first
	m := trainRows(t, rowsOf("a", "c", "d", "e", "g", "z"), p)
	require.Equal(t, []string{"b", "d", "f", "a", "c", "e", "g", "z"}, m.Ensemble.Categories[0])
	for _, w := range []string{"a", "c", "d", "e", "g", "z"} {
		require.InDelta(t, float64(w[0]-'a'), m.Predict([]float64{m.Code(0, w)}), 0.05, w)
	}
	for _, w := range []string{"b", "f"} {
		require.InDelta(t, float64(w[0]-'a'), first.Predict([]float64{first.Code(0, w)}), 0.05, w)
	}
}

// TestColumns requires that the operator Predict, the function that Bind returns and the method
// Predict give the same predictions for columns of all kinds, with nulls.
func TestColumns(t *testing.T) {
	type row struct {
		Num  *float64
		Yes  *bool
		Word *string
		Code int64
		Y    float64
	}
	var rows []row
	for i := range 140 {
		n, yes, word := float64(i%9), i%2 == 0, string(rune('a'+i%4))
		r := row{&n, &yes, &word, int64(i % 3), n + 5*float64(i%2) + 20*float64(i%4) + 100*float64(i%3)}
		switch i % 10 {
		case 3:
			r.Num = nil
		case 5:
			r.Yes = nil
		case 8:
			r.Word = nil
		}
		rows = append(rows, r)
	}
	p := gbdt.Params{FeatureCols: []string{"num", "yes", "word", "code"}, CategoricalCols: []string{"code"}, LabelCol: "y", NumTrees: 40, LearningRate: 0.4, MinChildWeight: -1, CategoryLambda: -1}
	var m *gbdt.Model
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		made := gbdt.Train(d, p)
		engine.Collect(made, "model")
		engine.Collect(gbdt.Predict(d, made, gbdt.PredictOptions{}), "rows")
	})
	m, err := gbdt.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, []string{"num", "yes", "word", "code"}, m.Ensemble.Features)
	require.Equal(t, []string{"a", "b", "c", "d"}, m.Ensemble.Categories[2])
	require.Less(t, last(m, 0, 0), 8.0)
	recs, err := arrowbridge.Records(r, "rows")
	require.NoError(t, err)
	seen := 0
	for _, rec := range recs {
		at := rec.Schema().FieldIndices("prediction")[0]
		for i := range int(rec.NumRows()) {
			x, nan := rows[seen], math.NaN()
			features := []float64{nan, nan, nan, float64(x.Code)}
			if x.Num != nil {
				features[0] = *x.Num
			}
			if x.Yes != nil {
				features[1] = kernelBool(*x.Yes)
			}
			if x.Word != nil {
				features[2] = m.Code(2, *x.Word)
			}
			require.Equal(t, m.Predict(features), rec.Column(at).(*array.Float64).Value(i))
			seen++
		}
	}
	layout := model.NewLayout("word", "num", "yes", "code")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	cells := layout.NewRow()
	cells[0].SetText("c")
	cells[1].SetInt(4)
	cells[2].SetBool(true)
	cells[3].SetInt(1)
	require.NoError(t, step(cells))
	require.Equal(t, m.Predict([]float64{4, 1, m.Code(2, "c"), 1}), cells[layout.Columns()["prediction"]].Float)
	cells[1].SetText("four")
	require.ErrorContains(t, step(cells), `column "num" is text, the model reads a number`)
	cells[1].SetNull()
	cells[0].SetDense([]float64{1})
	require.ErrorContains(t, step(cells), `column "word" is a vector, the model reads text`)
}
