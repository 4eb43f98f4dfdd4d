package comqueue

import (
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
