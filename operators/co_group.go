package operators

import (
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Group has those rows of one dataset that have the same key. CoGroup passes Groups to its
// function; a Group is valid only during the call.
type Group[T any] struct {
	rows    *rowSpool
	indices int // index of the column that has the rows' indices within their shard
	in      rowReader[T]
	port    int
	failed  error // error of reading the rows
}

// Len returns the number of rows.
func (g *Group[T]) Len() int64 { return g.rows.count }

// Rows yields the rows in order. It may be called several times. Slices and strings in a row
// must not be modified. If the group does not fit in memory, they are valid only until the next
// row; copy slices and strings that are needed later.
func (g *Group[T]) Rows() iter.Seq[T] {
	return func(yield func(T) bool) {
		if g.failed != nil {
			return
		}
		more := true
		err := eachRow(g.rows, g.indices, func(rows arrow.Record, i int, index int64) error {
			if err := readRow(&g.in, rows, i); err != nil {
				return sideRowError(g.port, index, err)
			}
			if more = yield(g.in.row); !more {
				return errStopped
			}
			return nil
		})
		if more {
			g.failed = err
		}
	}
}

// first returns the index of the first row within its shard. The group must have a row.
func (g *Group[T]) first() (index int64, err error) {
	err = eachRow(g.rows, g.indices, func(_ arrow.Record, _ int, at int64) error {
		index = at
		return errStopped
	})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return index, err
}

// CoGroup gathers the rows of two datasets by keys. f is called once for each key that occurs
// in either dataset, with the rows of both datasets that have this key; one of the two groups
// may be empty. f emits any number of rows. CoGroup is for computations that joins cannot
// express, such as a comparison of two histories of one customer.
//
// Keys are compared as in GroupBy. Unlike in Join, two nulls are equal, so rows with nulls in
// their keys form groups too.
//
// A hash of the keys chooses the shard of a group. Within a shard, groups with left rows come
// first, in the order of their first left rows. Groups with only right rows follow, in the
// order of their first right rows. Rows of a group come in the order of their source shards.
// None of this depends on parallelism, batch sizes or memory. The rows of a shard are sorted by
// key, in memory if they fit in the run's budget, and otherwise on disk. So a group may have
// any size; each call of Rows reads the group's rows again.
//
// emit copies its argument. An error of f fails the run. It is reported with the index of the
// group's first row within its shard.
func CoGroup[L, R, Out any](left, right *engine.Dataset, on JoinKeys, f func(left *Group[L], right *Group[R], emit func(Out)) error) *engine.Dataset {
	return addCoGroup("CoGroup", left, right, on, 0, f)
}

// addCoGroup adds a coGrouper. most has the meaning of joinSpec.most.
func addCoGroup[L, R, Out any](op string, left, right *engine.Dataset, on JoinKeys, most int, f func(left *Group[L], right *Group[R], emit func(Out)) error) *engine.Dataset {
	b, ok := joinBuilder(op, left, right)
	if !ok {
		return b.Poisoned(op)
	}
	l, okLeft := inputRows[L](op, left)
	r, okRight := inputRows[R](op, right)
	out, okOut := outputRows[Out](op, b)
	okKeys := on.check(op, left, right)
	if !needFunc(op, b, f == nil) || !okLeft || !okRight || !okOut || !okKeys {
		return b.Poisoned(op)
	}
	left, right, cols := on.sent(op, left, right, l.Schema(), r.Schema())
	spec := &joinSpec{most: most, columns: cols, left: arrowrows.Arrow(left.Schema()), right: arrowrows.Arrow(right.Schema())}
	return b.Add(engine.Spec{
		Op:     op,
		Attrs:  []engine.Attr{{Key: "on", Value: on.String()}},
		Schema: arrowrows.Schema(out.Schema()),
		Inputs: []engine.Port{hashPort(right, cols.right), hashPort(left, cols.left)},
		Func:   f,
		Operator: func() engine.Operator {
			o := &coGrouper[L, R, Out]{spec: spec, f: f}
			o.left = Group[L]{in: rowReader[L]{codec: l}, port: joinLeft}
			o.right = Group[R]{in: rowReader[R]{codec: r}, port: joinRight}
			o.out = rowWriter[Out]{codec: out}
			return o
		},
	})
}

// coGrouper is the operator behind CoGroup.
type coGrouper[L, R, Out any] struct {
	engine.BaseOperator
	spec  *joinSpec
	f     func(*Group[L], *Group[R], func(Out)) error
	left  Group[L]
	right Group[R]
	emitter[Out]

	keys    [2]joinKeyReader // indexed by port
	sorters [2]*keySorter    // indexed by port
	indices [2]rowIndex
	done    *placedRows
	place   int64     // the number by which the rows that the function emits are sorted
	put     func(Out) // the argument emit of the user's function
}

func (o *coGrouper[L, R, Out]) Open(c *engine.Context) error {
	o.emitter.open(c)
	o.sorters = [2]*keySorter{joinLeft: newKeySorter(c, o.spec.left), joinRight: newKeySorter(c, o.spec.right)}
	o.keys = [2]joinKeyReader{joinLeft: {columns: o.spec.columns.left, grouped: true}, joinRight: {columns: o.spec.columns.right, grouped: true}}
	o.left.indices, o.right.indices = o.sorters[joinLeft].columns+1, o.sorters[joinRight].columns+1
	o.done = newPlacedRows(c, o.out.codec.Schema())
	o.put = func(v Out) {
		if o.to != nil && o.err == nil {
			o.done.places = append(o.done.places, o.place)
		}
		o.emit(v)
	}
	return nil
}

func (o *coGrouper[L, R, Out]) Process(_ *engine.Context, port, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.indices[port].batch(rows.NumRows())
	keys := &o.keys[port]
	if err := keys.reset(rows); err != nil {
		return err
	}
	return o.sorters[port].add(keys, rows, keys.indices(true), first)
}

func (o *coGrouper[L, R, Out]) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	err := mergeKeys(o.sorters[joinLeft], o.sorters[joinRight], o.spec.most, func(_ []byte, left, right *rowSpool) error {
		return o.group(shard, left, right)
	})
	if err == nil {
		err = o.flush(shard, o.done)
	}
	if err == nil {
		err = o.done.emit(shard, out)
	}
	o.left.in.endShard()
	o.right.in.endShard()
	o.indices = [2]rowIndex{}
	return err
}

