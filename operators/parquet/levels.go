package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// chunkOf opens the values and levels of a leaf in a row group.
func chunkOf(f *file.Reader, group, leaf int) (file.ColumnChunkReader, error) {
	pages, err := f.RowGroup(group).GetColumnPageReader(leaf)
	if err != nil {
		return nil, err
	}
	column, mem := f.MetaData().Schema.Column(leaf), memory.NewGoAllocator()
	buffers := &sync.Pool{New: func() any { return memory.NewResizableBuffer(mem) }}
	return file.NewColumnReader(column, &wholePages{PageReader: pages, column: column}, mem, buffers), nil
}

// wholePages are the pages of a leaf. One that has fewer levels than it says it has values is
// an error: Arrow's reader of values and levels would look for the rest without end.
type wholePages struct {
	file.PageReader
	column *schema.Column
	err    error
}

// Next implements file.PageReader.
func (w *wholePages) Next() bool {
	if w.err != nil || !w.PageReader.Next() {
		return false
	}
	switch p := w.Page().(type) {
	case *file.DataPageV1:
		w.err = w.first(p)
	case *file.DataPageV2:
		w.err = w.second(p)
	}
	return w.err == nil
}

// Err implements file.PageReader.
func (w *wholePages) Err() error {
	if w.err != nil {
		return w.err
	}
	return w.PageReader.Err()
}

// first checks a page of version 1: its levels begin with their length where they are runs.
func (w *wholePages) first(p *file.DataPageV1) error {
	data, n := p.Data(), int64(p.NumValues())
	for _, level := range []struct {
		most     int16
		encoding pq.Encoding
	}{
		{w.column.MaxRepetitionLevel(), p.RepetitionLevelEncoding()},
		{w.column.MaxDefinitionLevel(), p.DefinitionLevelEncoding()},
	} {
		if level.most == 0 {
			continue
		}
		width := int64(bits.Len16(uint16(level.most)))
		if level.encoding == pq.Encodings.BitPacked {
			size := (n*width + 7) / 8
			if size < 0 || size > int64(len(data)) {
				return fewLevels(n)
			}
			data = data[size:]
			continue
		}
		if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
			return fewLevels(n)
		}
		end := 4 + int(binary.LittleEndian.Uint32(data))
		if !holds(data[4:end], width, n) {
			return fewLevels(n)
		}
		data = data[end:]
	}
	return nil
}

// second checks a page of version 2: its head has the lengths.
func (w *wholePages) second(p *file.DataPageV2) error {
	data, n := p.Data(), int64(p.NumValues())
	repeated, defined := int64(p.RepetitionLevelByteLen()), int64(p.DefinitionLevelByteLen())
	if repeated < 0 || defined < 0 || repeated+defined > int64(len(data)) {
		return fewLevels(n)
	}
	if most := w.column.MaxRepetitionLevel(); most > 0 && !holds(data[:repeated], int64(bits.Len16(uint16(most))), n) {
		return fewLevels(n)
	}
	if most := w.column.MaxDefinitionLevel(); most > 0 && !holds(data[repeated:repeated+defined], int64(bits.Len16(uint16(most))), n) {
		return fewLevels(n)
	}
	return nil
}

func fewLevels(n int64) error {
	return fmt.Errorf("a page that says it has %d values has fewer levels", n)
}

// holds reports whether runs of levels, of so many bits each, are those of n values or more.
// A run is a count and a level, or a number of groups of eight levels and these, as the first
// bit of its head tells (the hybrid of run lengths and bit packing of the Parquet format).
func holds(runs []byte, width, n int64) bool {
	for n > 0 {
		head, size := binary.Uvarint(runs)
		if size <= 0 || head>>1 == 0 || head > math.MaxInt32 {
			return false
		}
		runs = runs[size:]
		count, bytes := int64(head>>1), (width+7)/8
		if head&1 == 1 {
			// Of the last group, which may be cut off, there are as many as there are bytes for.
			bytes = min(count*width, int64(len(runs)))
			count = bytes * 8 / width
		}
		if bytes > int64(len(runs)) {
			return false
		}
		n, runs = n-count, runs[bytes:]
	}
	return true
}
