package comqueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// matrixRow has a vector of each kind. All three vectors have the same two components.
type matrixRow struct {
	Array [2]float64
	Fixed []float64 `column:"fixed,dim=2"`
	Open  []float64
}

// sumsOf returns a function that builds a queue that sums the components of a matrix column
// over n rows, which make returns.
func sumsOf(column string, n int, make func(i int) matrixRow) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		rows := operators.Generate(b, int64(n), func(_ sharding.Random, i int64) matrixRow { return make(int(i)) })
		return comqueue.New(b, "sums").
			InitWithPartitionedData(data, rows).
			Do(func(ctx *comqueue.ComContext) error {
				gradient.Put(ctx, []float64{0, 0})
				return nil
			}).
			Add(comqueue.ForEachShard(gradient, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				m := data.Get(ctx, shard).Matrix(column)
				for i := range m.Rows {
					for k, v := range m.Row(i) {
						out[k] += v
					}
				}
				return nil
			})).
			Add(comqueue.AllReduce(gradient)).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				sums := gradient.Get(ctx)
				return []row{{sums[0]}, {sums[1]}}, nil
			})).
			SetMaxIter(1).
			Exec()
	}
}

// TestVectorsAsMatrices requires that vectors of every kind can be read as a matrix if all rows
// have the same number of components, even if some shards have no rows.
func TestVectorsAsMatrices(t *testing.T) {
	for _, column := range []string{"array", "fixed", "open"} {
		for _, n := range []int{0, 1, 3, 100} {
			got, _, err := run(t, sumsOf(column, n, func(i int) matrixRow {
				v := []float64{float64(i), 2}
				return matrixRow{[2]float64(v), v, v}
			}), engine.Shards(8))
			require.NoError(t, err, "%s of %d rows", column, n)
			require.Equal(t, []row{{float64(n * (n - 1) / 2)}, {float64(2 * n)}}, got)
		}
	}
	_, _, err := run(t, sumsOf("open", 16, func(i int) matrixRow {
		return matrixRow{Fixed: []float64{0, 0}, Open: make([]float64, 2+i/15)}
	}), engine.Shards(8))
	require.ErrorContains(t, err, `column "open" is vector, of which row 0 has 2 components and row 1 has 3, not vectors of one size without nulls`)
	require.ErrorContains(t, err, "shard 7")
}
