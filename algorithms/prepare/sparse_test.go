package prepare_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// TestStepsRefuseBadSparseVectors requires that a step returns an error that describes the
// fault if the caller has put an invalid sparse vector into a cell.
func TestStepsRefuseBadSparseVectors(t *testing.T) {
	columns := []string{"sparse"}
	bad := []struct {
		size    int
		indices []int32
		values  []float64
		want    string
	}{
		{4, []int32{-1}, []float64{1}, "it has a component -1"},
		{4, []int32{5}, []float64{1}, "it has a component 5"},
		{0, []int32{2, 2}, []float64{1, 2}, "it has component 2 twice"},
		{4, []int32{1, 0}, []float64{1, 2}, "component 0 follows component 1"},
		{4, []int32{1, 2}, []float64{1}, "it has 2 indices and 1 values"},
		{4, []int32{1}, []float64{1, 2}, "it has 1 indices and 2 values"},
		{9, []int32{1, 2}, []float64{1, 2}, "it has 9 components, the model was trained on 4"},
		{3, []int32{1, 2}, []float64{1, 2}, "it has 3 components, the model was trained on 4"},
	}
	for _, s := range []model.Stage{
		prepare.StandardScaler{Columns: columns}, prepare.MaxAbsScaler{Columns: columns}, prepare.PCA{Columns: columns},
		prepare.VectorAssembler{Columns: columns, Output: "o"}, prepare.VectorAssembler{Columns: columns, Form: prepare.Dense},
		prepare.Normalizer{Columns: columns},
	} {
		m, _ := quick(t, table(samples(false)), s)
		layout := model.NewLayout(columns...)
		step, err := m.Bind(layout)
		require.NoError(t, err)
		row := layout.NewRow()
		for _, c := range bad {
			row[0].SetSparse(c.size, c.indices, c.values)
			err := step(row)
			if s.Kind() == "normalizer" && (c.size == 9 || c.size == 3) {
				require.NoError(t, err, "a Normalizer must accept vectors of any size")
				continue
			}
			require.ErrorContains(t, err, `column "sparse": `+c.want, s.Kind())
		}
		row[0].SetSparse(0, []int32{1, 2}, []float64{1, 2})
		require.NoError(t, step(row), s.Kind())
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = step(row) }))
	}
}
