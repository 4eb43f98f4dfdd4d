package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workerProgress gathers the events of a worker's part of a plan, and what its saver has written.
// It sends both every ProgressInterval if they have changed, and at the end. When a queue has read its
// rows, and when a first superstep has ended, it sends them at once.
type workerProgress struct {
	sender *workerSender
	queues map[string]int // position in state.Queues; empty except on worker 0

	sent func() []wire.EdgeProgress // returns what was sent over each edge; nil if it is not counted

	mu          sync.Mutex
	state       wire.Progress
	changed     bool
	checkpoints *wire.Checkpointed // to be sent; nil if it was sent
	first       map[string]int     // by queue that has read its rows: the superstep that follows
	wake        chan struct{}      // has an element if the state is to be sent at once
	maxima      []int              // maximum number of supersteps of each queue, 0 if only the criterion ends it
}

// newWorkerProgress returns the progress of a worker for a plan. first says that the worker has
// subtask 0; this worker also reports the queues.
func newWorkerProgress(p *plan.Plan, first bool, sender *workerSender) *workerProgress {
	w := &workerProgress{sender: sender, queues: map[string]int{}, first: map[string]int{}, wake: make(chan struct{}, 1)}
	w.state.Vertices = make([]wire.VertexProgress, len(p.Vertices))
	if first {
		w.state.Queues = make([]wire.QueueProgress, len(p.Queues))
		for i, q := range p.Queues {
			w.queues[q.Name] = i
			w.maxima = append(w.maxima, q.MaxSupersteps)
		}
	}
	return w
}

// event handles one event of the run. As it is called from several goroutines and in any order, a
// count may be older than the known count. The larger count is always the newer one.
func (w *workerProgress) event(e task.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Queue == "" {
		if v := int(e.Vertex); v >= 0 && v < len(w.state.Vertices) {
			at := &w.state.Vertices[v]
			at.Rows = max(at.Rows, e.Rows)
			at.ShardsDone = max(at.ShardsDone, e.ShardsDone)
			w.changed = true
		}
		return
	}
	i, known := w.queues[e.Queue]
	if !known || e.Step < w.state.Queues[i].Superstep {
		return
	}
	q := &w.state.Queues[i]
	q.Superstep = e.Step
	q.Ended = w.maxima[i] > 0 && e.Step >= w.maxima[i]
	q.Compute, q.Communicate = e.Compute.Seconds(), e.Communicate.Seconds()
	q.Values = q.Values[:0]
	for _, v := range e.Values {
		q.Values = append(q.Values, wire.ReportedValue{Name: v.Name, Value: v.Value})
	}
	w.changed = true
	w.resumed(e.Queue)
}

// opened notes that the subtasks of a queue in this process have read their rows.
func (w *workerProgress) opened(queue string, first int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first[queue] = first
	if !w.state.Opened {
		w.state.Opened = true
		w.sendSoon()
	}
	w.resumed(queue)
}

// resumed notes the first superstep that has ended in the attempt, if it is one of the queue. mu is held.
func (w *workerProgress) resumed(queue string) {
	i, here := w.queues[queue]
	first, opened := w.first[queue]
	if here && opened && w.state.Resumed == 0 && w.state.Queues[i].Superstep >= first {
		w.state.Resumed = first
		w.sendSoon()
	}
}

// sendSoon has the state sent before the interval is over, as the job manager takes the time. mu is held.
func (w *workerProgress) sendSoon() {
	w.changed = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// uncopied notes why the state of a queue cannot be copied.
func (w *workerProgress) uncopied(queue string, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Uncopied = append(w.state.Uncopied, wire.Uncopied{Queue: queue, Why: clipMessage(why.Error())})
	w.changed = true
}

// checkpointed notes what the saver has written so far.
func (w *workerProgress) checkpointed(c *wire.Checkpointed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkpoints = c
}

// takeCheckpoints returns what is to be sent of the checkpoints, or nil.
func (w *workerProgress) takeCheckpoints() *wire.Checkpointed {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.checkpoints
	w.checkpoints = nil
	return c
}

// take returns a copy of the state if it has changed since the last call, or else nil. If
// end is true, it always returns a copy, in which all queues are marked as ended.
func (w *workerProgress) take(end bool) *wire.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.changed && !end {
		return nil
	}
	w.changed = false
	p := wire.Progress{Vertices: slices.Clone(w.state.Vertices), Queues: slices.Clone(w.state.Queues), Opened: w.state.Opened, Resumed: w.state.Resumed, Uncopied: slices.Clone(w.state.Uncopied)}
	if w.sent != nil {
		p.Edges = w.sent()
	}
	for i := range p.Queues {
		p.Queues[i].Ended = p.Queues[i].Ended || end
		p.Queues[i].Values = slices.Clone(p.Queues[i].Values)
	}
	return &p
}

// tell sends the progress at intervals until stop is called, and then once more. If succeeded is
// true, the last progress says that all queues have ended.
func (w *workerProgress) tell(ctx context.Context) (stop func(succeeded bool)) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(ProgressInterval)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-w.wake:
				w.send(ctx, w.take(false))
			case <-tick.C:
				w.send(ctx, w.take(false))
			}
		}
	}()
	return func(succeeded bool) {
		close(quit)
		<-gone
		w.send(ctx, w.take(succeeded))
	}
}

// send sends p if it is not nil, and the checkpoints if they have changed. If ctx ends first, they
// are dropped.
func (w *workerProgress) send(ctx context.Context, p *wire.Progress) {
	if p != nil {
		_ = w.sender.send(ctx, &wire.FromWorker{Progress: p})
	}
	if c := w.takeCheckpoints(); c != nil {
		_ = w.sender.send(ctx, &wire.FromWorker{Checkpointed: c})
	}
}
