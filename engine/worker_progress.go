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

// workerProgress gathers the events of a worker's part of a plan and sends its progress: every
// ProgressInterval if something happened, and at the end.
type workerProgress struct {
	sender *workerSender
	queues map[string]int // position in state.Queues; empty but on worker 0

	sent func() []wire.EdgeProgress // over the exchanges; nil if not counted

	mu      sync.Mutex
	state   wire.Progress
	changed bool
	maxima  []int // supersteps by queue, 0 if only the criterion ends it
}

// newWorkerProgress makes one for a plan. The worker of subtask 0 reports the queues.
func newWorkerProgress(p *plan.Plan, first bool, sender *workerSender) *workerProgress {
	w := &workerProgress{sender: sender, queues: map[string]int{}}
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

// event takes one event of the run. It is called from several goroutines and in any order, so a
// count may be older than the one known: the larger one is right.
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
}

// take returns a copy of the state if it has changed since the last one, or else nil.
// At the end, every queue has ended.
func (w *workerProgress) take(end bool) *wire.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.changed && !end {
		return nil
	}
	w.changed = false
	p := wire.Progress{Vertices: slices.Clone(w.state.Vertices), Queues: slices.Clone(w.state.Queues)}
	if w.sent != nil {
		p.Edges = w.sent()
	}
	for i := range p.Queues {
		p.Queues[i].Ended = p.Queues[i].Ended || end
		p.Queues[i].Values = slices.Clone(p.Queues[i].Values)
	}
	return &p
}

// tell sends the progress until stop is called, and then once more if the run succeeded.
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

// send sends progress, if there is any. If ctx ends first, the progress is dropped.
func (w *workerProgress) send(ctx context.Context, p *wire.Progress) {
	if p != nil {
		_ = w.sender.send(ctx, &wire.FromWorker{Progress: p})
	}
}
