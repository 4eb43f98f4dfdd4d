package operators

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// MapWith is MapErr with a broadcast variable: f gets all rows of side, in the order of their
// shards, along with each row of d. f is first called when side is complete. MapWith is for a
// small side, such as a model or a lookup table.
//
// All calls in a process share one copy of the rows of side and of the slice that holds them,
// so f must not modify, sort or replace them. To change them, copy the slice first
// (slices.Clone), and also the slices within rows; or prepare side by another operator. f does
// not get a separate copy for each call, as copying would take more time than most functions.
// It does not get a separate copy for each subtask either, as the effects of changes by f would
// then depend on parallelism. engine.Check finds functions that change the rows.
func MapWith[In, Side, Out any](d, side *engine.Dataset, f func(row In, side []Side) (Out, error)) *engine.Dataset {
	const op = "MapWith"
	b := builderOf(op, d, side)
	if d == nil || side == nil {
		b.Errorf("%s: %s is nil", op, whichNil(d))
		return b.Poisoned(op)
	}
	in, okIn := inputRows[In](op, d)
	lent, okSide := inputRows[Side](op, side)
	out, okOut := outputRows[Out](op, b)
	if !okIn || !okSide || !okOut || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	rows := &sideRows[Side]{codec: lent}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: arrowrows.Schema(out.Schema()),
		Inputs: []engine.Port{{From: d, Use: reads(in.Schema())}, {From: side, Side: true, Use: reads(lent.Schema())}},
		Func:   f,
		Operator: func() engine.Operator {
			o := &withSide[In, Side, Out]{shared: rows}
			o.in.codec, o.out.codec = in, out
			o.call = func(m *mapper[In, Out], in *In) (err error) {
				m.out.row, err = f(*in, o.side)
				return err
			}
			return o
		},
	})
}

// whichNil returns the name, for messages, of the input that is nil: d, or else the dataset to
// broadcast.
func whichNil(d *engine.Dataset) string {
	if d == nil {
		return "the dataset"
	}
	return "the dataset to broadcast"
}

// withSide is the operator behind MapWith: a mapper that holds the side rows while it is open.
type withSide[In, Side, Out any] struct {
	mapper[In, Out]
	shared *sideRows[Side]
	side   []Side
	held   bool
}

func (o *withSide[In, Side, Out]) Open(c *engine.Context) error {
	var err error
	if o.side, err = o.shared.acquire(c, 1); err != nil {
		return fmt.Errorf("the rows to broadcast: %w", err)
	}
	o.held = true
	return o.mapper.Open(c)
}

// In runs that check rows, EndShard also returns an error if the side rows have changed. No
// other operator has this copy of the rows, so the function must have changed them.
func (o *withSide[In, Side, Out]) EndShard(c *engine.Context, shard int, out engine.Output) error {
	if c.ChecksRows() {
		if err := o.shared.unchanged(); err != nil {
			return err
		}
	}
	return o.mapper.EndShard(c, shard, out)
}

func (o *withSide[In, Side, Out]) Close() error {
	if o.held {
		o.side, o.held = nil, false
		o.shared.release()
	}
	return o.mapper.Close()
}

// sideRows holds the rows of a side input as values of T, for all subtasks of a process. The
// first subtask that opens reads the rows, and the last subtask that closes releases them. A
// subtask that opens after that reads them again.
type sideRows[T any] struct {
	codec *batch.Codec[T]

	mu     sync.Mutex
	users  int
	rows   []T
	bytes  int64                         // number of bytes that are reserved
	budget interface{ Release(n int64) } // the memory in which bytes are reserved
	print  uint64                        // fingerprint of the rows when they were read, if the run checks whether they change
}

// errSideChanged says that a function has changed the rows of its side input.
var errSideChanged = errors.New("the function changed the rows it was given as a side input, which are one slice for all calls: make a copy before you sort or change it (slices.Clone), and of the slices in its rows")

// acquire returns the rows, which must not be modified. The caller must call release when it no
// longer uses them.
func (s *sideRows[T]) acquire(c *engine.Context, port int) ([]T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		if err := s.read(c, arrowrows.Records(c.Side(port))); err != nil {
			return nil, err
		}
	}
	s.users++
	return s.rows, nil
}

// read reads the rows. The rows refer to the memory of the batches recs, which are valid while
// any subtask with this input is open.
func (s *sideRows[T]) read(c *engine.Context, recs []arrow.Record) error {
	var count int64
	for _, rec := range recs {
		count += rec.NumRows()
	}
	bytes := count * int64(unsafe.Sizeof(*new(T)))
	if err := c.Memory.Reserve(bytes); err != nil {
		return err
	}
	rows := make([]T, 0, count)
	in := rowReader[T]{codec: s.codec, whole: true}
	for _, rec := range recs {
		err := in.reset(rec)
		for i := 0; err == nil && i < in.len(); i++ {
			var row *T
			if row, err = in.read(i); err == nil {
				rows = append(rows, *row)
			}
		}
		if err != nil {
			c.Memory.Release(bytes)
			return err
		}
	}
	s.rows, s.bytes, s.budget = rows, bytes, c.Memory
	if c.ChecksRows() {
		s.print = s.fingerprint()
	}
	return nil
}

// unchanged returns an error if the rows have changed since they were read.
func (s *sideRows[T]) unchanged() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fingerprint() != s.print {
		return errSideChanged
	}
	return nil
}

// fingerprint returns a hash of all memory that calls share. It covers the elements of the
// slice, whose fields may include some that are not columns, and the values of columns, which
// may be outside of the slice.
func (s *sideRows[T]) fingerprint() uint64 {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s.rows))), len(s.rows)*int(unsafe.Sizeof(*new(T))))
	print := xxh3.Hash(bytes)
	content, err := hashSlice(s.codec, s.rows)
	if err != nil { // a changed value, such as a time, does not fit its column any more; the error names the value
		content = err.Error()
	}
	return xxh3.HashStringSeed(content, print)
}

// release ends one use of the rows.
func (s *sideRows[T]) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.budget.Release(s.bytes)
		s.rows, s.bytes, s.budget = nil, 0, nil
	}
}

// MapBatchWith is MapBatch with a broadcast variable: f gets all batches of side, in the order
// of their shards, along with each batch of d. f is first called when side is complete. All
// calls share the batches of side: f must not modify them. f borrows rows and the batches of
// side for the call; to return one of these batches, f must retain it first. f may change the
// elements of the slice side, but not the batches.
func MapBatchWith(d, side *engine.Dataset, schema engine.Schema, f func(c *engine.Context, rows engine.Batch, side []engine.Batch) (engine.Batch, error)) *engine.Dataset {
	const op = "MapBatchWith"
	b := builderOf(op, d, side)
	if d == nil || side == nil {
		b.Errorf("%s: %s is nil", op, whichNil(d))
		return b.Poisoned(op)
	}
	made, ok := batchSchema(op, d, schema)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: arrowrows.Schema(made),
		Inputs: []engine.Port{{From: d}, {From: side, Side: true}},
		Func:   f,
		Operator: func() engine.Operator {
			return &batchMapper{schema: made, f: f, with: true}
		},
	})
}
