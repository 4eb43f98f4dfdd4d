package comqueue

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// gang is the state of a queue in one process: its session and what its subtasks
// share.
type gang struct {
	queue   *IterativeComQueue
	layout  *layout
	nodes   []engine.NodeID
	session *shared.Session

	reports  *reports
	subtasks int          // of the queue, in all processes
	here     shared.Range // those in this one
	alive    atomic.Int32 // bodies that have not been closed

	broadcasts []broadcast // by input
	checks     *checks     // nil where nobody asked for them
}

// broadcast is the one copy of a broadcast input.
type broadcast struct {
	once  sync.Once
	frame *Frame
	print uint64 // the frame's fingerprint before the first superstep, for checks
	err   error
}

// openGang makes the gang of a queue and its bodies, as engine.OpenLoops does.
func openGang(q *IterativeComQueue, l *layout, nodes []engine.NodeID, stages []engine.StageSpec) engine.OpenLoops {
	return func(subtasks int, here shared.Range) ([]engine.Loop, error) {
		session, err := shared.NewStore().Open(q.name, subtasks)
		if err != nil {
			return nil, err
		}
		g := &gang{
			queue: q, layout: l, nodes: nodes, session: session, subtasks: subtasks, here: here,
			reports: newReports(q.b.Shards(), subtasks), broadcasts: make([]broadcast, len(q.inputs)),
		}
		g.alive.Store(int32(here.Len()))
		if q.b.CheckBroadcasts() {
			g.checks = newChecks(q, subtasks)
			if q.b.TracesReplicas() {
				g.checks.traces = newTraces(stages, subtasks)
			}
		}
		loops := make([]engine.Loop, here.Len())
		for i := range loops {
			b := &body{gang: g, subtask: here.Lo + i, forests: map[int]forgetful{}, inputs: holdings{queue: q.name}, made: holdings{queue: q.name}}
			b.context.made, b.inputs.context = &b.made, &b.context
			b.context.shard.Store(-1)
			loops[i] = b
		}
		return loops, nil
	}
}

// spread says that the queue has subtasks in other processes.
func (g *gang) spread() bool { return g.here.Len() < g.subtasks }

// body is what one subtask of a queue runs.
type body struct {
	*gang
	subtask int
	context ComContext
	comm    *collective.Comm
	forests map[int]forgetful // *forest[T] by position of its ForEachShard
	used    int               // nodes bound so far
	inputs  holdings          // rows
	made    holdings          // what stages have made of them
	stages  []engine.Stage
	mail    mail // what goes between processes

	instances []*instance // of stages that are made for each subtask
}

// takeNode returns the plan's node for the next described stage.
func (b *body) takeNode() engine.NodeID {
	b.used++
	return b.nodes[b.used-1]
}

// Open implements engine.Loop: it loads the inputs and binds the stages.
func (b *body) Open(c *engine.Context, in engine.Input, comm *collective.Comm) error {
	b.comm = comm
	b.context.task, b.context.session, b.context.reports = c, c.Node.Queue, b.reports
	b.context.rounds.open(c.Seed, c.Node.Queue)
	b.context.objects = b.session.Subtask(b.subtask)
	b.context.objects.Own(c.Range)
	for port, input := range b.queue.inputs {
		if input.broadcast != nil {
			if err := b.openBroadcast(c, port, input); err != nil {
				return err
			}
		}
	}
	for port, input := range b.queue.inputs {
		if input.partitioned != nil {
			if err := b.openPartitioned(c, in, port, input); err != nil {
				return err
			}
		}
	}
	position := 0
	for _, s := range b.queue.stages {
		bound, err := s.bind(b, position)
		if err != nil {
			return err
		}
		b.stages = append(b.stages, bound...)
		position = b.layout.last(position, s) + 1
	}
	b.stages = b.guarded(b.stages)
	if b.checks != nil && b.checks.traces != nil {
		b.follow(b.stages)
	}
	return nil
}

// openBroadcast shares the process's one frame of a broadcast input.
func (b *body) openBroadcast(c *engine.Context, port int, in input) error {
	one := &b.broadcasts[port]
	one.once.Do(func() {
		if one.err = holdJoined(c, port); one.err == nil {
			one.frame, one.err = newFrame(c.Allocator, in.schema(), arrowrows.Records(c.Side(port)))
		}
		if one.err == nil {
			one.err = in.columns().checkFrame(one.frame, nil)
		}
		if one.err == nil && b.checks != nil {
			one.print, one.err = one.frame.fingerprint()
		}
	})
	if one.err != nil {
		return fmt.Errorf("broadcast data %q: %w", in.name(), one.err)
	}
	in.broadcast.key.Put(&b.context, one.frame)
	return nil
}

// holdJoined accounts for the copy that a frame makes of several batches. The batches
// stay as well, as the run's.
func holdJoined(c *engine.Context, port int) error {
	batches := c.Side(port)
	if len(batches) < 2 {
		return nil
	}
	var size int64
	for _, rows := range batches {
		size += batch.Size(arrowrows.Record(rows))
	}
	return c.HoldSide(port, size)
}

