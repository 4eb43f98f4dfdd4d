package trial

import (
	"bytes"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// BadText adds rows and replaces every "~" in a text column by the byte 0xff, which is not
// UTF-8, as a file of another program may have it. Rows that a function returns are refused
// where they have such text.
func BadText[T any](b *engine.Builder, rows []T, column string) *engine.Dataset {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		b.Errorf("bad text: %w", err)
		return b.Poisoned("BadText")
	}
	rec, err := codec.Record(memory.NewGoAllocator(), rows)
	if err != nil {
		b.Errorf("bad text: %w", err)
		return b.Poisoned("BadText")
	}
	for _, i := range rec.Schema().FieldIndices(column) {
		text := rec.Column(i).Data().Buffers()[2].Bytes()
		copy(text, bytes.ReplaceAll(text, []byte("~"), []byte{0xff}))
	}
	return arrowbridge.FromRecords(b, []arrow.Record{rec})
}