// group calls the user's function with the left and right rows of one key.
func (o *coGrouper[L, R, Out]) group(shard int, left, right *rowSpool) (err error) {
	o.left.rows, o.right.rows = left, right
	defer func() { o.left.rows, o.right.rows = &rowSpool{}, &rowSpool{} }() // in case the function keeps them
	port, first := joinLeft, int64(0)
	if left.count > 0 {
		first, err = o.left.first()
		o.place = first
	} else {
		port = joinRight
		first, err = o.right.first()
		o.place = afterLeft + first
	}
	if err != nil {
		return err
	}
	o.begin(shard, o.done)
	err = o.f(&o.left, &o.right, o.put)
	if unread := errors.Join(o.left.failed, o.right.failed); unread != nil {
		// The function got only a part of the rows, so the error of reading them takes
		// precedence over an error of the function.
		return inShard(shard, unread)
	}
	if err := o.end(err); err != nil {
		return inShard(shard, sideRowError(port, first, fmt.Errorf("the first of its group: %w", err)))
	}
	for _, s := range []*rowSpool{left, right} {
		if same, err := s.unchanged(); err != nil {
			return err
		} else if !same {
			return errLentChanged
		}
	}
	return nil
}

func (o *coGrouper[L, R, Out]) Close() error {
	o.out.close()
	if o.done == nil {
		return nil
	}
	return errors.Join(o.sorters[joinLeft].close(), o.sorters[joinRight].close(), o.done.close())
}
