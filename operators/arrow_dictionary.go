package operators

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// dictionary holds the values of a column's dictionary that have been read so far. Messages
// with values precede the batches that refer to the values by index. The values of a message
// either replace the values of earlier messages or are appended to them. The values are on the
// Go heap.
type dictionary struct {
	first, last int // the messages with indices first to last-1 of the dictionary have been read
	values      arrow.Record
}

func (f *arrowFile) hasDictionary(column int) bool { return f.lookups[column] != nil }

// of returns the values of the dictionary of column to which batch k refers. The caller borrows
// them until the next call.
func (d *dictionary) of(f *arrowFile, column, k int) (arrow.Record, error) {
	id := f.ids[column]
	first, last := f.inForce(id, k)
	if d.values == nil || first != d.first || last < d.last {
		d.first, d.last, d.values = first, first, nil
	}
	var parts []arrow.Record
	if d.values != nil {
		if d.last == last {
			return d.values, nil
		}
		parts = append(parts, d.values)
	}
	for _, m := range f.dictionaries[id][d.last:last] {
		part, err := f.dictionaryPart(m, f.lookups[column])
		if err != nil {
			return nil, fmt.Errorf("dictionary at byte %d: %w", m.at, err)
		}
		parts = append(parts, part)
	}
	var err error
	switch len(parts) {
	case 0:
		d.values = batch.Empty(valuesSchema(batch.PlainType(f.lookups[column])))
	case 1:
		d.values = parts[0]
	default:
		d.values, err = batch.Concat(memory.NewGoAllocator(), parts)
	}
	d.last = last
	return d.values, err
}

func valuesSchema(t arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "values", Type: t, Nullable: true}}, nil)
}

// dictionaryPart reads the values of one message. It passes the message to Arrow's reader as a
// stream of one batch.
func (f *arrowFile) dictionaryPart(d arrowDictionary, t arrow.DataType) (arrow.Record, error) {
	m, head, err := readMessage(f.r, d.at, d.end, nil)
	if err != nil {
		return nil, err
	}
	if err := valuesMessage(head); err != nil {
		return nil, err
	}
	schema, err := batch.SchemaMessage(valuesSchema(t))
	if err != nil {
		return nil, err
	}
	length := m.body - int64(len(head)) - d.at // number of bytes of the prefix that precedes the header and encodes its length
	prefix := make([]byte, length)
	if _, err := f.r.ReadAt(prefix, d.at); err != nil {
		return nil, batch.Unexpected(err)
	}
	body := &wholeReader{io.NewSectionReader(f.r, m.body, m.end-m.body), m.end - m.body}
	whole := io.MultiReader(bytes.NewReader(schema), bytes.NewReader(prefix), bytes.NewReader(head), body, bytes.NewReader(endMark))
	stream, err := batch.NewStreamReader(whole, memory.NewGoAllocator())
	if err != nil {
		return nil, err
	}
	defer stream.Release()
	return stream.Read()
}
