package batch

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// omission says which columns of the batches in a stream are skipped.
type omission struct {
	whole shape // shape of the batches with all columns
	cuts  []columnCut
}

// columnCut says which field nodes and buffers of a record batch belong to a skipped column.
// from has the indices of the first node and the first buffer that belong to it, and size has
// the numbers of these nodes and buffers.
type columnCut struct{ from, size shape }

// NewStreamReaderWithout is NewStreamReader for a stream whose batches have more columns than
// the schema at the beginning of r. stored has all columns of the batches, which may be of any
// type. Column i is not in the schema, and is skipped without decoding, if omit[i] is true.
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
	return newStreamReader(r, mem, o, &Buffers{})
}

// apply removes the skipped columns from the metadata of a record batch. Their bytes remain in
// the body.
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
