package rows

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestShardStatsCodec requires that Decode returns the statistics that were encoded. For
// truncated bytes, Decode must return an error, or statistics with fewer classes.
func TestShardStatsCodec(t *testing.T) {
	for _, want := range []shardStats{
		{},
		{
			Rows: 7, Weighing: 5, Dim: 3, Weight: 2.5, Label: Moments{1, 2, 3}, Offset: Moments{4, 5, 6}, Min: math.Inf(1), Max: math.Inf(-1),
			Classes: Dictionary{Keys: []string{"\x80\x00", "", "b"}, Texts: []string{"0", "ä", ""}, Weight: []float64{1, 0, 1e300}},
		},
	} {
		text, err := shardStatsCodec{}.Append([]byte("before"), want)
		require.NoError(t, err)
		require.Equal(t, "before", string(text[:6]))
		got, err := shardStatsCodec{}.Decode(text[6:])
		require.NoError(t, err)
		require.Equal(t, want, got)
		const whole = 12 * 8
		for n := 6; n < len(text); n++ {
			if n-6 == whole {
				continue // this prefix is valid statistics without classes
			}
			got, err := shardStatsCodec{}.Decode(text[6:n])
			if err == nil { // if there is no error, the prefix ends after a class
				require.Less(t, len(got.Classes.Keys), len(want.Classes.Keys))
			}
		}
	}
	huge := make([]byte, 13*8)
	for i := range huge {
		huge[i] = 0xff
	}
	_, err := shardStatsCodec{}.Decode(append(huge, huge...))
	require.ErrorIs(t, err, errShardStats)
}

// TestClassesOfFloats requires that the class numbers of float labels 0, 1, … are a view of the
// column, and that −0 has the class of 0. Other float labels must get class numbers, and a
// label that is not one of the classes must be an error.
func TestClassesOfFloats(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, c := range []struct {
		values, want []float64
		view         bool
	}{
		{[]float64{1, 0, negative, 1, 0}, []float64{1, 0, 0, 1, 0}, true},
		{[]float64{2, 0, 1, 1}, []float64{2, 0, 1, 1}, true},
		{[]float64{1, 2, 1}, []float64{0, 1, 0}, false},
		{[]float64{-1, 1, 1}, []float64{0, 1, 1}, false},
		{[]float64{0.5, negative, 0.5}, []float64{1, 0, 1}, false},
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, []float64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, true},
	} {
		// Repeat the labels, so that they fill several blocks of codeRows codes.
		var values, want []float64
		for len(values) < 3*codeRows {
			values, want = append(values, c.values...), append(want, c.want...)
		}
		column := floats(values...)
		set, err := classesOf(column, nil)
		require.NoError(t, err)
		ones := make([]float64, len(values))
		for i := range ones {
			ones[i] = 1
		}
		weighted, err := classesOf(column, ones)
		require.NoError(t, err)
		require.Equal(t, weighted, set)
		got, err := set.numbers(column)
		require.NoError(t, err)
		require.Equal(t, len(want), len(got))
		for i, v := range got {
			require.True(t, v == want[i])
		}
		require.Equal(t, c.view, &got[0] == &column.Float64Values()[0])
		strange := floats(append(values, 0.25)...)
		_, err = set.numbers(strange)
		require.ErrorContains(t, err, "the label 0.25 is not one of the")
	}
}

// floats returns a column of numbers.
func floats(values ...float64) *array.Float64 {
	b := array.NewFloat64Builder(memory.NewGoAllocator())
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewFloat64Array()
}