// openPartitioned joins the rows of each shard into one frame.
func (b *body) openPartitioned(c *engine.Context, in engine.Input, port int, input input) error {
	b.context.data = append(b.context.data, *input.partitioned)
	var batches []arrow.Record
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		frame, err := func() (*Frame, error) {
			defer func() {
				for _, rows := range batches {
					rows.Release()
				}
				batches = batches[:0]
			}()
			for {
				rows, err := in.Next(port, shard)
				if err == io.EOF { // itself: one wrapped in an error is something cut off
					return b.inputs.rows(c, *input.partitioned, shard, input.schema(), batches)
				}
				if err != nil {
					return nil, err
				}
				if rows.Len() == 0 {
					rows.Release()
					continue
				}
				batches = append(batches, arrowrows.Record(rows))
			}
		}()
		if err != nil {
			return fmt.Errorf("partitioned data %q, shard %d: %w", input.name(), shard, err)
		}
		input.partitioned.key.Put(&b.context, shard, frame) // the session releases it from here on
		if err := input.columns().checkFrame(frame, &engine.RowsOf{Shard: shard, Input: len(b.context.data) - 1}); err != nil {
			return fmt.Errorf("partitioned data %q, shard %d: %w", input.name(), shard, err)
		}
		if b.checks != nil {
			if err := b.checks.watch(b.subtask, input.name(), frame); err != nil {
				return fmt.Errorf("partitioned data %q, shard %d: %w", input.name(), shard, err)
			}
		}
	}
	return nil
}

// Stages implements engine.Loop.
func (b *body) Stages() []engine.Stage { return b.stages }

// Begin implements engine.Loop.
func (b *body) Begin(step int) error {
	b.context.shard.Store(-1)
	if err := b.between(step); err != nil {
		return err
	}
	b.context.step = step
	b.reports.begin(b.subtask, step)
	if b.checks != nil && b.checks.traces != nil {
		b.checks.traces.begin(b.subtask, step)
	}
	if step == 1 {
		b.mail.begin()
	}
	if b.checks == nil {
		return nil
	}
	return b.checks.begin(b.subtask, step, b.context.objects)
}

// between is what happens before a superstep: it opens the queue, and has it forget what no
// key keeps where that is checked.
func (b *body) between(step int) error {
	if step == 1 {
		return b.guard(func() error { return b.open(true) })
	}
	if err := b.observe(step - 1); err != nil || !b.queue.b.CheckState() {
		return err
	}
	return b.forget()
}

// observe shows the replicated objects after a superstep to who wants to see them.
func (b *body) observe(step int) error {
	if b.subtask != 0 || !b.context.task.Observed() {
		return nil
	}
	broadcast := func(name string) bool { return b.checks != nil && b.checks.isBroadcast(name) }
	held, err := b.context.objects.Fingerprints(nil, broadcast)
	if err == nil {
		b.context.task.ObserveObjects(step, held)
	}
	return err
}

// Shard implements engine.Loop: the shard being worked on, for errors.
func (b *body) Shard() int { return b.context.currentShard() }

// Stop implements engine.Loop.
func (b *body) Stop(int) (bool, error) {
	if b.queue.criterion == nil {
		return false, nil
	}
	return b.context.ask(b.queue.criterion)
}

// After implements engine.Loop: checks, what the subtasks of several processes combine, and
// what subtask 0 makes of the superstep's reports.
func (b *body) After(step int, last bool) error {
	if b.checks != nil {
		if err := b.check(step); err != nil {
			return err
		}
	}
	if b.spread() {
		if err := b.post(step, last); err != nil {
			return err
		}
	}
	switch {
	case b.subtask != 0:
		return nil
	case b.spread():
		return b.mail.open(b.reports, b.context.task.Report)
	}
	return b.reports.flush(step, b.context.task.Report)
}

// Finish implements engine.Loop: it emits the queue's rows.
func (b *body) Finish(c *engine.Context, out engine.Output) error {
	if err := b.giveRows(c, out); err != nil || b.checks == nil {
		return err
	}
	if err := b.checkClosed(); err != nil {
		return fmt.Errorf("queue %q: %w", b.queue.name, err)
	}
	return nil
}

func (b *body) giveRows(c *engine.Context, out engine.Output) error {
	b.reports.end(b.subtask)
	b.context.shard.Store(-1)
	if err := b.verifyRows(); err != nil {
		return err
	}
	if err := b.observe(b.context.step); err != nil {
		return err
	}
	closing := b.queue.close
	if !closing.perShard && b.subtask != 0 {
		return nil
	}
	emit, release := closing.start(c)
	defer release()
	if !closing.perShard {
		err := emit(&b.context, 0, func(rows arrow.Record) error { return out.Emit(0, arrowrows.Batch(rows)) })
		return b.context.takeMisuse(err)
	}
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		if c.Err() != nil {
			return context.Cause(c)
		}
		b.context.shard.Store(int32(shard))
		err := emit(&b.context, shard, func(rows arrow.Record) error { return out.Emit(shard, arrowrows.Batch(rows)) })
		if err := b.context.takeMisuse(err); err != nil {
			return err
		}
	}
	return nil
}

// Close implements engine.Loop. The last subtask that ends closes the session, which
// releases what all of them hold.
func (b *body) Close() error {
	if c := b.context.task; c != nil {
		b.made.close(c)
		b.inputs.close(c)
	}
	if b.alive.Add(-1) > 0 {
		return nil
	}
	return b.session.Close()
}
