package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// ProgressInterval is the time between two calls of OnProgress.
const ProgressInterval = 100 * time.Millisecond

// Progress is the progress of a run.
type Progress struct {
	Job     string
	Elapsed time.Duration
	// JobID is the job's name on a cluster. It is "" before the job has a name, and for a job in
	// this process.
	JobID string
	// State is the state of a job on a cluster, such as "uploading" (its executable),
	// "resolving", "waiting", "deploying", "running" and "committing". It is "" for a job in
	// this process. Detail says more about the state, such as what the job waits for.
	State, Detail string
	// Done is true in the last call. Err is then set if the run has failed.
	Done bool
	Err  error
	// Rows is the number of rows that sources have produced. Sources whose rows are only side
	// inputs, such as parameters, do not count. RowsPerSecond is the recent rate; in the last
	// call it is the rate of the whole run.
	Rows          int64
	RowsPerSecond float64
	// Vertices and Queues are empty until the plan is known.
	Vertices []VertexProgress // in plan order
	Queues   []QueueProgress  // in plan order
}

// VertexProgress is the progress of a vertex.
type VertexProgress struct {
	Name string
	// Source says that the vertex produces its rows and receives none.
	Source bool
	// Rows is the number of rows that the subtasks have received or, for a source, produced.
	Rows int64
	// ShardsDone is the number of shards that have ended. Shards is the number of all shards.
	ShardsDone, Shards int
}

// QueueProgress is the progress of a queue.
type QueueProgress struct {
	Name      string
	Superstep int // number of supersteps done so far
	Max       int // maximum number of supersteps; 0 if only the criterion ends the queue
	// Ended says that no superstep will follow.
	Ended bool
	// Values are the values reported in the last superstep, such as an inertia.
	Values []Value
	// PerSecond is the recent number of supersteps per second. Left is the time that the
	// supersteps up to Max would take at that rate; the criterion may end the queue earlier.
	// Both are 0 if unknown.
	PerSecond float64
	Left      time.Duration
}

// Value is a named number that a queue reported.
type Value = task.Value

// clone returns a copy that shares no memory that changes later.
func (p *Progress) clone() Progress {
	c := *p
	c.Vertices = slices.Clone(p.Vertices)
	c.Queues = slices.Clone(p.Queues)
	for i := range c.Queues {
		c.Queues[i].Values = slices.Clone(c.Queues[i].Values)
	}
	return c
}

// watch gathers the events of a run and reports the progress to the user's function, from one
// goroutine and at intervals. A nil watch does nothing.
type watch struct {
	tell func(Progress)
	// tellPlan, if not nil, is called with the plan that a cluster made.
	tellPlan func(*plan.Plan)
	cancel   context.CancelCauseFunc // ends the run if tell fails
	start    time.Time
	// ends signals that a queue has ended or that there is news. It has a buffer of one.
	ends chan struct{}
	quit chan struct{} // closed to end the goroutine of loop
	gone chan struct{} // closed when the goroutine of loop ends
	// The outcome of the run, set before quit is closed.
	report  *task.Report
	outcome error
	err     error // error of tell, which is not called again after an error; not read before gone is closed

	mu     sync.Mutex
	state  Progress
	queues map[string]int // position in state.Queues
	of     []string       // for each vertex, the queue whose stages it runs, or ""
	aside  []bool         // for each vertex, whether it only emits rows of side inputs
	rate   rate
	steps  []rate    // rate of supersteps of each queue
	news   []jobNews // states and plans that are not yet reported
}

// startWatch begins to report the progress of a run of plan p. If the user's function panics,
// the watch calls cancel to end the run.
func startWatch(p *plan.Plan, c *config, cancel context.CancelCauseFunc) *watch {
	w := newWatch(p.Job, c, cancel)
	w.planned(p)
	return w
}

