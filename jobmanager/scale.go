package jobmanager

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Scale sets with how many subtasks a job may run. It returns when that is on disk. A job that runs
// with another number changes later, as soon as its state is saved and it can have the slots.
func (m *Manager) Scale(ctx context.Context, req *wire.ScaleRequest) (*wire.ScaleReply, error) {
	info, j, err := m.find(req.Job)
	if err != nil {
		return nil, err
	}
	refused := func(why error) (*wire.ScaleReply, error) {
		return nil, wire.Error(codes.FailedPrecondition, "job %s cannot be scaled: %v", info.ID, why)
	}
	m.mu.Lock()
	graph := m.core.Graph(info.ID)
	m.mu.Unlock()
	if j != nil && graph != nil {
		if err := scalable(&j.spec, graph, req.Parallelism); err != nil {
			return refused(err)
		}
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, errStops
	}
	if err := m.core.CanScale(info.ID, req.Parallelism); err != nil {
		m.mu.Unlock()
		return refused(err)
	}
	m.decide(core.Scaled{ID: info.ID, Allowed: req.Parallelism})
	info, _ = m.core.Job(info.ID)
	recorded := make(chan struct{})
	m.recorder.put(entry{kept: func() { close(recorded) }}) // after the record of the job
	m.mu.Unlock()
	m.log.Info("a job is scaled", "job", info.ID, "from", from(ctx), "parallelism", req.Parallelism.String())
	select {
	case <-recorded:
		return &wire.ScaleReply{Job: *withoutPlan(info)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.ctx.Done():
		return nil, errStops
	}
}

// scalable returns why the job with the given graph cannot run with the given numbers of subtasks, or
// nil.
func scalable(s *wire.JobSpec, graph []byte, to wire.Parallelism) error {
	g, err := plan.DecodeGraph(graph)
	if err != nil {
		return err
	}
	if n := plan.OneParallelism(g.Nodes); n != nil && to != s.Allowed() {
		return fmt.Errorf("%s binds it to one parallelism", n.Title())
	}
	if to.Min < 1 || to.Max < to.Min {
		return nil // the core says so
	}
	slots, _, err := compile(s, graph, to)
	if err == nil && slots < to.Max {
		err = fmt.Errorf("the job's plan needs %s at any parallelism", humanize.Count(slots, "slot"))
	}
	return err
}

// planAnew replaces the plan of a job whose attempt has another parallelism than the plan on record.
// The caller holds mu.
func (m *Manager) planAnew(j *job, e *core.Persist) {
	at := wire.Parallelism{Min: e.Job.Parallelism, Max: e.Job.Parallelism}
	_, planned, err := compile(&j.spec, e.Graph, at)
	if err != nil { // cannot be, as it has been compiled at another parallelism
		m.log.Error("the plan on record is of another parallelism than the job", "job", j.id, "parallelism", at.Max, "error", err)
		return
	}
	j.plan = planned
}
