package jobmanager

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Savepoint makes a checkpoint of a running job, and copies it to a place of its own. It returns when
// the copy is complete. If ctx ends before, the savepoint may still be made.
func (m *Manager) Savepoint(ctx context.Context, req *wire.SavepointRequest) (*wire.SavepointReply, error) {
	if err := wire.CheckPlace(req.Place); err != nil {
		return nil, wire.Error(codes.InvalidArgument, "%v", err)
	}
	info, _, err := m.find(req.Job)
	if err != nil {
		return nil, err
	}
	answer := make(chan wire.Saved, 1)
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, errStops
	}
	m.saveRequests++
	number := m.saveRequests
	m.saving[number] = answer
	m.decide(core.SaveAsked{ID: info.ID, Request: number, Place: req.Place})
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.saving, number)
		m.mu.Unlock()
	}()
	select {
	case saved := <-answer:
		if saved.Failure != "" {
			return nil, wire.Error(codes.FailedPrecondition, "there is no savepoint of job %s: %s", info.ID, saved.Failure)
		}
		m.log.Info("a savepoint was made", "job", info.ID, "from", from(ctx), "place", req.Place)
		return &wire.SavepointReply{Job: info.ID, Checkpoint: saved.Checkpoint}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.ctx.Done():
		return nil, errStops
	}
}

// answerSave passes an answer on to the request that waits for it. The caller holds mu.
func (m *Manager) answerSave(e core.SaveAnswered) {
	if answer := m.saving[e.Request]; answer != nil {
		answer <- e.Saved // has room for the only answer
		delete(m.saving, e.Request)
	}
}

// Drain cordons the task managers of a name, and makes the jobs there leave them. It returns when that
// is on disk and the jobs have begun to leave.
func (m *Manager) Drain(ctx context.Context, req *wire.DrainRequest) (*wire.DrainReply, error) {
	if req.Within < 0 {
		return nil, wire.Error(codes.InvalidArgument, "the time limit %v of a drain is negative", req.Within)
	}
	if err := checkReason(req.Reason); err != nil {
		return nil, err
	}
	cordoned, err := m.changeCordon(ctx, req.TaskManager, func() *wire.Cordon {
		next := m.core.NextDrain(req.TaskManager, req.Reason, req.Within, m.config.Now())
		return &next
	})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &wire.DrainReply{CordonReply: *cordoned}
	reply.Leave, reply.Stay = m.core.Leaving(req.TaskManager)
	m.decide(core.Drained{TaskManager: req.TaskManager})
	m.log.Info("a task manager is drained", "from", from(ctx), "task manager", req.TaskManager, "jobs that leave", len(reply.Leave), "jobs that stay", len(reply.Stay))
	return reply, nil
}
