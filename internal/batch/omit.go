package batch

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// omission says which columns of the batches in a stream are passed over.
type omission struct {
	whole shape // of the batches as they are
	cuts  []columnCut
}

// columnCut is where the field nodes and buffers of a column are among those of a batch.
type columnCut struct{ from, size shape }

// NewStreamReaderWithout is NewStreamReader for batches with more columns than the schema that
// r begins with: stored are all of them, of types that are supported or not, and those for
// which omit is true are passed over, undecoded.
func NewStreamReaderWithout(r io.Reader, mem memory.Allocator, stored []arrow.Field, omit []bool) (*StreamReader, error) {
	o := &omission{}
	for i, f := range stored {
		size := shapeOfType(f.Type)
		if omit[i] {
			o.cuts = append(o.cuts, columnCut{o.whole, size})
		}
		o.whole = o.whole.and(size)
	}
	if len(o.cuts) == 0 {
		o = nil
	}
	return newStreamReader(r, mem, o)
}

// apply takes out of the metadata of a record batch what belongs to the columns that are passed
// over. Their bytes in the body stay.
func (o *omission) apply(meta []byte) error {
	if _, _, err := checkMessage(meta, o.whole); err != nil {
		return err
	}
	f := newFlat(meta)
	msg := f.table(int64(f.u32(0)))
	header := f.child(msg, 2)
	if f.scalar8(msg, 1) != headerRecordBatch {
		return nil
	}
	for i, of := range []func(s shape) int64{
		func(s shape) int64 { return s.nodes },
		func(s shape) int64 { return s.buffers },
	} {
		start, n := f.vector(header, 1+i, 16)
		if n == 0 {
			continue
		}
		to := int64(0)
		for from, cuts := int64(0), o.cuts; from < n; {
			if len(cuts) > 0 && from == of(cuts[0].from) {
				from, cuts = from+of(cuts[0].size), cuts[1:]
				continue
			}
			copy(meta[start+16*to:], meta[start+16*from:start+16*from+16])
			from, to = from+1, to+1
		}
		binary.LittleEndian.PutUint32(meta[start-4:], uint32(to))
	}
	return f.err()
}
