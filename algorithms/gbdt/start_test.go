package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestContinueAsItBegan requires that a model is not continued if its trees would read the rows
// differently from new trees.
func TestContinueAsItBegan(t *testing.T) {
	table := made(90, 100, 3)
	for i, x := range table.X {
		if math.IsNaN(x) || i%3 == 0 {
			table.X[i] = 0
		}
	}
	table.Sparse = true
	for _, zero := range []bool{true, false} {
		p := gbdt.Params{LabelCol: "label", NumTrees: 2, AbsentIsZero: zero}
		p.Start = train(t, table, p)
		require.Equal(t, 4, train(t, table, p).Rounds())
		p.AbsentIsZero = !zero
		fails(t, table, p, "Start was trained with AbsentIsZero", "set it to")
		p.AbsentIsZero = zero
		p.DART = true
		fails(t, table, p, "Start and DART are both set")
	}
}

func TestContinueKinds(t *testing.T) {
	type row struct {
		Colour int64
		Size   float64
		Label  float64
	}
	var rows []row
	for i := range 120 {
		rows = append(rows, row{int64(i % 6), float64(i % 11), float64(i*i%6) + float64(i%11)/10})
	}
	vectors := trial.Table{D: 2, N: len(rows)}
	for _, r := range rows {
		vectors.X = append(vectors.X, float64(r.Colour), r.Size)
		vectors.Label = append(vectors.Label, r.Label)
	}
	number := gbdt.Params{LabelCol: "label", FeatureCols: []string{"colour", "size"}, NumTrees: 2, MinChildWeight: -1}
	category := number
	category.CategoricalCols = []string{"colour"}
	onRows := func(p gbdt.Params) func(b *engine.Builder) {
		return func(b *engine.Builder) { engine.Collect(gbdt.Train(operators.FromSlice(b, rows), p), "model") }
	}
	number.Start, category.Start = trainRows(t, rows, number), trainRows(t, rows, category)
	require.Equal(t, 4, trainRows(t, rows, number).Rounds())
	require.Equal(t, 4, trainRows(t, rows, category).Rounds())
	number.Start, category.Start = category.Start, number.Start
	trial.Fails(t, onRows(number), `feature "colour" is a number, and a category in the model to continue`)
	trial.Fails(t, onRows(category), `feature "colour" is a category, and a number in the model to continue`)

	p := gbdt.Params{LabelCol: "label", NumTrees: 2, MinChildWeight: -1}
	p.Start = train(t, vectors, p)
	p.CategoricalAt = []int{0}
	fails(t, vectors, p, "is a category, and a number in the model to continue")
}
