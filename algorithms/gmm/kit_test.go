package gmm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// iris returns the four measurements of the 150 flowers of iris.
func iris(t testing.TB) trial.Table {
	table := trial.Iris(t)
	require.Equal(t, 150, table.N)
	table.Words = nil
	return table
}

// blobs returns n points in d dimensions around k centres, with a full covariance. Centres are
// about 4 standard deviations apart in each dimension.
func blobs(seed uint64, n, d, k int) trial.Table {
	t := trial.Gaussian(seed, n, d)
	r := sharding.NewRandom(seed, "blobs", 0, 0)
	for i := range n {
		row, c := t.Row(i), r.IntN(k)
		for j := d - 1; j > 0; j-- {
			row[j] += 0.5 * row[j-1] * float64(1+c)
		}
		for j := range row {
			row[j] += 4 * float64((c+j)%k)
		}
	}
	return t
}

// train returns a model trained on a table. Params p need not name the columns.
func train(t testing.TB, table trial.Table, p gmm.Params, options ...engine.Option) *gmm.Model {
	t.Helper()
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return gmm.Train(table.Dataset(b), p) }, gmm.ModelOf, options...)
}

// fails requires that training fails with an error that contains the texts.
func fails(t *testing.T, table trial.Table, p gmm.Params, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(gmm.Train(table.Dataset(b), p), "model")
	}, texts...)
}

var shapes = []gmm.Covariance{gmm.Full, gmm.Diagonal, gmm.Spherical, gmm.Tied}
