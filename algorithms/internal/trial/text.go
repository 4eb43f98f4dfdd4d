package trial

import (
	"bytes"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// BadText adds a dataset of rows in which every "~" of a text column is replaced by the byte
// 0xff, which is not UTF-8. Files that other programs wrote may have such text. The rows are
// added as a record batch, because operators that read rows from Go functions refuse such text.
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
