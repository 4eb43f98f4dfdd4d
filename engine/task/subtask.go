package task

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
)

// subtask is one subtask of a vertex: a goroutine that reads the inputs and calls
// the operators of the chain.
type subtask struct {
	run    *run
	vertex *plan.Vertex
	index  int
	// generation is the number of gangs that the queue had before the gang of this subtask.
	generation int
	context    context.Context // of the run

	links []*link // in chain order; links[0] is the head
	ports []port  // data inputs of the head, by increasing port

	// What the subtask is working on, for errors and for the list of abandoned functions.
	current atomic.Pointer[link]
	shard   atomic.Int32 // -1 outside any shard

	finished atomic.Bool

	err        *TaskError   // the first failure; sticky
	reported   bool         // the run knows err
	opened     int          // number of links that must be closed
	atEnd      func() error // called at the end, if set
	rowsIn     int64
	unreported int64 // number of rows not yet counted in the progress
	waiting    time.Duration
	elapsed    time.Duration

	marks   []shardMark // of the shards that were made, if the process may keep them
	counted []madeShard // what the operators had counted at the last mark, in chain order
}

// port is a data input.
type port struct {
	number int
	inbox  *inbox
	moved  *inbox // of the rows that other processes have kept; nil if there are none
}

// main is the subtask's goroutine. It runs the body, reports a failure to the run, and closes
// what was opened. Deferred calls report and close, as user code may end the goroutine. The
// failure is reported before anything is closed, so that failures of other subtasks that result
// from the closing count as consequences.
func (t *subtask) main(body func() error) {
	began := time.Now()
	defer func() {
		t.elapsed = time.Since(began)
		t.report()
		t.finished.Store(true)
	}()
	if t.atEnd != nil {
		defer t.guarded(t.atEnd)
	}
	defer t.close()
	defer t.report()
	t.guarded(body)
}

// report reports the subtask's failure to the run, once.
func (t *subtask) report() {
	if t.err != nil && !t.reported {
		t.reported = true
		t.run.record(t.err)
	}
}

// guarded runs f. It records an error, a panic, or the end of the goroutine as the failure of
// the operator at work.
func (t *subtask) guarded(f func() error) {
	err, returned := error(nil), false
	defer t.afterCall(t.current.Load(), &returned, &err)
	err = f()
	returned = true
	if err != nil {
		_ = t.failAt(t.current.Load(), err)
	}
}

// drive is the body of subtasks outside of queues.
func (t *subtask) drive() error {
	err := t.turn(t.work)
	if err == nil {
		t.run.env.Retained.subtaskEnded(t)
	}
	return err
}

// work reads the inputs and calls the operators of the chain.
func (t *subtask) work() error {
	if t.makesNothing() {
		return t.passAll()
	}
	if err := t.awaitSides(); err != nil {
		return err
	}
	for _, l := range t.links {
		if t.context.Err() != nil {
			return t.failAt(l, errStopped)
		}
		t.opened++
		if err := t.call(l, l.open); err != nil {
			return err
		}
	}
	head, shards := t.links[0], t.vertex.Ranges[t.index]
	for shard := shards.Lo; shard < shards.Hi; shard++ {
		if t.context.Err() != nil {
			return t.failAt(head, errStopped)
		}
		if !t.run.makes(t.vertex, shard) {
			if err := head.passShard(shard); err != nil {
				return err
			}
			t.shardDone()
			continue
		}
		t.shard.Store(int32(shard))
		if err := t.readShard(head, shard); err != nil {
			return err
		}
		if t.err != nil {
			return t.err // an operator ignored a failed Emit
		}
		if err := head.endShard(shard, shard == shards.Hi-1); err != nil {
			return err
		}
		if t.err != nil {
			return t.err
		}
		t.markShard(shard)
		t.shardDone()
	}
	t.shard.Store(-1)
	if shards.Empty() {
		return head.finish()
	}
	return nil
}

// makesNothing reports whether the subtask owns shards and makes none of them, because everybody has
// their rows.
func (t *subtask) makesNothing() bool {
	shards := t.vertex.Ranges[t.index]
	for shard := shards.Lo; shard < shards.Hi; shard++ {
		if t.run.makes(t.vertex, shard) {
			return false
		}
	}
	return !shards.Empty()
}

// passAll ends all shards of the subtask for its outgoing edges, without rows. No operator is opened.
func (t *subtask) passAll() error {
	shards := t.vertex.Ranges[t.index]
	for shard := shards.Lo; shard < shards.Hi; shard++ {
		if err := t.links[0].passShard(shard); err != nil {
			return err
		}
		t.shardDone()
	}
	return nil
}