// newWatch is like startWatch, for a job whose plan is not known yet.
func newWatch(job string, c *config, cancel context.CancelCauseFunc) *watch {
	if c.onProgress == nil {
		return nil
	}
	w := &watch{
		tell:     c.onProgress,
		tellPlan: c.cluster.hooks.planned,
		cancel:   cancel,
		start:    time.Now(),
		ends:     make(chan struct{}, 1),
		quit:     make(chan struct{}),
		gone:     make(chan struct{}),
		state:    Progress{Job: job},
		queues:   map[string]int{},
	}
	go w.loop()
	return w
}

// planned adds the vertices and queues of the run's plan to the state.
func (w *watch) planned(p *plan.Plan) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Queues, w.state.Vertices, w.aside, w.of = nil, nil, nil, nil // of a plan at another parallelism
	for i, q := range p.Queues {
		w.queues[q.Name] = i
		w.state.Queues = append(w.state.Queues, QueueProgress{Name: q.Name, Max: q.MaxSupersteps})
	}
	w.steps = make([]rate, len(p.Queues))
	fed, main, side := map[plan.VertexID]bool{}, map[plan.VertexID]bool{}, map[plan.VertexID]bool{}
	for _, e := range p.Edges {
		fed[e.To] = true
		main[e.From] = main[e.From] || e.Role != plan.Side
		side[e.From] = side[e.From] || e.Role == plan.Side
	}
	for _, v := range p.Vertices {
		w.aside = append(w.aside, len(v.Chain) == 1 && side[v.ID] && !main[v.ID])
		w.of = append(w.of, v.Queue)
		w.state.Vertices = append(w.state.Vertices, VertexProgress{Name: v.Name, Source: !fed[v.ID], Shards: p.Shards})
	}
}

// loop reports the state at intervals, and a last time when quit is closed. It makes all calls of
// the user's function, and so handles a failure of it in one place.
func (w *watch) loop() {
	returned := false
	defer close(w.gone)
	defer func() {
		if !returned {
			w.err = fmt.Errorf("OnProgress: %w", escaped(recover()))
			w.cancel(w.err)
		}
	}()
	tick := time.NewTicker(ProgressInterval)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-w.quit:
			last = true
		case <-w.ends:
		case <-tick.C:
		}
		for n, ok := w.nextNews(); ok; n, ok = w.nextNews() {
			if n.plan == nil {
				w.tell(w.snapshot())
			} else if w.tellPlan != nil {
				w.tellPlan(n.plan)
			}
		}
		if last {
			w.finish()
		}
		// As long as nothing is known, nothing is shown: the user may be answering a question.
		if p := w.snapshot(); p.Done || p.State != "" || len(p.Vertices) > 0 {
			w.tell(p)
		}
	}
	returned = true
}

// snapshot updates the times and rates of the state, and returns a copy of it.
func (w *watch) snapshot() Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Elapsed = time.Since(w.start)
	w.state.Rows = 0
	for i, v := range w.state.Vertices {
		if v.Source && !w.aside[i] {
			w.state.Rows += v.Rows
		}
	}
	if w.state.RowsPerSecond = w.rate.at(w.state.Elapsed, w.state.Rows); w.state.Done {
		// At the end the recent rate is of no interest, so the rate of the whole run is reported.
		w.state.RowsPerSecond = float64(w.state.Rows) / max(w.state.Elapsed.Seconds(), 1e-9)
	}
	for i := range w.state.Queues {
		q := &w.state.Queues[i]
		if q.PerSecond, q.Left = w.steps[i].at(w.state.Elapsed, int64(q.Superstep)), 0; q.Ended {
			q.PerSecond = 0
		}
		if q.PerSecond > 0 && q.Max > 0 {
			q.Left = time.Duration(float64(q.Max-q.Superstep) / q.PerSecond * float64(time.Second))
		}
	}
	return w.state.clone()
}

