package logistic_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func TestBadParams(t *testing.T) {
	table := twoClasses(20, 2)
	for text, p := range map[string]logistic.Params{
		"L1 is -1":                      {L1: -1},
		"L2 is NaN":                     {L2: math.NaN()},
		"L2 is +Inf":                    {L2: math.Inf(1)},
		"Family(7)":                     {Family: 7},
		"Threshold is 1":                {Threshold: 1},
		"Threshold is -0.5":             {Threshold: -0.5},
		"Threshold is for two":          {Threshold: 0.2, Family: logistic.Multinomial},
		"not defined with a penalty":    {Inference: true, L2: 1},
		"which are for two":             {Inference: true, Family: logistic.Multinomial},
		"OffsetCol is for two":          {OffsetCol: "label", Family: logistic.Multinomial},
		"ClassWeights are given and":    {Balanced: true, ClassWeights: map[string]float64{"0": 1}},
		`are both "p"`:                  {PredictionCol: "p", ProbabilityCol: "p"},
		"MaxIter is -1":                 {MaxIter: -1},
		"Tol is NaN":                    {Tol: math.NaN()},
		"cannot minimise an L1 penalty": {L1: 1, Method: optim.LBFGS},
		"VectorCol":                     {VectorCol: "features", FeatureCols: []string{"label"}},
		`"feature"`:                     {VectorCol: "feature"},
		`ClassWeights of "0" is -1`:     {ClassWeights: map[string]float64{"0": -1}},
		"did you mean":                  {WeightCol: "wieght"},
	} {
		p.LabelCol = "label"
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(logistic.Train(table.Dataset(b), p), "model") }, text)
	}
	require.ErrorContains(t, logistic.Params{}.Validate(), "LabelCol is empty")
	trial.Fails(t, func(b *engine.Builder) { logistic.Train(nil, logistic.Params{LabelCol: "y"}) }, "the dataset is nil")
	var f logistic.Family
	require.NoError(t, f.UnmarshalText([]byte("multinomial")))
	require.Equal(t, logistic.Multinomial, f)
	require.Error(t, f.UnmarshalText([]byte("x")))
	_, err := logistic.Family(9).MarshalText()
	require.Error(t, err)
}

func TestBadRows(t *testing.T) {
	one := twoClasses(20, 2)
	for i := range one.Label {
		one.Label[i] = 3
	}
	weightless := twoClasses(20, 2)
	clear(weightless.Weight)
	half := twoClasses(20, 2)
	for i, y := range half.Label {
		half.Weight[i] *= y
	}
	negative := twoClasses(20, 2)
	negative.Weight[5] = -1
	wrong, infinite := twoClasses(20, 2), twoClasses(20, 2)
	wrong.X[7], infinite.Label[3] = math.NaN(), math.Inf(1)
	for text, table := range map[string]trial.Table{
		`every label in column "label" is "3": a classifier needs two classes or more`: one,
		"weigh":                           weightless,
		`every row of class "0" weighs 0`: half,
		`column "weight"`:                 negative,
		`column "features"`:               wrong,
		`column "label"`:                  infinite,
		"no rows":                         {D: 2, Label: []float64{}},
	} {
		trial.Fails(t, trains(table, logistic.Params{}), text)
	}
	trial.Fails(t, trains(threeClasses(30, 2), logistic.Params{Family: logistic.Binary}), "3 classes, and Family is binary")
	trial.Fails(t, trains(threeClasses(30, 2), logistic.Params{Inference: true}), "3 classes: Inference")
	single := trial.TableOf([]float64{1}, []float64{2})
	trial.Fails(t, trains(single, logistic.Params{}), "two classes")
}

// TestSkip requires that Skip leaves out rows that cannot be used, including rows with a null
// label.
func TestSkip(t *testing.T) {
	mem := memory.NewGoAllocator()
	x, y := array.NewFloat64Builder(mem), array.NewStringBuilder(mem)
	x.AppendValues([]float64{1, 2, 3, 4, math.NaN(), 1, 5}, nil)
	y.AppendValues([]string{"a", "b", "a", "b", "b", "", "b"}, []bool{true, true, true, true, true, false, true})
	record := array.NewRecord(arrow.NewSchema([]arrow.Field{
		{Name: "x", Type: arrow.PrimitiveTypes.Float64}, {Name: "y", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil), []arrow.Array{x.NewArray(), y.NewArray()}, 7)
	job := func(skip bool) func(b *engine.Builder) {
		return func(b *engine.Builder) {
			engine.Collect(logistic.Train(arrowbridge.FromRecords(b, []arrow.Record{record}),
				logistic.Params{FeatureCols: []string{"x"}, LabelCol: "y", L2: 0.1, Skip: skip}), "model")
		}
	}
	trial.Fails(t, job(false), "row")
	m, err := logistic.ModelOf(trial.Run(t, job(true)), "model")
	require.NoError(t, err)
	require.EqualValues(t, 5, m.Summary.Rows)
	require.Equal(t, []string{"a", "b"}, m.Classes.Values)
}
