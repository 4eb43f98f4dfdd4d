package comqueue

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLetters decodes any bytes, for a subtask that wants reports and one that does not,
// and finds in what it encodes what it had.
func FuzzLetters(f *testing.F) {
	whole, err := lettersCodec{}.Append(nil, letters{Next: 3, Reports: []shardReport{{Step: 7, Name: "loss", Level: 1, Index: 2, Value: 0.5}}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte{maxLag})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		few, fewErr := lettersCodec{}.Decode(data)
		all, err := lettersCodec{reports: true}.Decode(data)
		if err != nil {
			return
		}
		require.NoError(t, fewErr)
		require.Equal(t, letters{Next: all.Next}, few)
		again, err := lettersCodec{}.Append(nil, all)
		require.NoError(t, err)
		same, err := lettersCodec{reports: true}.Decode(again)
		require.NoError(t, err)
		once, err := lettersCodec{}.Append(nil, same)
		require.NoError(t, err)
		require.Equal(t, again, once)
	})
}

// TestMailHasOneNaN: which NaN a report is says nothing of where the subtasks are, as it
// does not within one process.
func TestMailHasOneNaN(t *testing.T) {
	other := math.Float64frombits(0xfff8000000000123)
	for _, f := range []fold{foldSum, foldMax} {
		m := &mail{arrived: []shardReport{{Step: 1, Name: "loss", Fold: f, Level: 1, Index: 0, Value: other}, {Step: 1, Name: "loss", Fold: f, Level: 1, Index: 1, Value: 1}}}
		told := 0
		require.NoError(t, m.open(4, func(_ string, _ int, value float64) {
			told++
			require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(value))
		}))
		require.Equal(t, 1, told)
	}
}
