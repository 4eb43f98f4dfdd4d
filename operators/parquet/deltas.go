package parquet

import (
	"errors"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// flat reads a column that has no lists.
type flat interface {
	// NextBatch returns the next rows, or fewer at the end of the file. The caller releases
	// them.
	NextBatch(rows int64) (*arrow.Chunked, error)
	// Release gives up what the reader holds.
	Release()
}

// deltas reads a column of integers of 64 bits that may be null, of any encoding, through all
// row groups from one on. It is there for DELTA_BINARY_PACKED: the decoder of Arrow that puts
// such values and nulls together forgets what it has unpacked when a page is read in several
// parts, while the one that reads values alone does not. So values are read alone here, and
// the nulls put between them.
type deltas struct {
	file  *file.Reader
	leaf  int
	group int            // the row group to open next
	full  int16          // definition level of a value that is not null
	stype arrow.DataType // of 64 bits
	chunk *file.Int64ColumnChunkReader
	defs  []int16
}

// needsDeltas reports whether a leaf has, from a row group on, what deltas is there for.
func needsDeltas(r *file.Reader, leaf, group int) (bool, error) {
	c := r.MetaData().Schema.Column(leaf)
	if c.PhysicalType() != pq.Types.Int64 || c.MaxDefinitionLevel() == 0 || c.MaxRepetitionLevel() > 0 {
		return false, nil
	}
	for g := group; g < r.NumRowGroups(); g++ {
		chunk, err := r.MetaData().RowGroup(g).ColumnChunk(leaf)
		if err != nil {
			return false, err
		}
		if slices.Contains(chunk.Encodings(), pq.Encodings.DeltaBinaryPacked) {
			return true, nil
		}
	}
	return false, nil
}

func newDeltas(r *file.Reader, node pqarrow.SchemaField, group int) *deltas {
	return &deltas{
		file: r, leaf: node.ColIndex, group: group, stype: node.Field.Type,
		full: r.MetaData().Schema.Column(node.ColIndex).MaxDefinitionLevel(),
	}
}

// NextBatch implements flat. Under nulls there are zeros.
func (d *deltas) NextBatch(rows int64) (*arrow.Chunked, error) {
	values := memory.NewResizableBuffer(memory.NewGoAllocator())
	defer values.Release()
	values.Resize(arrow.Int64Traits.BytesRequired(int(rows)))
	out := arrow.Int64Traits.CastFromBytes(values.Bytes())
	if int64(len(d.defs)) < rows {
		d.defs = make([]int16, rows)
	}
	levels, held := 0, 0
	for levels < int(rows) {
		more, err := d.open()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		total, read, err := d.chunk.ReadBatch(rows-int64(levels), out[held:], d.defs[levels:rows], nil)
		if err != nil {
			return nil, err
		}
		if total == 0 {
			return nil, errors.New("a page gives no values")
		}
		levels, held = levels+int(total), held+read
	}
	return d.spread(values, levels, held)
}

// open has a chunk at hand that has rows; more is false at the end of the file.
func (d *deltas) open() (more bool, err error) {
	for d.chunk == nil || !d.chunk.HasNext() {
		if d.chunk != nil && d.chunk.Err() != nil {
			return false, d.chunk.Err()
		}
		if d.group == d.file.NumRowGroups() {
			return false, nil
		}
		chunk, err := chunkOf(d.file, d.group, d.leaf)
		if err != nil {
			return false, err
		}
		d.chunk = chunk.(*file.Int64ColumnChunkReader)
		d.group++
	}
	return true, nil
}

// spread moves the values held, which stand at the beginning, to the rows that are not null,
// from the last on, so that none is overwritten before it has moved.
func (d *deltas) spread(values *memory.Buffer, rows, held int) (*arrow.Chunked, error) {
	if rows == 0 {
		return arrow.NewChunked(d.stype, nil), nil
	}
	valid := memory.NewResizableBuffer(memory.NewGoAllocator())
	defer valid.Release()
	valid.Resize((rows + 7) / 8)
	clear(valid.Bytes())
	out, nulls := arrow.Int64Traits.CastFromBytes(values.Bytes()), rows-held
	for i := rows - 1; i >= 0; i-- {
		if d.defs[i] != d.full {
			out[i] = 0
			continue
		}
		if held == 0 {
			return nil, errors.New("there are fewer values than levels")
		}
		held--
		out[i] = out[held]
		valid.Bytes()[i/8] |= 1 << (i % 8)
	}
	if held > 0 {
		return nil, errors.New("there are more values than levels")
	}
	data := array.NewData(d.stype, rows, []*memory.Buffer{valid, values}, nil, nulls, 0)
	defer data.Release()
	col := array.MakeFromData(data)
	defer col.Release()
	return arrow.NewChunked(d.stype, []arrow.Array{col}), nil
}

// Release implements flat: all there is lies on the Go heap.
func (d *deltas) Release() {}