// event handles one event of the run. As it is called from several goroutines and in any order, a
// count may be older than the known count. The larger count is always the newer one.
func (w *watch) event(e task.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Queue == "" {
		if v := int(e.Vertex); v >= 0 && v < len(w.state.Vertices) {
			at := &w.state.Vertices[v]
			at.Rows = max(at.Rows, e.Rows)
			at.ShardsDone = max(at.ShardsDone, e.ShardsDone)
			// If a criterion ended the queue before the maximum, this is known only once all
			// subtasks have emitted the rows of the queue.
			if i, known := w.queues[w.of[v]]; known && at.ShardsDone == at.Shards {
				w.end(&w.state.Queues[i])
			}
		}
		return
	}
	i, known := w.queues[e.Queue]
	if !known || e.Step < w.state.Queues[i].Superstep {
		return
	}
	q := &w.state.Queues[i]
	q.Superstep = e.Step
	q.Values = append(q.Values[:0], e.Values...)
	if q.Max > 0 && q.Superstep >= q.Max {
		w.end(q)
	}
}

// end marks a queue as ended and makes loop report this at once.
func (w *watch) end(q *QueueProgress) {
	if q.Ended {
		return
	}
	q.Ended = true
	w.reportNow()
}

// reportNow makes loop report the state at once.
func (w *watch) reportNow() {
	select {
	case w.ends <- struct{}{}:
	default:
	}
}

// stop reports the outcome of the run in the last call of the user's function, and waits for it.
// report may be nil. stop returns the error of this or an earlier call.
func (w *watch) stop(report *task.Report, err error) error {
	if w == nil {
		return nil
	}
	w.report, w.outcome = report, err
	close(w.quit)
	<-w.gone
	return w.err
}

// finish makes the outcome part of the state.
func (w *watch) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Done, w.state.Err = true, w.outcome
	if w.report == nil {
		return
	}
	for i, r := range w.report.Vertices {
		// A cluster reports rows at intervals, and not at the end, so counts may be too low.
		if i < len(w.state.Vertices) {
			at := &w.state.Vertices[i]
			at.Rows = max(at.Rows, rowsOf(r, at.Source))
		}
	}
	for _, r := range w.report.Queues {
		if i, known := w.queues[r.Name]; known {
			q := &w.state.Queues[i]
			q.Superstep, q.Ended = r.Supersteps, true
			q.Values = lastValues(q.Values[:0], r)
		}
	}
}

// lastValues appends the values that a queue reported in its last superstep. They are taken from
// the report, as the event with these values may come after the end of the queue, or not at all.
func lastValues(values []Value, r task.QueueReport) []Value {
	for _, s := range r.Series {
		if n := len(s.Values); n > 0 && n == r.Supersteps && !math.IsNaN(s.Values[n-1]) {
			values = append(values, Value{Name: s.Name, Value: s.Values[n-1]})
		}
	}
	return values
}

// rowsOf returns the number of rows that a vertex has received or, for a source, produced.
func rowsOf(v task.VertexReport, source bool) int64 {
	var rows int64
	for _, s := range v.Subtasks {
		if !source {
			rows += s.RowsIn
		} else if len(s.Operators) > 0 {
			rows += s.Operators[0].RowsOut
		}
	}
	return rows
}

// rate estimates the number of rows or supersteps per second over about the last second.
type rate struct {
	times [10]time.Duration
	rows  [10]int64
	n     int // samples taken
}

// at records a sample and returns the rate since the oldest sample that is kept.
func (r *rate) at(elapsed time.Duration, rows int64) float64 {
	slot := r.n % len(r.times)
	oldTime, oldRows := time.Duration(0), int64(0) // the beginning of the run
	if r.n >= len(r.times) {
		oldTime, oldRows = r.times[slot], r.rows[slot]
	}
	r.times[slot], r.rows[slot] = elapsed, rows
	r.n++
	if elapsed <= oldTime {
		return 0
	}
	return float64(rows-oldRows) / (elapsed - oldTime).Seconds()
}