// readShard gives the head all rows of a shard.
func (t *subtask) readShard(head *link, shard int) error {
	if head.source != nil {
		return t.call(head, func() error { return head.source.ReadShard(head.context, shard, head) })
	}
	for _, p := range t.ports {
		for {
			rows, err := p.inbox.next(t.context, shard, &t.waiting)
			if err == io.EOF { // not errors.Is: a wrapped io.EOF means truncated data
				break
			}
			if err != nil {
				return t.failAt(head, err)
			}
			if err := t.take(head, p.number, shard, rows); err != nil {
				return err
			}
			if t.err != nil {
				return t.err
			}
		}
	}
	return nil
}

// take gives the head a batch that the subtask owns, and releases the batch.
func (t *subtask) take(head *link, port, shard int, rows arrow.Record) error {
	defer rows.Release() // also if the operator panics
	t.rowsIn += rows.NumRows()
	t.advance(rows.NumRows())
	return head.process(port, shard, rows, rows.NumRows())
}

// awaitSides waits for the side inputs of all operators of the chain.
func (t *subtask) awaitSides() error {
	for _, l := range t.links {
		for i := range l.sides {
			s := &l.sides[i]
			began := time.Now()
			select {
			case <-s.input.done:
			case <-t.context.Done():
				return t.failAt(l, errStopped)
			}
			t.waiting += time.Since(began)
			l.context.side[s.port] = s.input.records
			if t.run.env.CheckRows && l.operator != nil {
				for _, rows := range s.input.records {
					s.borrowed.lend(rows)
				}
				l.context.side[s.port] = slices.Clone(s.borrowed.rows)
			}
		}
	}
	return nil
}

// call runs a step of an operator, and records a failure or a panic as a failure of the
// operator.
func (t *subtask) call(l *link, step func() error) (err error) {
	before, returned := t.current.Swap(l), false
	defer t.afterCall(before, &returned, &err)
	err = step()
	returned = true
	if err != nil {
		return t.failAt(l, err)
	}
	return nil
}

// afterCall is deferred around calls of operators. It turns a panic into err, records the failure if
// the goroutine is ending, and sets the subtask back to the previous operator.
func (t *subtask) afterCall(before *link, returned *bool, err *error) {
	if !*returned {
		if v := recover(); v != nil {
			*err = t.failAt(t.current.Load(), recovered(v))
		} else {
			_ = t.failAt(t.current.Load(), errGoexit)
		}
	}
	t.current.Store(before)
}

// failAt records the first failure of the subtask, and returns it from then on. Operators call
// each other, so the failure of the innermost operator is recorded first. The operators that
// called it only pass on its error.
func (t *subtask) failAt(l *link, err error) error {
	if t.err == nil {
		t.err = t.taskError(l, err)
	}
	return t.err
}

// taskError returns err as a failure of link l, or of the head if l is nil.
func (t *subtask) taskError(l *link, err error) *TaskError {
	if l == nil {
		l = t.links[0]
	}
	return &TaskError{
		Operator: l.node.Title(), Node: l.node.ID, Site: l.node.Site, Within: l.node.Within,
		Vertex: t.vertex.ID, Subtask: t.index, Parallelism: t.vertex.Parallelism,
		Shard: l.currentShard(), Err: err,
	}
}

// shardError returns the error for rows emitted under a shard other than the current shard.
func (t *subtask) shardError(shard int) error {
	at := t.shard.Load()
	if at < 0 {
		return fmt.Errorf("emit under shard %d: no shard has begun, or all have ended", shard)
	}
	return fmt.Errorf("emit under shard %d: the current shard is %d, and rows stay in their shard", shard, at)
}

// close closes the links that were opened, last first, and releases what the links hold.
func (t *subtask) close() {
	for i := t.opened - 1; i >= 0; i-- {
		l := t.links[i]
		t.guarded(func() error { return t.call(l, l.close) })
	}
	for _, l := range t.links {
		for i := range l.outs {
			l.outs[i].release()
		}
		l.borrowed.release()
		for i := range l.sides {
			l.sides[i].borrowed.release()
			l.sides[i].input.leave()
		}
	}
}

// progressRows is the number of rows that a subtask handles between two progress events.
const progressRows = 1 << 14

// advance counts rows for the progress.
func (t *subtask) advance(rows int64) {
	if t.unreported += rows; t.unreported >= progressRows {
		t.reportProgress(0)
	}
}

// shardDone counts a shard for the progress.
func (t *subtask) shardDone() { t.reportProgress(1) }

// reportProgress adds the new counts to the vertex's progress.
func (t *subtask) reportProgress(shards int32) {
	v := &t.run.progress[t.vertex.ID]
	e := Progress{
		Vertex:     t.vertex.ID,
		Rows:       v.rows.Add(t.unreported),
		ShardsDone: int(v.shards.Add(shards)),
	}
	t.unreported = 0
	if f := t.run.env.Progress; f != nil {
		f(e)
	}
}
