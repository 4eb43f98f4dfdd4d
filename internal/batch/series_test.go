package batch

import (
	"bytes"
	"io"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestSeries reads a series of streams with no, one and two batches, and requires that all
// memory is released.
func TestSeries(t *testing.T) {
	type row struct{ N int64 }
	codec, err := NewCodec[row]()
	require.NoError(t, err)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	streamOf := func(batches ...[]row) []byte {
		var b bytes.Buffer
		w := NewStreamWriter(&b, codec.Schema(), mem)
		for _, rows := range batches {
			rec, err := codec.Record(mem, rows)
			require.NoError(t, err)
			require.NoError(t, w.Write(rec))
			rec.Release()
		}
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	read := func(streams ...[]byte) (got []int64, err error) {
		in, err := NewSeriesReader(func() ([]byte, error) {
			if len(streams) == 0 {
				return nil, io.EOF
			}
			first := streams[0]
			streams = streams[1:]
			return first, nil
		}, mem)
		if err != nil {
			return nil, err
		}
		defer in.Release()
		require.Equal(t, codec.Schema(), in.Schema())
		for {
			rec, err := in.Read()
			if err != nil {
				return got, err
			}
			rows, err := codec.Rows(rec)
			require.NoError(t, err)
			for _, r := range rows {
				got = append(got, r.N)
			}
			rec.Release()
		}
	}
	got, err := read(streamOf(), streamOf([]row{{1}, {2}}, []row{{3}}), streamOf(), streamOf([]row{{4}}))
	require.Equal(t, io.EOF, err)
	require.Equal(t, []int64{1, 2, 3, 4}, got)
	got, err = read(streamOf())
	require.Equal(t, io.EOF, err)
	require.Empty(t, got)
	_, err = read()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	whole := streamOf([]row{{1}})
	got, err = read(whole, whole[:len(whole)-20])
	require.Equal(t, []int64{1}, got)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	type other struct{ M int64 }
	strange, err := NewCodec[other]()
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, NewStreamWriter(&b, strange.Schema(), mem).Close())
	_, err = read(whole, b.Bytes())
	require.ErrorContains(t, err, "those before have")
}
