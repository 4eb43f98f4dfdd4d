package operators

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// chunker regroups rows into batches whose bounds and buffers depend on the rows alone, not on
// the batches in which the rows arrived. Columnar files are written from such batches, so that
// their bytes are the same at every parallelism and batch size.
type chunker struct {
	mem  memory.Allocator
	rows int   // number of rows at which a batch is complete
	size int64 // number of bytes of values at which a batch is complete even with fewer rows
	emit func(arrow.Record) error

	held     []arrow.Record // rows of the next batch; owned
	heldRows int
	heldSize int64
}

// push adds borrowed rows, and emits each batch that becomes complete.
func (k *chunker) push(rows arrow.Record) error {
	fixed, variable := rowSizes(rows)
	from, n := 0, int(rows.NumRows())
	for i := range n {
		k.heldSize += fixed
		for _, size := range variable {
			k.heldSize += size(i)
		}
		if k.heldRows++; k.heldRows < k.rows && k.heldSize < k.size {
			continue
		}
		if err := k.hold(rows, from, i+1); err != nil {
			return err
		}
		from = i + 1
		if err := k.flush(); err != nil {
			return err
		}
	}
	return k.hold(rows, from, n)
}

func (k *chunker) hold(rows arrow.Record, from, to int) error {
	if from == to {
		return nil
	}
	part, err := batch.Slice(rows, from, to)
	if err != nil {
		return err
	}
	k.held = append(k.held, part)
	return nil
}

// flush emits the held rows as a batch, if there are any.
func (k *chunker) flush() error {
	if len(k.held) == 0 {
		return nil
	}
	chunk, err := batch.Concat(k.mem, k.held)
	k.release()
	if err != nil {
		return err
	}
	if chunk, err = plainNulls(k.mem, chunk); err != nil {
		return err
	}
	defer chunk.Release()
	return k.emit(chunk)
}

// release drops the held rows.
func (k *chunker) release() {
	for i, rec := range k.held {
		rec.Release()
		k.held[i] = nil
	}
	k.held, k.heldRows, k.heldSize = k.held[:0], 0, 0
}

// rowSizes returns the number of bytes that the columns of fixed width take per row, and for
// each column of variable length a function that returns the bytes of a row. These functions
// return 0 for a null.
func rowSizes(rows arrow.Record) (fixed int64, variable []func(row int) int64) {
	for _, col := range rows.Columns() {
		length := lengthOf(col)
		switch {
		case length != nil:
			variable = append(variable, func(i int) int64 {
				if col.IsNull(i) {
					return 0
				}
				return int64(length(i))
			})
		case col.DataType().ID() == arrow.FIXED_SIZE_LIST:
			t := col.DataType().(*arrow.FixedSizeListType)
			fixed += int64(t.Len()) * int64(t.Elem().(arrow.FixedWidthDataType).Bytes())
		default:
			fixed += 8
		}
	}
	return fixed, variable
}

// lengthOf returns, for a column of variable length, a function that returns the bytes of a
// row, even if it is null. It returns nil for other columns.
func lengthOf(col arrow.Array) func(i int) int {
	switch c := col.(type) {
	case *array.String:
		return c.ValueLen
	case *array.Binary:
		return c.ValueLen
	case *array.List:
		width := c.DataType().(*arrow.ListType).Elem().(arrow.FixedWidthDataType).Bytes()
		return func(i int) int {
			from, to := c.ValueOffsets(i)
			return int(to-from) * width
		}
	case *array.Struct:
		indices, values := lengthOf(c.Field(0)), lengthOf(c.Field(1))
		return func(i int) int { return indices(i) + values(i) }
	}
	return nil
}

// plainNulls takes ownership of rec and returns it with the values of nulls cleared. Operators
// may leave arbitrary bytes in the values of nulls, and without plainNulls files would contain
// them. The buffers of rec must start at its first row and must not be shared, as with the
// result of batch.Concat.
func plainNulls(mem memory.Allocator, rec arrow.Record) (arrow.Record, error) {
	for i, col := range rec.Columns() {
		if col.NullN() == 0 {
			continue
		}
		switch c := col.(type) {
		case *array.FixedSizeList:
			zeroNulls(c, c.ListValues().Data(), int(c.DataType().(*arrow.FixedSizeListType).Len()))
		case *array.String, *array.Binary, *array.List, *array.Struct:
			plain, err := emptyNulls(mem, rec, i)
			rec.Release()
			if err != nil {
				return nil, err
			}
			rec = plain
		default:
			zeroNulls(c, c.Data(), 1)
		}
	}
	return rec, nil
}

// zeroNulls sets the values of each null of col to zero. values has the values of col's rows,
// and per is the number of values of each row.
func zeroNulls(col arrow.Array, values arrow.ArrayData, per int) {
	bytes := values.Buffers()[1].Bytes()
	bits := values.DataType().(arrow.FixedWidthDataType).BitWidth()
	for i := range col.Len() {
		switch {
		case col.IsValid(i):
		case bits == 1:
			bytes[i/8] &^= 1 << (i % 8)
		default:
			width := bits / 8 * per
			clear(bytes[i*width : (i+1)*width])
		}
	}
}

// emptyNulls returns rec with column col, which has variable length, replaced by an equal
// column whose nulls take no bytes. It concatenates the runs of values of the old column and
// runs of new nulls.
func emptyNulls(mem memory.Allocator, rec arrow.Record, col int) (arrow.Record, error) {
	c, n, hidden := rec.Column(col), rec.Column(col).Len(), false
	length := lengthOf(c)
	for i := range n {
		hidden = hidden || c.IsNull(i) && length(i) > 0
	}
	if !hidden {
		rec.Retain()
		return rec, nil
	}
	alone, err := batch.Select(rec, []int{col})
	if err != nil {
		return nil, err
	}
	defer alone.Release()
	var runs []arrow.Record
	defer func() {
		for _, r := range runs {
			r.Release()
		}
	}()
	for from := 0; from < n; {
		to := from + 1
		for to < n && c.IsNull(to) == c.IsNull(from) {
			to++
		}
		run, err := batch.Slice(alone, from, to)
		if c.IsNull(from) && err == nil {
			run.Release()
			run, err = nullRows(mem, alone.Schema(), to-from)
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
		from = to
	}
	plain, err := batch.Concat(mem, runs)
	if err != nil {
		return nil, err
	}
	defer plain.Release()
	return batch.WithColumn(rec, rec.Schema().Field(col), plain.Column(0))
}

// nullRows returns n rows of nulls.
func nullRows(mem memory.Allocator, schema *arrow.Schema, n int) (arrow.Record, error) {
	b, err := batch.NewRecordBuilder(mem, schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	for range n {
		batch.AppendNull(b.Field(0))
	}
	return b.NewRecord()
}
