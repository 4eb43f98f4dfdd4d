package parquet

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"

	"github.com/superstep-ml/superstep/internal/batch"
)

// The code in this file assembles lists from the levels of their leaves (Melnik et al.,
// "Dremel", VLDB 2010, §4).

// element lists the types of the elements of lists.
type element interface{ int32 | float32 | float64 }

// lists reads the lists of one leaf, row by row.
type lists[T element] struct {
	leaf
	numbers numbers[T]
	some    int32 // smallest definition level of an element, which is null if its level is below full
	full    int32 // definition level of an element that is not null

	defs   []int32
	reps   []int32
	items  []T
	levels int // number of levels in defs and reps; the first at of them have been used
	at     int
	item   int // number of elements of items that have been used
	room   int // number of elements that the previous call of read returned
	most   int // largest number of elements that one call of read may return
}

// newLists returns a reader of the lists of a leaf.
func newLists[T element](from leaf) (*lists[T], error) {
	l := &lists[T]{leaf: from, most: math.MaxInt32, full: int32(from.column.MaxDefinitionLevel())}
	l.values = &l.numbers
	if n := from.column.MaxRepetitionLevel(); n != 1 {
		return nil, fmt.Errorf("lists are nested %d deep, where 1 is supported", n)
	}
	// Each optional node from the leaf up to the list's repeated node adds a level between some
	// and full.
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

// peek returns the definition and repetition level of the next element, empty list or null
// list. ok is false at the end of the file.
func (l *lists[T]) peek() (def, rep int32, ok bool, err error) {
	for l.at == l.levels {
		if ok, err = l.fill(); !ok {
			return 0, 0, false, err
		}
	}
	return l.defs[l.at], l.reps[l.at], true, nil
}

// fill reads the next levels and values. ok is false at the end of the file.
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

// list appends the elements of the next row's list to dst. null reports whether the list is
// null.
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
				return dst, false, l.inPage(errors.New("a component is null; fill it in first"))
			}
			dst = append(dst, l.items[l.item])
			l.item++
			first = false
		}
		if l.ended() { // the last row of a row group ends with the row group
			return dst, false, nil
		}
		if len(dst) > l.most {
			return dst, false, l.tooMany(len(dst))
		}
		if ok, err = l.fill(); !ok {
			return dst, false, err
		}
	}
}

// rows has lists in Arrow's layout: the elements of all lists, and the offsets at which the
// lists end.
type rows[T element] struct {
	values []T
	ends   []int32
	valid  []byte // validity bits of the lists
	nulls  int
}

// read reads the next n lists. For a null list it adds ofNull zero elements. It allocates
// memory for about as many elements as the previous call has read.
func (l *lists[T]) read(n, ofNull int) (r rows[T], err error) {
	r = rows[T]{values: make([]T, 0, l.room+l.room/8), ends: make([]int32, 1, n+1), valid: make([]byte, bitutil.BytesForBits(int64(n)))}
	for i := range n {
		var null bool
		if r.values, null, err = l.list(r.values); err != nil {
			return r, err
		}
		all := len(r.values)
		if null {
			all += ofNull
		}
		if all > l.most {
			return r, l.tooMany(all)
		}
		if null {
			r.nulls++
			r.values = append(r.values, make([]T, ofNull)...)
		} else {
			bitutil.SetBit(r.valid, i)
		}
		r.ends = append(r.ends, int32(len(r.values)))
	}
	l.room = len(r.values)
	return r, nil
}

// tooMany returns the error for rows that are read together and have n elements or more.
func (l *lists[T]) tooMany(n int) error {
	return fmt.Errorf("%d components or more are in rows that are read together, which can have %d; read fewer rows at a time, or leave the column out", n, l.most)
}

// array returns the lists as a column of type t, which is a list or a fixed-size list.
func (r rows[T]) array(t arrow.DataType) arrow.ArrayData {
	items := array.NewData(t.(arrow.ListLikeType).Elem(), len(r.values), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(r.values))}, nil, 0, 0)
	defer items.Release()
	buffers := []*memory.Buffer{memory.NewBufferBytes(r.valid)}
	if batch.VectorDim(t) == 0 {
		buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(r.ends)))
	}
	return array.NewData(t, len(r.ends)-1, buffers, []arrow.ArrayData{items}, r.nulls, 0)
}

// listColumn reads a column of lists. read returns the next rows as an array of type t, which
// the caller owns.
type listColumn interface {
	read(t arrow.DataType, rows int) (arrow.Array, error)
}

// denseColumn reads vectors.
type denseColumn[T float32 | float64] struct{ lists *lists[T] }

func (c *denseColumn[T]) read(t arrow.DataType, rows int) (arrow.Array, error) {
	dim := batch.VectorDim(t) // 0 if vectors may have different sizes
	r, err := c.lists.read(rows, dim)
	if err != nil {
		return nil, err
	}
	for i, end := range r.ends[1:] {
		if n := int(end - r.ends[i]); dim > 0 && n != dim {
			return nil, fmt.Errorf("a vector has %d components where the column has %d", n, dim)
		}
	}
	data := r.array(t)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// sparseColumn reads sparse vectors.
type sparseColumn struct {
	indices *lists[int32]
	values  *lists[float64]
}

func (c *sparseColumn) read(t arrow.DataType, rows int) (arrow.Array, error) {
	at, err := c.indices.read(rows, 0)
	if err != nil {
		return nil, err
	}
	values, err := c.values.read(rows, 0)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		none, nothing := !bitutil.BitIsSet(at.valid, i), !bitutil.BitIsSet(values.valid, i)
		switch n, m := at.ends[i+1]-at.ends[i], values.ends[i+1]-values.ends[i]; {
		case none && !nothing:
			return nil, errors.New("the indices of a sparse vector are null, and its values are not")
		case nothing && !none:
			return nil, errors.New("the values of a sparse vector are null, and its indices are not")
		case n != m:
			return nil, fmt.Errorf("a sparse vector has %d indices and %d values", n, m)
		}
	}
	fields := t.(*arrow.StructType).Fields()
	children := []arrow.ArrayData{at.array(fields[0].Type), values.array(fields[1].Type)}
	defer children[0].Release()
	defer children[1].Release()
	data := array.NewData(t, rows, []*memory.Buffer{memory.NewBufferBytes(at.valid)}, children, at.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}
