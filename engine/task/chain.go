package task

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// link is one operator in the chain of a subtask, with the links and the edges to which its rows
// go. Rows are passed to the next link by a direct call. A link is the Output of its operator.
type link struct {
	task    *subtask
	node    *plan.Node
	context *Context
	port    int // input of the operator that the previous link feeds

	operator Operator // either operator or source is set; in queues neither is
	source   Source
	sides    []side
	closer   func() error // closes the Loop of a queue; set for the queue's first node
	shardOf  func() int   // returns the shard being worked on, on any goroutine; set for the nodes of queues

	next []*link // links chained behind this link
	outs []chainOutput

	borrowed borrowed // rows of the current shard, if rows are checked

	schema       *arrow.Schema // schema of the last rows; it equals the schema that the node declares
	nonNull      []int         // columns of schema that must not have nulls
	checkedBatch arrow.Record  // last batch that the operator got in this shard; its schema has been checked

	rowsIn, rowsOut int64

	ended bool // Finish was called, and returned no error
	last  bool // Finish has emitted rows
}

// side is a side input of an operator.
type side struct {
	port     int
	input    *sideInput
	borrowed borrowed // its rows, if rows are checked
}

// chainOutput is an output with the link to which failures to place rows are attributed.
type chainOutput struct {
	output
	receiver *link // represents the receiving node in this subtask
}

var _ Output = (*link)(nil)

