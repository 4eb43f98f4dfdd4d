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

// Progress says how a run stands.
type Progress struct {
	Job     string
	Elapsed time.Duration
	// JobID is the job's name on a cluster, "" before it has one and in this process.
	JobID string
	// State is where the job is in its life on a cluster: "uploading" its executable,
	// "resolving", "waiting", "deploying", "running", "committing" and so on; "" in this
	// process. Detail says more, such as what the job waits for.
	State, Detail string
	// Done is set in the last call. There, Err is set if the run failed.
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

// VertexProgress says how a vertex stands.
type VertexProgress struct {
	Name string
	// Source says that the vertex produces its rows rather than taking them.
	Source bool
	// Rows is the number of rows that it has taken or, as a source, produced, over all
	// subtasks.
	Rows int64
	// ShardsDone of the Shards have ended.
	ShardsDone, Shards int
}

// QueueProgress says how a queue stands.
type QueueProgress struct {
	Name      string
	Superstep int // done so far
	Max       int // 0 where only the criterion ends the loop
	// Ended says that no superstep will follow.
	Ended bool
	// Values are those reported in the last superstep, such as an inertia.
	Values []Value
	// PerSecond is the recent number of supersteps per second. Left is the time that the rest
	// up to Max takes at that rate, unless the criterion ends the loop before. Both are 0 if
	// unknown.
	PerSecond float64
	Left      time.Duration
}

// Value is a named number that a queue reported.
type Value = task.Value

// clone returns a copy that shares nothing that changes.
func (p *Progress) clone() Progress {
	c := *p
	c.Vertices = slices.Clone(p.Vertices)
	c.Queues = slices.Clone(p.Queues)
	for i := range c.Queues {
		c.Queues[i].Values = slices.Clone(c.Queues[i].Values)
	}
	return c
}

// watch gathers the events of a run and reports them to the user's function, from one goroutine
// and no more often than needed. A nil watch does nothing.
type watch struct {
	tell func(Progress)
	// tellPlan, if not nil, is called with the plan that a cluster made.
	tellPlan func(*plan.Plan)
	cancel   context.CancelCauseFunc // ends the run where tell fails
	start    time.Time
	// ends signals that a queue ended or that there are news. Its buffer of one is enough.
	ends chan struct{}
	quit chan struct{}
	gone chan struct{}
	// The outcome of the run, set before quit is closed.
	report  *task.Report
	outcome error
	err     error // why tell is not called any more; read it once gone is closed

	mu     sync.Mutex
	state  Progress
	queues map[string]int // position in state.Queues
	of     []string       // by vertex, the queue whose stages it runs
	aside  []bool         // by vertex: a source whose rows are side inputs alone
	rate   rate
	steps  []rate    // by queue
	news   []jobNews // states not reported yet
}

// startWatch begins to report the progress of a plan's run. If the user's function panics, it
// ends the run by cancel.
func startWatch(p *plan.Plan, c *config, cancel context.CancelCauseFunc) *watch {
	w := newWatch(p.Job, c, cancel)
	w.planned(p)
	return w
}

// newWatch is startWatch for a job whose plan is not known yet.
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

// planned takes the plan of the run.
func (w *watch) planned(p *plan.Plan) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
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

// loop reports the state at intervals, and a last time at stop. All calls of the user's
// function come from here, so that one place handles its failure.
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
		// While nothing is known yet, the user may be answering a question.
		if p := w.snapshot(); p.Done || p.State != "" || len(p.Vertices) > 0 {
			w.tell(p)
		}
	}
	returned = true
}

// snapshot returns the state as of now.
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
		// At the end the recent rate says nothing, so report the rate of the whole run.
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

// event takes one event of the run. It is called from several goroutines and in any order, so a
// count may be older than the one known: the larger one is right.
func (w *watch) event(e task.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Queue == "" {
		if v := int(e.Vertex); v >= 0 && v < len(w.state.Vertices) {
			at := &w.state.Vertices[v]
			at.Rows = max(at.Rows, e.Rows)
			at.ShardsDone = max(at.ShardsDone, e.ShardsDone)
			// Once all subtasks have emitted the rows of a queue, its last superstep
			// is known too; a criterion may have ended it before the maximum.
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

// end marks a queue as ended and has it reported at once.
func (w *watch) end(q *QueueProgress) {
	if q.Ended {
		return
	}
	q.Ended = true
	w.reportNow()
}

// reportNow has the state reported at once.
func (w *watch) reportNow() {
	select {
	case w.ends <- struct{}{}:
	default:
	}
}

// stop reports the outcome of the run, after everything else, and waits for the call to return.
// report may be nil. stop returns the error of the user's function, now or earlier.
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
		// A cluster reports rows now and then only, and not at the end.
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

// lastValues returns what a queue reported in its last superstep. The event with these values
// may come after that of the end, or not at all.
func lastValues(values []Value, r task.QueueReport) []Value {
	for _, s := range r.Series {
		if n := len(s.Values); n > 0 && n == r.Supersteps && !math.IsNaN(s.Values[n-1]) {
			values = append(values, Value{Name: s.Name, Value: s.Values[n-1]})
		}
	}
	return values
}

// rowsOf returns how many rows a vertex has taken or, as a source, produced.
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

// rate estimates rows per second over the last second or so.
type rate struct {
	times [10]time.Duration
	rows  [10]int64
	n     int // samples taken
}

// at takes a sample and returns the rate since the oldest one kept.
func (r *rate) at(elapsed time.Duration, rows int64) float64 {
	slot := r.n % len(r.times)
	oldTime, oldRows := time.Duration(0), int64(0) // the run began with nothing
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
