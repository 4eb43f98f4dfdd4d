package operators

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"sync"
	"unsafe"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Lookup finds the rows of a dataset by key. All subtasks of a process share one Lookup; see
// MapLookup.
type Lookup[K comparable, V any] struct {
	rows  []V
	first map[K]int32
	next  []int32 // row -> the next row with the same key; -1 for the last row
}

// Len returns the number of rows.
func (t *Lookup[K, V]) Len() int { return len(t.rows) }

// Get returns the first row with the given key, or false if there is none.
func (t *Lookup[K, V]) Get(key K) (row V, ok bool) {
	at, ok := t.first[key]
	if ok {
		row = t.rows[at]
	}
	return row, ok
}

// All yields the rows with the given key in the order of their dataset.
func (t *Lookup[K, V]) All(key K) iter.Seq[V] {
	return func(yield func(V) bool) {
		at, ok := t.first[key]
		for ok && at >= 0 && yield(t.rows[at]) {
			at = t.next[at]
		}
	}
}

// newLookup returns an index of rows, which refers to the slice rows.
func newLookup[K comparable, V any](rows []V, key func(V) K) *Lookup[K, V] {
	t := &Lookup[K, V]{rows: rows, first: make(map[K]int32, len(rows)), next: make([]int32, len(rows))}
	for i := len(rows) - 1; i >= 0; i-- { // backwards, so that each list begins with the first row of its key
		k := key(rows[i])
		t.next[i] = -1
		if after, ok := t.first[k]; ok {
			t.next[i] = after
		}
		t.first[k] = int32(i)
	}
	return t
}

// MapLookup is MapErr with a lookup table: f gets each row of d together with an index of the
// rows of side. key returns the key of a row of side. MapLookup is a join that sends all rows
// of side to every process, so that the rows of d stay in their shards. It is for small tables,
// such as the names of country codes, or tax rates:
//
//	operators.MapLookup(orders, countries, func(c Country) string { return c.Code },
//		func(o Order, countries *operators.Lookup[string, Country]) (Priced, error) {
//			c, ok := countries.Get(o.Country)
//			if !ok {
//				return Priced{}, fmt.Errorf("no country %q", o.Country)
//			}
//			return Priced{ID: o.ID, Total: o.Net * (1 + c.Tax)}, nil
//		})
//
// When side is complete, each process makes one index, which the process's subtasks share. The
// index and the rows must fit in memory, within the run's budget. f must not modify the rows or
// the slices in them. Keys are compared by Go's ==, so NaN is never found. Key types that
// contain pointers or interfaces are refused, as == does not compare them by value. As each
// process calls key, the result of key must depend only on its argument.
func MapLookup[In any, K comparable, V, Out any](d, side *engine.Dataset, key func(V) K, f func(row In, table *Lookup[K, V]) (Out, error)) *engine.Dataset {
	return addLookup("MapLookup", d, side, key, f, f == nil, func(o *lookingUp[In, K, V, Out], row In) error {
		v, err := f(row, o.table)
		if err == nil {
			o.emit(v)
		}
		return err
	})
}

// FlatMapLookup is FlatMap with a lookup table as in MapLookup. It is for inner joins, which
// leave out rows without a partner, and for joins in which a row may have several partners.
func FlatMapLookup[In any, K comparable, V, Out any](d, side *engine.Dataset, key func(V) K, f func(row In, table *Lookup[K, V], emit func(Out)) error) *engine.Dataset {
	return addLookup("FlatMapLookup", d, side, key, f, f == nil, func(o *lookingUp[In, K, V, Out], row In) error {
		return f(row, o.table, o.emit)
	})
}

