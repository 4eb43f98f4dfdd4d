package bins_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

func TestSmoke(t *testing.T) {
	table := trial.Gaussian(1, 1000, 3)
	s := look(t, table.Dataset, bins.Columns{}, bins.NoLabel, bins.Options{MaxBins: 10})
	require.Len(t, s.Rows, 1000)
	t.Log(s.Layout.Features[0], s.Facts)
	count := make([]int, 11)
	for _, r := range s.Rows {
		count[r.Bins[0]]++
	}
	t.Log(count)
	table.Sparse = true
	s = look(t, table.Dataset, bins.Columns{}, bins.NoLabel, bins.Options{MaxBins: 10})
	t.Log(s.Layout.Columns)
}
