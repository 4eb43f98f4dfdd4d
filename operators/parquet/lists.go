package parquet

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/array"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Lists are put together here from the levels of their leaves (Melnik et al.,
// "Dremel", VLDB 2010, §4), because Arrow's own readers of nested columns start
// goroutines, in which a panic over a damaged file would end the process.

// element is a type of leaves.
type element interface{ int32 | float32 | float64 }

// lists reads the lists of one leaf, row by row, through all row groups from one
// on.
type lists[T element] struct {
	file  *file.Reader
	leaf  int
	group int   // the row group to open next
	some  int16 // definition level from which on there is an element
	full  int16 // definition level of an element that is not null

	chunk  file.ColumnChunkReader
	defs   []int16
	reps   []int16
	values []T
	levels int // read into defs and reps, of which at have been used
	at     int
	value  int // used of values
	held   int // of values read
}

// newLists returns a reader of the lists of a leaf.
func newLists[T element](f *file.Reader, leaf, group int) (*lists[T], error) {
	c := f.MetaData().Schema.Column(leaf)
	l := &lists[T]{file: f, leaf: leaf, group: group, full: c.MaxDefinitionLevel()}
	if c.MaxRepetitionLevel() != 1 {
		return nil, fmt.Errorf("lists are nested %d deep, where 1 is supported", c.MaxRepetitionLevel())
	}
	// Every optional or repeated node up from the leaf to the list's own repeated
	// one adds a level.
	l.some = l.full
	for n := c.SchemaNode(); n.RepetitionType() != pq.Repetitions.Repeated; n = n.Parent() {
		if n.RepetitionType() == pq.Repetitions.Optional {
			l.some--
		}
	}
	const levels = 4096
	l.defs, l.reps, l.values = make([]int16, levels), make([]int16, levels), make([]T, levels)
	return l, nil
}

// peek returns the levels of the next element or empty list; ok is false at the
// end of the file.
func (l *lists[T]) peek() (def, rep int16, ok bool, err error) {
	for l.at == l.levels {
		if ok, err = l.fill(); !ok {
			return 0, 0, false, err
		}
	}
	return l.defs[l.at], l.reps[l.at], true, nil
}

// fill reads further levels and values.
func (l *lists[T]) fill() (ok bool, err error) {
	for l.chunk == nil || !l.chunk.HasNext() {
		if l.chunk != nil && l.chunk.Err() != nil {
			return false, l.chunk.Err()
		}
		if l.group == l.file.NumRowGroups() {
			return false, nil
		}
		if l.chunk, err = chunkOf(l.file, l.group, l.leaf); err != nil {
			return false, err
		}
		l.group++
	}
	var total int64
	n := int64(len(l.defs))
	switch c := l.chunk.(type) {
	case *file.Int32ColumnChunkReader:
		total, l.held, err = c.ReadBatch(n, any(l.values).([]int32), l.defs, l.reps)
	case *file.Float32ColumnChunkReader:
		total, l.held, err = c.ReadBatch(n, any(l.values).([]float32), l.defs, l.reps)
	case *file.Float64ColumnChunkReader:
		total, l.held, err = c.ReadBatch(n, any(l.values).([]float64), l.defs, l.reps)
	}
	if err == nil && total == 0 {
		err = errors.New("a page gives no values")
	}
	l.levels, l.at, l.value = int(total), 0, 0
	return err == nil, err
}

// next appends the elements of the next row's list to dst; null says that there
// is no list.
func (l *lists[T]) next(dst []T) (_ []T, null bool, err error) {
	def, rep, ok, err := l.peek()
	switch {
	case err != nil:
		return dst, false, err
	case !ok:
		return dst, false, errors.New("it ends before its last row")
	case rep != 0:
		return dst, false, errors.New("a row begins within a list")
	}
	if def < l.some {
		l.at++
		return dst, def < l.some-1, nil
	}
	for first := true; ; first = false {
		if def, rep, ok, err = l.peek(); err != nil {
			return dst, false, err
		}
		if !ok || rep == 0 && !first {
			return dst, false, nil
		}
		if def != l.full {
			return dst, false, errors.New("a component is null; fill it in first")
		}
		if l.value >= l.held {
			return dst, false, errors.New("there are fewer values than levels")
		}
		dst = append(dst, l.values[l.value])
		l.value++
		l.at++
	}
}

// listColumn appends rows of a column of lists to a builder.
type listColumn interface {
	appendTo(b array.Builder, rows int) error
}

// denseColumn reads vectors.
type denseColumn[T float32 | float64] struct {
	lists *lists[T]
	row   []T
}

func (c *denseColumn[T]) appendTo(b array.Builder, rows int) (err error) {
	list := b.(array.ListLikeBuilder)
	dim := batch.VectorDim(b.Type()) // 0 where rows may differ
	for range rows {
		var null bool
		if c.row, null, err = c.lists.next(c.row[:0]); err != nil {
			return err
		}
		if null {
			batch.AppendNull(b)
			continue
		}
		if dim > 0 && len(c.row) != dim {
			return fmt.Errorf("a vector has %d components where the column has %d", len(c.row), dim)
		}
		list.Append(true)
		switch v := list.ValueBuilder().(type) {
		case *array.Float64Builder:
			v.AppendValues(any(c.row).([]float64), nil)
		case *array.Float32Builder:
			v.AppendValues(any(c.row).([]float32), nil)
		}
	}
	return nil
}

// sparseColumn reads sparse vectors.
type sparseColumn struct {
	indices *lists[int32]
	values  *lists[float64]
	at      []int32
	row     []float64
}

func (c *sparseColumn) appendTo(b array.Builder, rows int) error {
	s := b.(*array.StructBuilder)
	indices, values := s.FieldBuilder(0).(*array.ListBuilder), s.FieldBuilder(1).(*array.ListBuilder)
	for range rows {
		var none, nothing bool
		var err error
		if c.at, none, err = c.indices.next(c.at[:0]); err != nil {
			return err
		}
		if c.row, nothing, err = c.values.next(c.row[:0]); err != nil {
			return err
		}
		if none != nothing || len(c.at) != len(c.row) {
			return fmt.Errorf("a sparse vector has %d indices and %d values", len(c.at), len(c.row))
		}
		if none {
			batch.AppendNull(b)
			continue
		}
		s.Append(true)
		indices.Append(true)
		indices.ValueBuilder().(*array.Int32Builder).AppendValues(c.at, nil)
		values.Append(true)
		values.ValueBuilder().(*array.Float64Builder).AppendValues(c.row, nil)
	}
	return nil
}