// addLookup adds the operator behind MapLookup and FlatMapLookup. fn is the user's function,
// and call calls it.
func addLookup[In any, K comparable, V, Out any](op string, d, side *engine.Dataset, key func(V) K, fn any, isNil bool, call func(o *lookingUp[In, K, V, Out], row In) error) *engine.Dataset {
	b := builderOf(op, d, side)
	if d == nil || side == nil {
		b.Errorf("%s: %s is nil", op, whichNil(d))
		return b.Poisoned(op)
	}
	if d.Poisoned() || side.Poisoned() {
		return b.Poisoned(op)
	}
	in, okIn := inputRows[In](op, d)
	lent, okSide := inputRows[V](op, side)
	out, okOut := outputRows[Out](op, b)
	ok := okIn && okSide && okOut
	if key == nil {
		b.Errorf("%s: the function that computes keys is nil", op)
		ok = false
	}
	if why := noLookupKey(reflect.TypeFor[K]()); why != "" {
		b.Errorf("%s: keys of type %v cannot be looked up: %s is equal by other things than its value", op, reflect.TypeFor[K](), why)
		ok = false
	}
	if !needFunc(op, b, isNil) || !ok {
		return b.Poisoned(op)
	}
	shared := &lookupRows[K, V]{rows: sideRows[V]{codec: lent}, key: key}
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   arrowrows.Schema(out.Schema()),
		Inputs:   []engine.Port{{From: d, Use: reads(in.Schema())}, {From: side, Side: true, Use: reads(lent.Schema())}},
		RowByRow: op == "MapLookup",
		Func:     fn,
		Funcs:    []any{key},
		Operator: func() engine.Operator {
			o := &lookingUp[In, K, V, Out]{shared: shared}
			o.f = func(row In, _ func(Out)) error { return call(o, row) }
			o.in.codec, o.out.codec = in, out
			return o
		},
	})
}

// noLookupKey returns the name of the part of type t because of which t cannot be the type of a
// key, or "" if t can be one.
func noLookupKey(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Interface, reflect.Chan:
		return t.String()
	case reflect.Array:
		return noLookupKey(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if why := noLookupKey(t.Field(i).Type); why != "" {
				return why
			}
		}
	}
	return ""
}

// lookingUp is the operator behind MapLookup and FlatMapLookup.
type lookingUp[In any, K comparable, V, Out any] struct {
	flatMapper[In, Out]
	shared *lookupRows[K, V]
	table  *Lookup[K, V] // set while the operator is open
}

func (o *lookingUp[In, K, V, Out]) Open(c *engine.Context) (err error) {
	if o.table, err = o.shared.acquire(c, 1); err != nil {
		return fmt.Errorf("the rows to look up: %w", err)
	}
	return o.flatMapper.Open(c)
}

// In runs that check rows, EndShard also returns an error if the rows of the side input have
// changed.
func (o *lookingUp[In, K, V, Out]) EndShard(c *engine.Context, shard int, out engine.Output) error {
	if c.ChecksRows() {
		if err := o.shared.rows.unchanged(); err != nil {
			return err
		}
	}
	return o.flatMapper.EndShard(c, shard, out)
}

func (o *lookingUp[In, K, V, Out]) Close() error {
	if o.table != nil {
		o.table = nil
		o.shared.release()
	}
	return o.flatMapper.Close()
}

// lookupRows holds the index of a side input for all subtasks of a process. The first subtask
// that opens makes the index, and the last subtask that closes releases it. A subtask that
// opens after that makes it again.
type lookupRows[K comparable, V any] struct {
	rows sideRows[V]
	key  func(V) K

	mu     sync.Mutex
	users  int
	table  *Lookup[K, V]
	bytes  int64 // number of bytes that are reserved
	budget interface{ Release(n int64) }
}

// acquire returns the index. The caller must call release when it no longer uses it.
func (s *lookupRows[K, V]) acquire(c *engine.Context, port int) (_ *Lookup[K, V], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := s.rows.acquire(c, port)
	if err != nil {
		return nil, err
	}
	made := false
	defer func() { // the function key may panic
		if !made {
			s.rows.release()
		}
	}()
	if s.users == 0 {
		if len(rows) > math.MaxInt32 {
			return nil, fmt.Errorf("%d rows are more than the 2^31 that can be looked up in; use Join", len(rows))
		}
		// A map takes the size of its entries and one byte per entry, and up to twice as much
		// since it has free space for growth.
		bytes := int64(len(rows)) * (2*int64(unsafe.Sizeof(*new(K))+5) + 4)
		if err := c.Memory.Reserve(bytes); err != nil {
			return nil, err
		}
		defer func() {
			if !made {
				c.Memory.Release(bytes)
			}
		}()
		s.table = newLookup(rows, s.key)
		s.bytes, s.budget = bytes, c.Memory
	}
	made = true
	s.users++
	return s.table, nil
}

// release ends one use of the index.
func (s *lookupRows[K, V]) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.budget.Release(s.bytes)
		s.table, s.bytes, s.budget = nil, 0, nil
	}
	s.rows.release()
}
