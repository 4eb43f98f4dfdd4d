package forest_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// passenger has one column of each kind; a nil pointer is null.
type passenger struct {
	Age   *float64
	Port  *string
	Deck  int64
	Alone bool
	Fate  string
}

// passengers returns n rows whose label depends on all four columns, like a leaf of a tree.
func passengers(n int) []passenger {
	r := trial.Gaussian(3, n, 4)
	ports := []string{"C", "Q", "S"}
	var all []passenger
	for i := range n {
		x := r.Row(i)
		age, port := 30+10*x[0], ports[int(math.Abs(3*x[1]))%3]
		p := passenger{Age: &age, Port: &port, Deck: int64(math.Abs(4*x[2])) % 6, Alone: x[3] > 0, Fate: "lost"}
		if age < 28 && p.Deck%2 == 0 || port == "Q" && !p.Alone {
			p.Fate = "saved"
		}
		if i%9 == 0 {
			p.Age = nil
		}
		if i%7 == 0 {
			p.Port = nil
		}
		all = append(all, p)
	}
	return all
}

var passengerColumns = forest.Params{
	FeatureCols: []string{"age", "port", "deck", "alone"}, CategoricalCols: []string{"deck"}, LabelCol: "fate",
	Task: forest.Classification, Method: forest.SingleTree, MaxDepth: -1,
}

// TestColumnsOfAllKinds requires that a tree without limits memorises its rows, including rows
// with nulls, and that it gives the same predictions in a job and outside.
func TestColumnsOfAllKinds(t *testing.T) {
	rows := passengers(400)
	type guess struct {
		Fate, Prediction string
		Probability      []float64
	}
	var m *forest.Model
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		made := forest.Train(d, passengerColumns)
		engine.Collect(made, "model")
		engine.Collect(forest.Predict(d, made, forest.PredictOptions{}), "rows")
	})
	m, err := forest.ModelOf(r, "model")
	require.NoError(t, err)
	guesses, err := engine.Rows[guess](r, "rows")
	require.NoError(t, err)
	right := 0
	for i, g := range guesses {
		x := []float64{math.NaN(), math.NaN(), float64(rows[i].Deck), 0}
		if rows[i].Age != nil {
			x[0] = *rows[i].Age
		}
		if rows[i].Port != nil {
			x[1] = m.Code(1, *rows[i].Port)
		}
		if rows[i].Alone {
			x[3] = 1
		}
		want := make([]float64, 2)
		require.True(t, m.PredictProbability(x, want))
		require.Equal(t, want, g.Probability)
		require.Equal(t, m.Classes.Values[int(m.Predict(x))], g.Prediction)
		if g.Fate == g.Prediction {
			right++
		}
	}
	require.GreaterOrEqual(t, right, 390) // nulls hide some values on which the label depends
	require.Equal(t, []string{"C", "Q", "S"}, m.Trees.Categories[1])
	require.Equal(t, -1.0, m.Code(1, "X"))
	require.True(t, math.IsNaN(m.Code(0, "X")))
	// Unseen categories must go to the side of missing values.
	for _, age := range []float64{20, 40} {
		require.Equal(t, m.Predict([]float64{age, math.NaN(), 0, 0}), m.Predict([]float64{age, m.Code(1, "X"), 0, 0}))
		require.Equal(t, m.Predict([]float64{age, 0, math.NaN(), 0}), m.Predict([]float64{age, 0, 1e9, 0}))
	}
}

func TestUnseenAndWrongCells(t *testing.T) {
	rows := passengers(100)
	port := "nowhere"
	other := []passenger{{Port: &port, Deck: 77, Fate: "?"}}
	trial.Run(t, func(b *engine.Builder) {
		made := forest.Train(operators.FromSlice(b, rows), passengerColumns)
		engine.Collect(forest.Predict(operators.FromSlice(b, other), made, forest.PredictOptions{}), "rows")
	})
	trial.Fails(t, func(b *engine.Builder) {
		made := forest.Train(operators.FromSlice(b, rows), passengerColumns)
		engine.Collect(forest.Predict(operators.FromSlice(b, rows), made, forest.PredictOptions{FeatureCols: []string{"age", "deck", "deck", "alone"}}), "rows")
	}, `column "deck" is an integer, the model reads text`)
	bad := rows
	bad[3].Deck = -4
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(forest.Train(operators.FromSlice(b, bad), passengerColumns), "model")
	}, `column "deck"`, "-4")
	bad[3].Deck = 1 << 40
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(forest.Train(operators.FromSlice(b, bad), passengerColumns), "model")
	}, `column "deck"`)
}

// TestOrderOfRowsDoesNotMatter requires that rows in another order and in other shards give the
// same single tree.
func TestOrderOfRowsDoesNotMatter(t *testing.T) {
	encode := func(rows []passenger) string {
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(forest.Train(operators.FromSlice(b, rows), passengerColumns), "model")
		})
		m, err := forest.ModelOf(r, "model")
		require.NoError(t, err)
		file, err := m.Encode()
		require.NoError(t, err)
		return string(file)
	}
	rows := passengers(200)
	want := encode(rows)
	for i, j := 0, len(rows)-1; i < j; i, j = i+1, j-1 {
		rows[i], rows[j] = rows[j], rows[i]
	}
	require.Equal(t, want, encode(rows))
}

// TestSameBitsOfColumns requires that a forest trained on FeatureCols has the same bits at any
// parallelism.
func TestSameBitsOfColumns(t *testing.T) {
	rows := passengers(150)
	p := passengerColumns
	p.Method, p.NumTrees, p.MaxDepth, p.OOBScore = forest.RandomForest, 6, 8, true
	for _, memory := range []int64{0, 2000} {
		p.Memory = memory
		trial.SameBits(t, func(b *engine.Builder) {
			d := operators.FromSlice(b, rows)
			made := forest.Train(d, p)
			engine.Collect(made, "model")
			engine.Collect(forest.Predict(d, made, forest.PredictOptions{}), "rows")
		}, forest.Kind)
	}
}

func TestTreesAreDrawn(t *testing.T) {
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(forest.Train(operators.FromSlice(b, passengers(100)), passengerColumns), "model")
	})
	m, err := forest.ModelOf(r, "model")
	require.NoError(t, err)
	var svg bytes.Buffer
	require.NoError(t, m.Trees.WriteSVG(&svg, 0, tree.DrawOptions{Depth: 3}))
	require.Contains(t, svg.String(), "port")
}

// TestCodesThatWereSeen requires that the model keeps the numeric categories that training has
// seen, and also the numeric categories of the forest that Start continues.
func TestCodesThatWereSeen(t *testing.T) {
	type row struct {
		Code  int64
		Label float64
	}
	seen := func(p forest.Params, codes ...int64) *forest.Model {
		var rows []row
		for i := range 30 {
			c := codes[i%len(codes)]
			rows = append(rows, row{c, float64(c)})
		}
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(forest.Train(operators.FromSlice(b, rows), p), "model")
		})
		m, err := forest.ModelOf(r, "model")
		require.NoError(t, err)
		return m
	}
	p := forest.Params{FeatureCols: []string{"code"}, CategoricalCols: []string{"code"}, LabelCol: "label", NumTrees: 2}
	first := seen(p, 2, 5, 9)
	require.Equal(t, [][]int32{{2, 5, 9}}, first.Trees.Seen)
	p.Start, p.NumTrees = first, 4
	require.Equal(t, [][]int32{{0, 2, 5, 9}}, seen(p, 0, 9).Trees.Seen)
}
