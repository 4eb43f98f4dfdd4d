package batch_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// content returns everything that Content produces for rec: numbers as eight bytes, and bytes
// as they are.
func content(t require.TestingT, rec arrow.Record, block int) []byte {
	var all []byte
	c := batch.Content{
		Number: func(v int64) { all = binary.LittleEndian.AppendUint64(all, uint64(v)) },
		Bytes:  func(piece []byte) { all = append(all, piece...) },
	}
	require.NoError(t, c.Add(rec, block))
	return all
}

// lying returns, in the same form, the bytes that Content must produce for rec. It takes them
// directly from the buffers of rec. The buffers must hold the rows of rec and nothing else.
func lying(rec arrow.Record) []byte {
	var all []byte
	number := func(v int64) { all = binary.LittleEndian.AppendUint64(all, uint64(v)) }
	var data func(d arrow.ArrayData)
	data = func(d arrow.ArrayData) {
		number(int64(d.NullN()))
		for _, b := range d.Buffers() {
			if b == nil {
				number(-1)
				continue
			}
			number(int64(b.Len()))
			all = append(all, b.Bytes()...)
		}
		for _, child := range d.Children() {
			data(child)
		}
	}
	number(rec.NumRows())
	for _, column := range rec.Columns() {
		data(column.Data())
	}
	return all
}

// TestContentIsThatOfACopy compares Content with the buffers of a copy of the same rows.
func TestContentIsThatOfACopy(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		rec := drawRecord(t, mem, drawSchema(t, allTypes, 0))
		defer rec.Release()
		from := rapid.IntRange(0, int(rec.NumRows())).Draw(t, "from")
		part, err := batch.Slice(rec, from, int(rec.NumRows()))
		require.NoError(t, err)
		defer part.Release()
		block := rapid.IntRange(1, 5).Draw(t, "block")
		var want []byte
		for some := range batch.Rechunk(part, block) {
			whole, err := batch.Concat(mem, []arrow.Record{some})
			require.NoError(t, err)
			want = append(want, lying(whole)...)
			whole.Release()
			some.Release()
		}
		if part.NumRows() == 0 {
			whole, err := batch.Concat(mem, []arrow.Record{part})
			require.NoError(t, err)
			want = lying(whole)
			whole.Release()
		}
		require.True(t, bytes.Equal(want, content(t, part, block)))
	})
}

// TestContentOfManyRows tests bitmaps and offsets that are produced in several pieces, and
// requires that blocks cause no allocations.
func TestContentOfManyRows(t *testing.T) {
	type row struct {
		Bit  *bool     `column:"bit"`
		Text string    `column:"text"`
		List []float64 `column:"list"`
	}
	codec, err := batch.NewCodec[row]()
	require.NoError(t, err)
	rows := make([]row, 20_000)
	for i := range rows {
		if i%3 > 0 {
			bit := i%5 == 0
			rows[i].Bit = &bit
		}
		rows[i].Text, rows[i].List = string(rune('a'+i%7)), make([]float64, i%4)
	}
	mem := batchtest.Allocator(t)
	rec, err := codec.Record(mem, rows)
	require.NoError(t, err)
	defer rec.Release()
	for _, start := range []int{0, 5} {
		part, err := batch.Slice(rec, start, len(rows))
		require.NoError(t, err)
		whole, err := batch.Concat(mem, []arrow.Record{part})
		require.NoError(t, err)
		require.True(t, bytes.Equal(lying(whole), content(t, part, math.MaxInt)))
		whole.Release()
		part.Release()
	}
	c := batch.Content{Number: func(int64) {}, Bytes: func([]byte) {}}
	once := testing.AllocsPerRun(5, func() { _ = c.Add(rec, len(rows)) })
	require.Equal(t, once, testing.AllocsPerRun(5, func() { _ = c.Add(rec, 10) }))
}
