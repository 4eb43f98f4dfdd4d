package forest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// scarce returns n rows of d features, most of which are 0. Some features are in blocks of ten,
// of which each row has one non-zero feature, as in one-hot columns. The other features are
// non-zero with a small probability.
func scarce(seed uint64, n, d int) trial.Table {
	t := trial.Gaussian(seed, n, d)
	for i := range n {
		x := t.Row(i)
		pick := int(math.Abs(x[0]*7)) % 10
		y := x[1] / 2
		for j := range x {
			switch {
			case j < d/2 && j%10 == pick:
				x[j] = 1
				y += float64(j % 7)
			case j < d/2 || math.Abs(x[j]) < 1.6:
				x[j] = 0
			default:
				y += x[j] * float64(j%3)
			}
		}
		t.Label = append(t.Label, y)
	}
	return t
}

// TestSparseRowsAreDenseRows requires that sparse rows give the same trees as dense rows,
// although features of sparse rows share columns or have no column.
func TestSparseRowsAreDenseRows(t *testing.T) {
	for _, c := range []struct {
		d      int
		memory int64
	}{{60, 0}, {60, 5000}, {400, 0}} {
		table := scarce(1, 300, c.d)
		p := forest.Params{LabelCol: "label", NumTrees: 3, AbsentIsZero: true, OOBScore: true, Memory: c.memory}
		dense := train(t, table, p)
		table.Sparse = true
		sparse := train(t, table, p, engine.Parallelism(2))
		trial.SameTrees(t, dense.Trees, sparse.Trees)
		require.Equal(t, dense.OutOfBag, sparse.OutOfBag)
		require.Greater(t, dense.Summary.Nodes, int64(300))
	}
}

// TestAbsentIsMissing requires that, without AbsentIsZero, sparse rows give the same trees as
// dense rows that have NaN for absent features.
func TestAbsentIsMissing(t *testing.T) {
	table := scarce(2, 200, 40)
	table.Sparse = true
	p := forest.Params{LabelCol: "label", NumTrees: 3}
	sparse := train(t, table, p)
	dense := table
	dense.Sparse, dense.X = false, append([]float64(nil), table.X...)
	for i, v := range dense.X {
		if v == 0 {
			dense.X[i] = math.NaN()
		}
	}
	trial.SameTrees(t, train(t, dense, p).Trees, sparse.Trees)
	for i := range 20 {
		indices, values := trial.Sparse(table.Row(i))
		require.Equal(t, sparse.Predict(dense.Row(i)), sparse.PredictSparse(indices, values))
	}
}

func TestSameBitsOfSparseRows(t *testing.T) {
	table := scarce(3, 120, 40)
	table.Sparse = true
	for _, memory := range []int64{0, 3000} {
		p := forest.Params{LabelCol: "label", NumTrees: 3, AbsentIsZero: true, OOBScore: true, Memory: memory}
		trial.SameBits(t, func(b *engine.Builder) {
			rows := table.Dataset(b)
			made := forest.Train(rows, p)
			engine.Collect(made, "model")
			engine.Collect(forest.Predict(rows, made, forest.PredictOptions{}), "rows")
		}, forest.Kind)
	}
}
