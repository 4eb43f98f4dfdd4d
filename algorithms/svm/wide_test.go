package svm_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// TestSparseRowsOfManyFeatures trains on rows in which few of very many features occur. It
// requires the same model as for the occurring features alone, for two classes and for more.
func TestSparseRowsOfManyFeatures(t *testing.T) {
	const size, used, n = 2_000_000, 60, 80
	for _, classes := range []int{2, 3} {
		for _, p := range []svm.LinearSVC{{L2: 0.5, GapTol: 1e-4}, {L2: 0.5, Squared: true}} {
			mem := memory.NewGoAllocator()
			csr := batch.CSR{Size: size, Indptr: []int32{0}}
			labels := array.NewFloat64Builder(mem)
			small := trial.Table{N: n, D: used, X: make([]float64, n*used), Sparse: true}
			for i := range n {
				y := float64(i * i % 7 % classes)
				for _, j := range []int{i % 20, 20 + i*3%20, 40 + i*7%20} {
					v := math.Sin(float64(i+j)) + y*float64(j%3-1)
					csr.Indices, csr.Values = append(csr.Indices, int32(j*30_000)), append(csr.Values, v)
					small.X[i*used+j] = v
				}
				csr.Indptr = append(csr.Indptr, int32(len(csr.Indices)))
				labels.Append(y)
				small.Label = append(small.Label, y)
			}
			column, err := batch.NewSparseArray(mem, csr)
			require.NoError(t, err)
			y := labels.NewArray()
			record := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: column.DataType()}, {Name: "y", Type: y.DataType()}}, nil), []arrow.Array{column, y}, n)
			p.LabelCol = "y"
			r := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(svm.TrainSVC(arrowbridge.FromRecords(b, []arrow.Record{record}), p), "model")
			})
			m, err := svm.SVCModelOf(r, "model")
			require.NoError(t, err)
			require.Equal(t, size, m.Dim)
			require.Len(t, m.Columns, used)
			want := classify(t, small, p)
			require.InEpsilon(t, want.Summary.Objective, m.Summary.Objective, 2e-4)
			for a := range want.Coefficients {
				require.InDeltaSlice(t, want.Coefficients[a], m.Coefficients[a], 0.05)
			}
		}
	}
}
