package bins

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// batches returns batches of the given sizes with two features, and their values. With
// together, the batches are slices of one batch; otherwise each has its own memory.
func batches(t *testing.T, together bool, sizes ...int) (all []arrow.Record, values []float64) {
	n := 0
	for _, size := range sizes {
		n += size
	}
	for i := range 2 * n {
		values = append(values, float64(i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: must(batch.VectorType(2))}}, nil)
	from := 0
	whole := array.NewRecord(schema, []arrow.Array{batch.WrapVectorArray(values, 2)}, int64(n))
	for _, size := range sizes {
		part := whole.NewSlice(int64(from), int64(from+size))
		if !together {
			own, err := batch.Concat(memory.NewGoAllocator(), []arrow.Record{part})
			require.NoError(t, err)
			part = own
		}
		all = append(all, part)
		from += size
	}
	return all, values
}

func must(dt arrow.DataType, err error) arrow.DataType {
	if err != nil {
		panic(err)
	}
	return dt
}

func TestRowsInOnePieceAreNotCopied(t *testing.T) {
	for _, together := range []bool{true, false} {
		recs, values := batches(t, together, 3, 1, 40)
		p, err := newPlan(recs[0].Schema(), Columns{}, NoLabel, Options{}, false)
		require.NoError(t, err)
		o := newChecker(p)
		for _, rec := range recs {
			require.NoError(t, o.Process(nil, 0, 0, arrowrows.Batch(rec), nil))
		}
		rec, err := o.pack(memory.DefaultAllocator)
		require.NoError(t, err)
		raw := rec.Column(rawCell).(*array.List).ListValues().(*array.Float64).Float64Values()
		require.Equal(t, together, len(raw) > 0)
		if together {
			require.Equal(t, values, raw)
			require.Same(t, &values[0], &raw[0])
			require.Zero(t, rec.Column(valuesCell).(*array.List).ListValues().Len())
		} else {
			require.Len(t, rec.Column(valuesCell).(*array.List).ListValues().(*array.Float32).Float32Values(), len(values))
		}
		rec.Release()
		require.NoError(t, o.Close())
	}
}

func TestADictionaryIsLimited(t *testing.T) {
	b := array.NewInt64Builder(memory.NewGoAllocator())
	b.AppendValues([]int64{7, -1, 7, 3}, nil)
	column := b.NewArray()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: column.DataType()}}, nil), []arrow.Array{column}, 4)
	k := &packer{batches: []arrow.Record{rec}, runs: []run{{to: 4}}}
	k.out.n = 4
	numbers := make([]int32, 4)
	d, err := k.dictionary(0, numbers, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"-1", "3", "7"}, d.Texts)
	require.Equal(t, []int32{2, 0, 2, 1}, numbers)
	require.Equal(t, []int64{1, 1, 2}, d.Count)
	_, err = k.dictionary(0, numbers, 2)
	require.ErrorContains(t, err, "there are more than 2 different values")
	whole := d.Merge(dictionary{Keys: []string{"a", "b"}, Texts: []string{"a", "b"}, Count: []int64{5, 6}}, 3)
	require.Len(t, whole.Keys, 4, "Merge must keep limit+1 values, so that the excess is seen")
}

// TestBinnersAreTheDefinition compares bins that a binner looks up in its table with bins that
// Feature.Bin finds by binary search.
func TestBinnersAreTheDefinition(t *testing.T) {
	for _, cuts := range [][]float32{
		{0}, {-math.MaxFloat32 / 2, math.MaxFloat32}, {1, math.Nextafter32(1, 2)}, {-1, 0, 1, 1e-40, 3}, {-3e38, -1e-45, 1e-45, 3e38},
	} {
		cuts = append([]float32(nil), cuts...)
		keys := make([]uint32, len(cuts))
		for i, c := range cuts {
			keys[i] = keyOf(c)
		}
		for i, k := range tidy(keys) {
			cuts[i] = valueOf(k)
		}
		f := &Feature{Cuts: cuts, Bins: len(cuts) + 1}
		b := newBinner(f, 1<<20)
		try := []float32{0, 1, -1, math.MaxFloat32, -math.MaxFloat32, float32(math.NaN())}
		for _, c := range cuts {
			try = append(try, c, Single(float64(math.Nextafter32(c, math.MaxFloat32))), Single(float64(math.Nextafter32(c, -math.MaxFloat32))))
		}
		for i := range 2000 {
			try = append(try, Single(float64(math.Float32frombits(uint32(i)*2147483))))
		}
		for _, x := range try {
			require.Equal(t, f.Bin(x), int(b.bin(x)), "bin of %v by the cuts %v", x, cuts)
		}
	}
}
