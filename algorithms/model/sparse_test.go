package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

func TestCheckSparse(t *testing.T) {
	for _, c := range []struct {
		declared int
		indices  []int32
		values   []float64
		size     int
		want     string // a part of the error's text; "" if there must be no error
	}{
		{3, []int32{0, 2}, []float64{1, 2}, 3, ""},
		{0, []int32{0, 2}, []float64{1, 2}, 3, ""},
		{3, nil, nil, 3, ""},
		{0, nil, nil, 0, ""},
		{9, []int32{8}, []float64{1}, -1, ""},
		{0, []int32{1 << 30}, []float64{1}, -1, ""},
		{3, []int32{-1}, []float64{1}, 3, "it has a component -1: indices begin at 0"},
		{0, []int32{-2, -1}, []float64{1, 1}, -1, "it has a component -2"},
		{0, []int32{1, -1}, []float64{1, 1}, -1, "it has a component -1"},
		{0, []int32{1, 1}, []float64{1, 1}, -1, "it has component 1 twice"},
		{3, []int32{0, 2, 1}, []float64{1, 1, 1}, 3, "component 1 follows component 2: want ascending indices"},
		{3, []int32{5}, []float64{1}, 3, "it has a component 5, the model was trained on 3 components"},
		{0, []int32{0}, []float64{1}, 0, "it has a component 0, the model was trained on 0 components"},
		{3, []int32{3}, []float64{1}, -1, "it has a component 3 and declares 3 components"},
		{9, []int32{1}, []float64{1}, 3, "it has 9 components, the model was trained on 3"},
		{2, []int32{1}, []float64{1}, 3, "it has 2 components, the model was trained on 3"},
		{-1, []int32{1}, []float64{1}, -1, "it declares -1 components"},
		{3, []int32{1, 2}, []float64{1}, 3, "it has 2 indices and 1 values"},
		{3, []int32{1}, []float64{1, 2}, 3, "it has 1 indices and 2 values"},
	} {
		var cell model.Cell
		cell.SetSparse(c.declared, c.indices, c.values)
		err := cell.CheckSparse(c.size)
		if c.want == "" {
			require.NoError(t, err, "the vector is valid: %v", c)
		} else {
			require.ErrorContains(t, err, c.want, "%v", c)
		}
	}
	var cell model.Cell
	require.NoError(t, cell.CheckSparse(3))
	cell.SetDense([]float64{1})
	require.NoError(t, cell.CheckSparse(3))
	cell.SetSparse(3, []int32{0, 1, 2}, []float64{1, 2, 3})
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = cell.CheckSparse(3) }))
}
