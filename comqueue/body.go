package comqueue

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
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
	subtasks int

	broadcasts []broadcast // by input
}

// broadcast is the one copy of a broadcast input.
type broadcast struct {
	once  sync.Once
	frame *Frame
	print uint64 // the frame's fingerprint before the first superstep
	err   error
}

func newGang(q *IterativeComQueue, l *layout, nodes []engine.NodeID, subtasks int) (*gang, error) {
	session, err := shared.NewStore().Open(q.name, subtasks)
	if err != nil {
		return nil, err
	}
	return &gang{
		queue: q, layout: l, nodes: nodes, session: session, subtasks: subtasks,
		broadcasts: make([]broadcast, len(q.inputs)),
	}, nil
}

// Body implements engine.Gang.
func (g *gang) Body(subtask int) (engine.Body, error) {
	if g.reports == nil { // called for one subtask after the other, before any runs
		g.reports = newReports(g.queue.b.Shards(), g.subtasks)
	}
	return &body{gang: g, subtask: subtask, forests: map[int]any{}}, nil
}

// CheckShared fails if a broadcast object was modified since the superstep before.
func (g *gang) CheckShared(step int) error {
	for i, in := range g.queue.inputs {
		if in.broadcast == nil {
			continue
		}
		b := &g.broadcasts[i]
		if now := b.frame.Fingerprint(); now != b.print {
			return fmt.Errorf("queue %q: the broadcast object %q was modified in superstep %d; it is shared by all subtasks of the process: copy it before changing it", g.queue.name, in.name(), step)
		}
	}
	return nil
}

// Close implements engine.Gang: every object of the session is gone.
func (g *gang) Close() error { return g.session.Close() }

// body is what one subtask of a queue runs.
type body struct {
	*gang
	subtask int
	context ComContext
	comm    *collective.Comm
	forests map[int]any // *forest[T] by position of its ForEachShard
	used    int         // nodes bound so far
	stages  []engine.Stage
}

// takeNode returns the plan's node for the next described stage.
func (b *body) takeNode() engine.NodeID {
	b.used++
	return b.nodes[b.used-1]
}

// Open implements engine.Body: it loads the inputs and binds the stages.
func (b *body) Open(c *engine.Context, in engine.Input, comm *collective.Comm) error {
	b.comm = comm
	b.context = ComContext{task: c, session: c.Node.Queue, objects: b.session.Subtask(b.subtask), shard: -1, reports: b.reports}
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
	return nil
}

// openBroadcast shares the process's one frame of a broadcast input.
func (b *body) openBroadcast(c *engine.Context, port int, in input) error {
	one := &b.broadcasts[port]
	one.once.Do(func() {
		one.frame, one.err = newFrame(c.Allocator, in.schema(), c.Side(port))
		if one.err == nil && b.queue.b.CheckBroadcasts() {
			one.print = one.frame.Fingerprint()
		}
	})
	if one.err != nil {
		return fmt.Errorf("broadcast data %q: %w", in.name(), one.err)
	}
	in.broadcast.key.Put(&b.context, one.frame)
	return nil
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
				if errors.Is(err, io.EOF) {
					return newFrame(c.Allocator, input.schema(), batches)
				}
				if err != nil {
					return nil, err
				}
				if rows.NumRows() == 0 {
					rows.Release()
					continue
				}
				batches = append(batches, rows)
			}
		}()
		if err != nil {
			return fmt.Errorf("partitioned data %q, shard %d: %w", input.name(), shard, err)
		}
		input.partitioned.key.Put(&b.context, shard, frame)
	}
	return nil
}

// Stages implements engine.Body.
func (b *body) Stages() []engine.Stage { return b.stages }

// Begin implements engine.Body.
func (b *body) Begin(step int) error {
	b.context.step = step
	b.context.shard = -1
	b.reports.begin(b.subtask, step)
	return nil
}

// Stop implements engine.Body.
func (b *body) Stop(int) (bool, error) {
	if b.queue.criterion == nil {
		return false, nil
	}
	return b.queue.criterion(&b.context)
}

// After implements the loop's hook that follows the verdict on subtask 0.
func (b *body) After(step int) error { return b.reports.flush(step, b.context.task.Report) }

// Finish implements engine.Body: it emits the queue's rows.
func (b *body) Finish(c *engine.Context, out engine.Output) error {
	b.context.shard = -1
	closing := b.queue.close
	if !closing.perShard && b.subtask != 0 {
		return nil
	}
	emit, release := closing.start(c)
	defer release()
	if !closing.perShard {
		return emit(&b.context, 0, func(rows arrow.Record) error { return out.Emit(0, rows) })
	}
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		b.context.shard = shard
		if err := emit(&b.context, shard, func(rows arrow.Record) error { return out.Emit(shard, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// Close implements engine.Body; the gang closes the session.
func (b *body) Close() error { return nil }
