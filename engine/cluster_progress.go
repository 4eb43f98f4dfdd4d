package engine

import (
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// jobNews is a state that a job on a cluster has come to, or the plan that its job
// manager made.
type jobNews struct {
	state, detail string
	plan          *plan.Plan
}

// nextNews takes the oldest news that were not told, and makes a state the one to
// tell: none is left out, however short it was.
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

// submitted takes the job's name on its cluster.
func (w *watch) submitted(id string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.JobID = id
}

// enter takes a state of a job on a cluster, and has it told soon. More detail of a
// state that is still to be told takes the place of the former.
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
	if state != uploadingState || w.state.State != state { // whose news come with every piece
		w.nudge()
	}
}

// made takes the plan that a cluster made, and has it told.
func (w *watch) made(p *plan.Plan) {
	if w == nil {
		return
	}
	w.planned(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news = append(w.news, jobNews{plan: p})
	w.nudge()
}

// cluster takes the progress of a job on a cluster. Counts may come late, as in event.
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
