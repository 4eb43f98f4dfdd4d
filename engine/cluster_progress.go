package engine

import (
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// jobNews is a new state of a job on a cluster, or the plan that its job manager made.
type jobNews struct {
	state, detail string
	plan          *plan.Plan
}

// nextNews removes and returns the oldest news that was not yet reported to the user's function.
// If it is a state, that becomes the current state. No state is left out, however short it was.
func (w *watch) nextNews() (n jobNews, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.news) == 0 {
		return jobNews{}, false
	}
	n, w.news = w.news[0], w.news[1:]
	if n.plan == nil {
		w.state.State, w.state.Detail = n.state, n.detail
	}
	return n, true
}

// submitted records the job's name on its cluster.
func (w *watch) submitted(id string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.JobID = id
}

// enter records a state of a job on a cluster, which is reported soon. If the state was recorded
// before and is not yet reported, the new detail replaces the old one.
func (w *watch) enter(state, detail string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.news); n > 0 && w.news[n-1].plan == nil && w.news[n-1].state == state {
		w.news[n-1].detail = detail
		return
	}
	w.news = append(w.news, jobNews{state: state, detail: detail})
	if state != uploadingState || w.state.State != state { // there is news for every uploaded piece
		w.reportNow()
	}
}

// again resets all counts, because the job begins again with another attempt.
func (w *watch) again() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.state.Vertices {
		w.state.Vertices[i].Rows, w.state.Vertices[i].ShardsDone = 0, 0
	}
	for i, q := range w.state.Queues {
		w.state.Queues[i] = QueueProgress{Name: q.Name, Max: q.Max}
		w.steps[i] = rate{}
	}
	w.rate = rate{}
}

// made records the plan that a cluster has made, which is reported soon.
func (w *watch) made(p *plan.Plan) {
	if w == nil {
		return
	}
	w.planned(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news = append(w.news, jobNews{plan: p})
	w.reportNow()
}

// cluster merges the progress of a job on a cluster into the state. Counts may be older than
// the known counts, as in event.
func (w *watch) cluster(p *wire.Progress) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range min(len(p.Vertices), len(w.state.Vertices)) {
		at := &w.state.Vertices[i]
		at.Rows = max(at.Rows, p.Vertices[i].Rows)
		at.ShardsDone = min(max(at.ShardsDone, p.Vertices[i].ShardsDone), at.Shards)
	}
	for i := range min(len(p.Queues), len(w.state.Queues)) {
		q, from := &w.state.Queues[i], &p.Queues[i]
		if from.Superstep < q.Superstep {
			continue
		}
		q.Superstep = from.Superstep
		q.Values = q.Values[:0]
		for _, v := range from.Values {
			q.Values = append(q.Values, Value{Name: v.Name, Value: v.Value})
		}
		if from.Ended {
			w.end(q)
		}
	}
}
