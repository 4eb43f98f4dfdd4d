package batch_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// TestDamagedHeads changes every bit of the metadata of messages. CheckHead may return an error
// or not, but must not read beyond the bytes of the metadata.
func TestDamagedHeads(t *testing.T) {
	schema := batchtest.Schema(t, "i int64", "t utf8 null", "s sparse[9]")
	rec := batchtest.Record(t, memory.NewGoAllocator(), schema, `[{"i": 1, "s": {"indices": [1], "values": [2]}}]`)
	defer rec.Release()
	var out bytes.Buffer
	w := batch.NewStreamWriter(&out, schema, memory.NewGoAllocator())
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	// The schema message is at 0 and the record batch after it. The metadata of each are
	// preceded by their length.
	head := func(at int) []byte { return out.Bytes()[at+8:][:binary.LittleEndian.Uint32(out.Bytes()[at+4:])] }
	first := head(0)
	second := head(8 + len(first))
	for i, whole := range [][]byte{first, second} {
		require.NoError(t, batch.CheckHead(whole, schema.Fields()))
		refused := 0
		for bit := range 8 * len(whole) {
			damaged := bytes.Clone(whole)
			damaged[bit/8] ^= 1 << (bit % 8)
			if batch.CheckHead(damaged, schema.Fields()) != nil {
				refused++
			}
			_, err := batch.ReadFooter(damaged)
			_ = err // the bytes are not a footer, but ReadFooter need not detect that
		}
		require.Greater(t, refused, len(whole)/2, i)
		for size := range len(whole) - 64 {
			require.Error(t, batch.CheckHead(whole[:size], schema.Fields()), "the metadata of message %d, cut to %d bytes, must be an error", i, size)
		}
		require.NoError(t, batch.CheckHead(append(bytes.Clone(whole), make([]byte, 56)...), schema.Fields()))
		require.ErrorContains(t, batch.CheckHead(append(bytes.Clone(whole), make([]byte, 64)...), schema.Fields()), "metadata of")
	}
	require.ErrorContains(t, batch.CheckHead(second, schema.Fields()[:2]), "field nodes")
}