// Emit passes rows to the operators chained behind l and to its outgoing edges.
func (l *link) Emit(shard int, emitted columnar.Batch) error {
	rows := arrowrows.Record(emitted)
	t := l.task
	switch {
	case t.err != nil:
		return t.err // the operator went on after a failed Emit
	case rows == nil:
		return t.failAt(l, fmt.Errorf("emit under shard %d: there is no batch", shard))
	case int32(shard) != t.shard.Load() || shard < 0:
		return t.failAt(l, t.shardError(shard))
	case batch.Released(rows):
		return t.failAt(l, errors.New("the batch emitted was released already: whoever keeps a batch calls Retain on it"))
	case rows == l.checkedBatch && rows.Schema() == l.schema:
	case rows.NumRows() > 0:
		if err := l.checkDeclared(rows); err != nil {
			return t.failAt(l, err)
		}
	}
	n := rows.NumRows()
	if n == 0 {
		return nil
	}
	if t.context.Err() != nil {
		return t.failAt(l, errStopped)
	}
	l.rowsOut += n
	if o := t.run.env.Observer; o != nil {
		o.Rows(l.node.ID, shard, emitted)
	}
	if l.source != nil {
		t.advance(n)
	}
	for _, next := range l.next {
		if err := next.process(next.port, shard, rows, n); err != nil {
			return err
		}
	}
	for i := range l.outs {
		if err := t.call(l.outs[i].receiver, func() error { return t.send(&l.outs[i], shard, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// checkDeclared returns an error if the columns of rows differ from those that the operator's
// node declares, or if there are nulls in a column that is declared without nulls.
func (l *link) checkDeclared(rows arrow.Record) error {
	if schema := rows.Schema(); schema != l.schema && (l.schema == nil || !schema.Equal(l.schema)) {
		has, wants := batch.Columns(schema), l.node.Schema
		for i := range min(len(has), len(wants)) {
			if h, w := has[i], batch.Column(wants[i]); h != w {
				return fmt.Errorf("the batch emitted has other columns than declared: column %d is %q instead of %q", i+1, h, w)
			}
		}
		if len(has) != len(wants) {
			return fmt.Errorf("the batch emitted has other columns than declared: there are %d columns instead of %d", len(has), len(wants))
		}
		l.schema, l.nonNull = schema, l.nonNull[:0]
		for i := range has {
			if !has[i].Nullable {
				l.nonNull = append(l.nonNull, i)
			}
		}
	}
	for _, i := range l.nonNull {
		if rows.Column(i).NullN() > 0 {
			return fmt.Errorf("the batch emitted has a null in column %q, which is declared without", rows.ColumnName(i))
		}
	}
	return nil
}

// send passes rows to an outgoing edge. If rows are checked, it passes a copy, so that changes
// by one vertex are not visible in another.
func (t *subtask) send(out *chainOutput, shard int, rows arrow.Record) error {
	if !t.run.env.CheckRows {
		return out.emit(t.context, shard, rows)
	}
	own, err := batch.Concat(t.run.env.Allocator, []arrow.Record{rows})
	if err != nil {
		return err
	}
	defer own.Release()
	return out.emit(t.context, shard, own)
}

// process gives n rows to the link's operator. It turns a panic into an error, so that the
// operators that called it release their batches as after any other failure.
func (l *link) process(port, shard int, rows arrow.Record, n int64) (err error) {
	l.rowsIn += n
	t := l.task
	before, returned := t.current.Swap(l), false
	defer t.afterCall(before, &returned, &err)
	if t.run.env.CheckRows {
		rows = l.borrowed.lend(rows)
	}
	l.checkedBatch = rows
	if err = l.operator.Process(l.context, port, shard, arrowrows.Batch(rows), l); err == nil && t.run.env.CheckRows {
		err = l.borrowed.unchanged(len(l.borrowed.rows) - 1)
	}
	returned = true
	if err != nil {
		return t.failAt(l, err)
	}
	return nil
}

// endShard ends a shard for the link's operator, and then for its outgoing edges and the
// operators chained behind it. For the last shard it also calls Finish. As Finish may emit rows
// under this shard, it is called before the shard ends for the edges and for those operators.
func (l *link) endShard(shard int, last bool) error {
	t := l.task
	l.checkedBatch = nil
	if t.context.Err() != nil {
		return t.failAt(l, errStopped)
	}
	if l.operator != nil {
		err := t.call(l, func() error {
			if err := l.operator.EndShard(l.context, shard, l); err != nil || !last {
				return err
			}
			if t.context.Err() != nil {
				return errStopped
			}
			return l.finishOperator()
		})
		if err != nil {
			return err
		}
	}
	if err := l.checkRows(); err != nil {
		return t.failAt(l, err)
	}
	for i := range l.outs {
		if err := t.call(l.outs[i].receiver, func() error { return l.outs[i].endShard(t.context, shard) }); err != nil {
			return err
		}
	}
	for _, next := range l.next {
		if err := next.endShard(shard, last); err != nil {
			return err
		}
	}
	return nil
}

// finishOperator calls Finish. The rows that Finish emits depend on all shards of the subtask, so it is an
// error if a queue has kept rows that were made by other subtasks, or of a part of the shards.
func (l *link) finishOperator() error {
	before := l.rowsOut
	if err := l.operator.Finish(l.context, l); err != nil {
		return err
	}
	l.ended, l.last = true, l.rowsOut > before && !l.node.Single
	if c := l.task.run.continued; l.last && c != nil && c.keepsRowsOf(l.task.run.plan, l.node.ID) {
		return errors.New("Finish emitted rows, which depend on all shards of a subtask, after a queue had kept some of its rows for another attempt: emit rows in EndShard, or run the job again")
	}
	return nil
}

// passShard ends a shard, under which nothing was emitted, for the outgoing edges of the chain. It
// calls no operator.
func (l *link) passShard(shard int) error {
	if l.task.context.Err() != nil {
		return l.task.failAt(l, errStopped)
	}
	for i := range l.outs {
		if err := l.task.call(l.outs[i].receiver, func() error { return l.outs[i].endShard(l.task.context, shard) }); err != nil {
			return err
		}
	}
	for _, next := range l.next {
		if err := next.passShard(shard); err != nil {
			return err
		}
	}
	return nil
}

// checkRows returns an error if the operator has changed the rows of the shard or of its side
// inputs. The rows of a shard are kept and checked until its end, as user functions may be
// called until then.
func (l *link) checkRows() error {
	err := l.borrowed.unchanged(0)
	l.borrowed.release()
	for i := range l.sides {
		s := &l.sides[i]
		if err == nil {
			err = s.borrowed.unchanged(0)
		}
	}
	return err
}

// finish calls Finish on the operators of a chain that owns no shard. They cannot emit rows.
func (l *link) finish() error {
	if l.task.context.Err() != nil {
		return l.task.failAt(l, errStopped)
	}
	if l.operator != nil {
		if err := l.task.call(l, func() error { return l.operator.Finish(l.context, l) }); err != nil {
			return err
		}
	}
	for _, next := range l.next {
		if err := next.finish(); err != nil {
			return err
		}
	}
	return nil
}

// currentShard returns the shard that the link works on, or -1. Other goroutines may call it.
func (l *link) currentShard() int {
	if l.shardOf != nil {
		return l.shardOf()
	}
	return int(l.task.shard.Load())
}

// open opens the link's operator or source.
func (l *link) open() error {
	switch {
	case l.operator != nil:
		return l.operator.Open(l.context)
	case l.source != nil:
		return l.source.Open(l.context)
	}
	return nil
}

// close closes the link's operator, source or Loop.
func (l *link) close() error {
	switch {
	case l.operator != nil:
		return l.operator.Close()
	case l.source != nil:
		return l.source.Close()
	case l.closer != nil:
		return l.closer()
	}
	return nil
}
