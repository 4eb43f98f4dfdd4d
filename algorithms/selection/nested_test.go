package selection_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// classed is a row of one of many small classes. Since classes are small, the i-th row of a
// class in a part of the dataset is often also the i-th row of the class in the dataset. So
// random draws that depended only on the position of a row within its class would be
// correlated.
type classed struct {
	ID    int64
	Class int64
}

// TestDivisionsAreIndependent compares an outer division, by Split, with two divisions that
// must be independent of it. The inner division divides the training rows of the outer division
// with the same seed. The third division divides the same rows with Stratified. Classes have
// four rows. The outer division holds out each row with probability 1/4, and the inner division
// holds out each of the three remaining rows with probability 1/3.
func TestDivisionsAreIndependent(t *testing.T) {
	const classes, seeds = 100, 40
	rows := make([]classed, 4*classes)
	for i := range rows {
		rows[i] = classed{int64(i), int64(i / 4)}
	}
	// nested[i][j] counts how often the outer division held out row i of a class, and the inner
	// division held out row j of the same class.
	var nested [4][4]float64
	var alike, both float64
	for seed := range uint64(seeds) {
		r := trial.Run(t, func(b *engine.Builder) {
			d := operators.FromSlice(b, rows)
			outer := selection.Split(d, selection.SplitOptions{Test: 0.25, Stratify: "class", Seed: seed + 1})
			inner := selection.Split(outer.Train, selection.SplitOptions{Test: 1. / 3, Stratify: "class", Seed: seed + 1})
			engine.Collect(outer.Test, "outer")
			engine.Collect(inner.Test, "inner")
			engine.Collect(selection.Stratified(d, "class", 4, seed+1)[0].Test, "fold")
		})
		var held [classes]int
		out, err := engine.Rows[classed](r, "outer")
		require.NoError(t, err)
		require.Len(t, out, classes)
		first := map[int64]bool{}
		for _, row := range out {
			held[row.Class] = int(row.ID % 4)
			first[row.ID] = true
		}
		in, err := engine.Rows[classed](r, "inner")
		require.NoError(t, err)
		require.Len(t, in, classes)
		for _, row := range in {
			nested[held[row.Class]][row.ID%4]++
		}
		fold, err := engine.Rows[classed](r, "fold")
		require.NoError(t, err)
		for _, row := range fold {
			both++
			if first[row.ID] {
				alike++
			}
		}
	}
	chi := 0.0
	for first, row := range nested {
		require.Zero(t, row[first], "the inner division must not hold out a row that the outer division holds out")
		sum := row[0] + row[1] + row[2] + row[3]
		for second, n := range row {
			if second != first {
				chi += math.Pow(n-sum/3, 2) / (sum / 3)
			}
		}
	}
	require.Less(t, chi, 40.0, "chi-square with 8 degrees of freedom, which exceeds 40 with probability 3e-6: %v", nested)
	require.Less(t, math.Pow(alike-both/4, 2)/(both*3/16), 20.5, "of the rows that Stratified holds out, Split holds out %v of %v, want about a quarter", alike, both)
}
