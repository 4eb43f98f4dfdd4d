package objective_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// opens adds a queue that opens the objective l over a table with labels of the given kind.
func opens(b *engine.Builder, table trial.Table, l objective.Linear, kind rows.LabelKind) {
	checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), kind)
	if err != nil {
		b.Errorf("%w", err)
		return
	}
	l.Table = checked
	engine.Collect(checked.Init(comqueue.New(b, "open")).
		Do(func(ctx *comqueue.ComContext) error { _, err := l.Open(ctx); return err }).
		SetMaxIter(1).
		CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]float64, error) { return nil, nil })).
		Exec(), "none")
}

func TestObjectivesThatAreRefused(t *testing.T) {
	x := [][]float64{{1}, {2}, {4}}
	labels := func(y ...float64) trial.Table { return trial.TableOf(y, x...) }
	shifted := labels(0, 1, 2)
	shifted.Offset = []float64{0, 0, 1}
	nothing := trial.Table{N: 2, D: 1, X: []float64{0, 0}, Label: []float64{0, 1}, Weight: []float64{1, 0}}
	for _, c := range []struct {
		table  trial.Table
		linear objective.Linear
		kind   rows.LabelKind
		text   string
	}{
		{labels(1, 1, 1), objective.Linear{Loss: objective.Logistic{}}, rows.ClassLabel, `every label is "1": a classifier needs two classes`},
		{labels(1, 2, 3), objective.Linear{Loss: objective.Hinge{}}, rows.ClassLabel, "the labels have 3 classes, and this loss takes two"},
		{labels(1, 2, -3), objective.Linear{Loss: objective.Poisson{}}, rows.NumberLabel, "row 0 of the shard: the label -3 is negative"},
		{labels(1, 0, 3), objective.Linear{Loss: objective.Gamma{}}, rows.NumberLabel, "the label 0 is not a value of a gamma distribution"},
		{shifted, objective.Linear{Loss: objective.Softmax{}}, rows.ClassLabel, "an offset is for losses of one"},
		{nothing, objective.Linear{Loss: objective.Logistic{}}, rows.ClassLabel, `every row of class "1" weighs 0`},
		{labels(1, 2, 3), objective.Linear{}, rows.NumberLabel, "no loss"},
		{labels(1, 2, 3), objective.Linear{Loss: objective.Logistic{}}, rows.NumberLabel, "the logistic loss does not take such labels"},
		{labels(1, 2, 3), objective.Linear{Loss: objective.Squared{}, Balanced: true}, rows.NumberLabel, "class weights are for classifiers"},
		{labels(1, 2, 2), objective.Linear{Loss: objective.Logistic{}, ClassWeights: map[string]float64{"3": 1, "7": 1}}, rows.ClassLabel, `class weights name "3", which is no class: there are 1, 2`},
		{labels(1, 2, 2), objective.Linear{Loss: objective.Logistic{}, ClassWeights: map[string]float64{"1": -1}}, rows.ClassLabel, `ClassWeights of "1" is -1`},
		{labels(1, 2, 2), objective.Linear{Loss: objective.Logistic{}, Balanced: true, ClassWeights: map[string]float64{"1": 1}}, rows.ClassLabel, "choose one"},
	} {
		trial.Fails(t, func(b *engine.Builder) { opens(b, c.table, c.linear, c.kind) }, c.text)
	}
}

// TestInfiniteLosses requires that a row with weight 0 has no effect, even if its loss is
// infinite.
func TestInfiniteLosses(t *testing.T) {
	table := trial.TableOf([]float64{1, 2, 3}, []float64{1}, []float64{2}, []float64{400})
	with(t, table, objective.Linear{Loss: objective.Poisson{}}, func(o opened) {
		v, err := o.linear.Parameters(o.facts, objective.Coefficients{Margins: 1, D: 1, Weights: []float64{2}, Intercepts: []float64{0}})
		require.NoError(t, err)
		require.True(t, math.IsInf(o.evaluate(t, v)[0], 1))
	})
	table.Weight = []float64{1, 1, 0}
	with(t, table, objective.Linear{Loss: objective.Poisson{}}, func(o opened) {
		v := []float64{1000, 0}
		sums := o.evaluate(t, v)
		require.False(t, math.IsNaN(sums[0]))
	})
}

// TestRowsWithoutWeightHaveNoCurvature requires that rows with weight 0 do not change the
// matrix of second derivatives. The second derivatives of such a row may be infinite, and 0
// times infinity is NaN.
func TestRowsWithoutWeightHaveNoCurvature(t *testing.T) {
	x := [][]float64{{1, 0.5}, {0.25, -1}, {-0.5, 2}, {1e4, 1e4}}
	table := trial.TableOf([]float64{1, 2, 3, 0}, x...)
	table.Weight = []float64{1, 2, 0.5, 0}
	beta := []float64{0.5, 0.25}
	with(t, table, objective.Linear{Loss: objective.Poisson{}, NoIntercept: true}, func(o opened) {
		v, err := o.linear.Parameters(o.facts, objective.Coefficients{Margins: 1, D: 2, Weights: beta, Intercepts: []float64{0}})
		require.NoError(t, err)
		want := make([]float64, 3) // the lower triangle of the matrix, for scaled features
		for i, row := range x[:3] {
			curve := table.Weight[i] * math.Exp(beta[0]*row[0]+beta[1]*row[1])
			a, b := row[0]*beta[0]/v[0], row[1]*beta[1]/v[1]
			want[0] += curve * a * a
			want[1] += curve * a * b
			want[2] += curve * b * b
		}
		sums := o.sum(t, 1+len(v)+len(want), func(shard int, out []float64) error { return o.e.Hessian(shard, v, out) })
		require.InDeltaSlice(t, want, sums[1+len(v):], 1e-12)
	})
}

func TestSizesThatDoNotFit(t *testing.T) {
	table := trial.TableOf([]float64{1, 2, 3}, []float64{1}, []float64{2}, []float64{4})
	with(t, table, objective.Linear{Loss: objective.Squared{}}, func(o opened) {
		_, err := o.linear.Coefficients(o.facts, []float64{1})
		require.ErrorContains(t, err, "there are 1 parameters, want 2")
		_, err = o.linear.Parameters(o.facts, objective.Coefficients{Margins: 1, D: 2, Weights: []float64{1, 2}, Intercepts: []float64{0}})
		require.ErrorContains(t, err, "coefficients of 2 features for 1 margins")
		_, err = o.linear.Covariance(o.facts, []float64{1})
		require.ErrorContains(t, err, "the covariance has 1 values, want 3")
	})
}

func TestOneRow(t *testing.T) {
	with(t, trial.TableOf([]float64{3}, []float64{1, 2}), objective.Linear{Loss: objective.Squared{}}, func(o opened) {
		require.Equal(t, []float64{0.5, 0, 0, -1}, o.evaluate(t, []float64{5, 5, 2}))
	})
}
