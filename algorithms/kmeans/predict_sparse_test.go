package kmeans_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// TestSparseRowsFarFromTheOrigin requires that rows that are much farther from the origin than
// from each other give the same model in dense and sparse form.
func TestSparseRowsFarFromTheOrigin(t *testing.T) {
	type dense struct {
		X []float64 `column:"x,dim=2"`
	}
	type sparse struct {
		X operators.SparseVector `column:"x,size=2"`
	}
	for _, offset := range []float64{1e8, 1e9, 1e10} {
		var d []dense
		var s []sparse
		for i := range 32 {
			v := []float64{offset + float64(i%4) + float64(i%2)*100, 1}
			d = append(d, dense{v})
			s = append(s, sparse{operators.SparseVector{Size: 2, Indices: []int32{0, 1}, Values: v}})
		}
		train := func(rows func(b *engine.Builder) *engine.Dataset) *kmeans.Model {
			result, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
				engine.Collect(kmeans.Train(rows(b), kmeans.Params{VectorCol: "x", K: 2}), "model")
				return nil
			}), struct{}{})
			require.NoError(t, err)
			defer result.Release()
			m, err := kmeans.ModelOf(result, "model")
			require.NoError(t, err)
			return m
		}
		want := train(func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, d) })
		got := train(func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, s) })
		require.InEpsilon(t, 32.0, want.Inertia, 1e-9) // 32 rows, each at distance 1 from its centre
		require.InEpsilon(t, want.Inertia, got.Inertia, 1e-9)
		require.Equal(t, want.Centers, got.Centers)
		near, dist := got.PredictSparse([]int32{1, 0}, []float64{1, offset})
		require.Equal(t, -1, near, "PredictSparse must return -1 for indices that are not in order")
		require.True(t, math.IsNaN(dist))
	}
}

// TestSparseIndicesThatAreRefused requires that training and predicting refuse invalid indices.
// Readers of files refuse such indices, but the batches of a user's operator have not been
// checked before.
func TestSparseIndicesThatAreRefused(t *testing.T) {
	dt, err := batch.SparseType(4)
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: dt}}, nil)
	for _, c := range []struct {
		indices  []int32
		training string
		applying string
	}{
		{[]int32{0, 4}, "index 4 is not below the size, 4", "has 5 components, the model was trained on 4"},
		{[]int32{2, 2}, "index 2 occurs twice", "component 2 twice"},
		{[]int32{3, 1}, "index 1 follows 3; indices ascend", "component 1 follows component 3"},
		{[]int32{-1, 1}, "index -1 is negative", "component -1"},
		{[]int32{math.MaxInt32, 0}, "index 2147483647 is not below the size, 4", "component 0 follows"},
	} {
		damaged := func(b *engine.Builder) *engine.Dataset {
			arr, err := batch.NewSparseArray(memory.NewGoAllocator(), batch.CSR{Size: 4, Indptr: []int32{0, 2}, Indices: []int32{0, 1}, Values: []float64{1, 1}})
			require.NoError(t, err)
			view, ok := batch.SparseView(arr)
			require.True(t, ok)
			copy(view.Indices, c.indices) // changes the indices after they were checked
			return b.Add(engine.Spec{
				Op: "Damage", Schema: arrowrows.Schema(schema), Inputs: []engine.Port{{From: operators.FromSlice(b, []int64{1})}},
				Operator: func() engine.Operator { return damage{array.NewRecord(schema, []arrow.Array{arr}, 1)} },
			})
		}
		_, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(kmeans.Train(damaged(b), kmeans.Params{VectorCol: "v", K: 1}), "model")
			return nil
		}), struct{}{})
		require.ErrorContains(t, err, `row 0 of the shard: column "v": `)
		require.ErrorContains(t, err, c.training)
		model := &kmeans.Model{Centers: [][]float64{{1, 2, 3, 4}}, Sizes: []float64{1}, Dim: 4, VectorCol: "v", VectorType: "sparse[4]"}
		_, err = engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(kmeans.Predict(damaged(b), model.Dataset(b), kmeans.PredictOptions{}), "clusters")
			return nil
		}), struct{}{})
		require.ErrorContains(t, err, `row 0 of the shard: column "v"`)
		require.ErrorContains(t, err, c.applying)
	}
}

// damage is an operator that emits the record batch in place of each batch of its input.
type damage struct{ batch arrow.Record }

func (damage) Open(*engine.Context) error                         { return nil }
func (damage) EndShard(*engine.Context, int, engine.Output) error { return nil }
func (damage) Finish(*engine.Context, engine.Output) error        { return nil }
func (damage) Close() error                                       { return nil }
func (d damage) Process(_ *engine.Context, _, shard int, _ engine.Batch, out engine.Output) error {
	return out.Emit(shard, arrowrows.Batch(d.batch))
}
