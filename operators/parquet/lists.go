package parquet

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/array"
	pq "github.com/apache/arrow/go/v15/parquet"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Lists are assembled here from the levels of their leaves (Melnik et al., "Dremel", VLDB 2010,
// §4).

// element is a type of leaves.
type element interface{ int32 | float32 | float64 }

// lists reads the lists of one leaf, row by row.
type lists[T element] struct {
	leaf
	numbers numbers[T]
	some    int32 // definition level from which on there is an element
	full    int32 // definition level of an element that is not null

	defs   []int32
	reps   []int32
	items  []T
	levels int // number of levels in defs and reps; at of them are used
	at     int
	item   int // number of items used
}

// newLists returns a reader of the lists of a leaf.
func newLists[T element](from leaf) (*lists[T], error) {
	l := &lists[T]{leaf: from, full: int32(from.column.MaxDefinitionLevel())}
	l.values = &l.numbers
	if n := from.column.MaxRepetitionLevel(); n != 1 {
		return nil, fmt.Errorf("lists are nested %d deep, where 1 is supported", n)
	}
	// Every optional or repeated node from the leaf up to the list's own repeated node adds a
	// level.
	l.some = l.full
	for n := from.column.SchemaNode(); n.RepetitionType() != pq.Repetitions.Repeated; n = n.Parent() {
		if n.RepetitionType() == pq.Repetitions.Optional {
			l.some--
		}
	}
	const levels = 4096
	l.defs, l.reps, l.items = make([]int32, levels), make([]int32, levels), make([]T, levels)
	return l, nil
}

// peek returns the levels of the next element or empty list; ok is false at the
// end of the file.
func (l *lists[T]) peek() (def, rep int32, ok bool, err error) {
	for l.at == l.levels {
		if ok, err = l.fill(); !ok {
			return 0, 0, false, err
		}
	}
	return l.defs[l.at], l.reps[l.at], true, nil
}

// fill reads further levels and values.
func (l *lists[T]) fill() (ok bool, err error) {
	if ok, err = l.next(); !ok {
		return false, err
	}
	n := min(len(l.defs), l.here)
	if err = l.repeated.read(l.reps[:n]); err == nil {
		err = l.defined.read(l.defs[:n])
	}
	held := 0
	for _, def := range l.defs[:n] {
		if def == l.full {
			held++
		}
	}
	if err == nil && held > 0 {
		err = l.numbers.next(l.items[:held])
	}
	if err != nil {
		return false, l.inPage(err)
	}
	l.here, l.levels, l.at, l.item = l.here-n, n, 0, 0
	return true, nil
}

// list appends the elements of the next row's list to dst. null says that the list is null.
func (l *lists[T]) list(dst []T) (_ []T, null bool, err error) {
	def, rep, ok, err := l.peek()
	switch {
	case err != nil:
		return dst, false, err
	case !ok:
		return dst, false, errors.New("it ends before its last row")
	case rep != 0:
		return dst, false, l.inPage(errors.New("a row begins within a list"))
	}
	if def < l.some {
		l.at++
		return dst, def < l.some-1, nil
	}
	for first := true; ; {
		for ; l.at < l.levels; l.at++ {
			if l.reps[l.at] == 0 && !first {
				return dst, false, nil
			}
			if l.defs[l.at] != l.full {
				return dst, false, errors.New("a component is null; fill it in first")
			}
			dst = append(dst, l.items[l.item])
			l.item++
			first = false
		}
		if l.ended() { // and its last row with it
			return dst, false, nil
		}
		if ok, err = l.fill(); !ok {
			return dst, false, err
		}
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
	dim := batch.VectorDim(b.Type()) // 0 if rows may differ
	for range rows {
		var null bool
		if c.row, null, err = c.lists.list(c.row[:0]); err != nil {
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
		if c.at, none, err = c.indices.list(c.at[:0]); err != nil {
			return err
		}
		if c.row, nothing, err = c.values.list(c.row[:0]); err != nil {
			return err
		}
		if none && !nothing {
			return errors.New("the indices of a sparse vector are null, and its values are not")
		}
		if nothing && !none {
			return errors.New("the values of a sparse vector are null, and its indices are not")
		}
		if len(c.at) != len(c.row) {
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
