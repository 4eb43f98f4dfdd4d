package jobmanager

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Deliver receives from a worker the rows and text for the job's client, and the worker's log
// lines.
func (m *Manager) Deliver(stream wire.ClientStream[wire.Delivery, wire.Delivered]) error {
	var j *job
	ctx := stream.Context()
	first := make(chan struct{})
	result := make(chan error, 1)
	m.handled.Go(func() {
		d, err := stream.Recv()
		if err != nil {
			result <- err
			return
		}
		var ref wire.WorkerRef
		if j, ref, err = m.deliverer(d); err != nil {
			result <- err
			return
		}
		close(first)
		if err = m.awaitFollowers(ctx); err == nil {
			err = m.takeIn(j, ref, stream)
		}
		result <- err
	})
	select {
	case <-first:
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return wire.Error(codes.Unavailable, "the job manager stops")
	}
	select {
	case err := <-result:
		return err
	case <-j.over:
		return wire.Error(codes.FailedPrecondition, "job %s has ended", j.id)
	case <-m.ctx.Done():
		return wire.Error(codes.Unavailable, "the job manager stops")
	}
}

// deliverer returns the job of a worker that begins to deliver. It returns an error for workers
// of former attempts.
func (m *Manager) deliverer(d *wire.Delivery) (*job, wire.WorkerRef, error) {
	if d.Worker == nil {
		return nil, wire.WorkerRef{}, wire.Error(codes.InvalidArgument, "a delivery must begin by naming its worker")
	}
	ref := *d.Worker
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[ref.Job]
	info, ok := m.core.Job(ref.Job)
	switch {
	case !ok || j == nil:
		return nil, ref, wire.Error(codes.NotFound, "there is no job %.100q that runs", string(ref.Job))
	case info.Attempt != ref.Attempt || ref.Worker < 0 || ref.Worker >= max(1, len(info.Workers)):
		return nil, ref, wire.Error(codes.FailedPrecondition, "worker %d of attempt %d is not one of job %s, which is in attempt %d with %d workers",
			ref.Worker, ref.Attempt, ref.Job, info.Attempt, len(info.Workers))
	}
	return j, ref, nil
}

// awaitFollowers waits until all earlier state changes have been sent to the followers. So
// followers get the state "running" of a job before they get its rows.
func (m *Manager) awaitFollowers(ctx context.Context) error {
	done := make(chan struct{})
	m.recorder.put(entry{then: func(error) { close(done) }})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return wire.Error(codes.Unavailable, "the job manager stops")
	}
}

// takeIn stores everything that a worker delivers until the end of its stream, and then confirms
// it. If rows or text cannot be stored, the job fails, because its result would be incomplete; if
// log lines cannot be stored, the job continues.
func (m *Manager) takeIn(j *job, ref wire.WorkerRef, stream wire.ClientStream[wire.Delivery, wire.Delivered]) error {
	rows := false
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) && rows {
			if err := m.confirm(stream.Context(), j); err != nil {
				return m.cannotKeep(ref, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&wire.Delivered{})
		}
		if err != nil {
			return err
		}
		switch {
		case len(d.Log) > 0:
			if err := j.logs.write(ref.Worker, d.Log); err != nil && !errors.Is(err, errSealed) {
				m.log.Warn("lines of a worker's log are lost", "worker", ref, "error", err)
			}
			continue
		case d.Collected == nil && d.Output == nil:
			continue
		}
		rows = true
		switch err := j.spool.appendOf(ref.Attempt, &wire.Event{Time: m.config.Now(), Collected: d.Collected, Output: d.Output}); {
		case err == nil:
		case errors.Is(err, errSealed):
			return wire.Error(codes.FailedPrecondition, "job %s has ended", j.id)
		case errors.Is(err, errFormer):
			return wire.Error(codes.FailedPrecondition, "attempt %d of job %s was lost", ref.Attempt, j.id)
		case errors.Is(err, errOverLimit):
			m.failWorker(ref, &wire.Failure{Kind: wire.UserFailure, Message: err.Error(), ExitCode: -1})
			return wire.Error(codes.ResourceExhausted, "%v", err)
		default:
			return m.cannotKeep(ref, err)
		}
	}
}

// cannotKeep fails a job because rows or text cannot be stored, and returns the error for the
// worker. If the job manager stops or the stream has broken, the worker only gets the error, and
// knows that its rows may be lost.
func (m *Manager) cannotKeep(ref wire.WorkerRef, err error) error {
	if code := wire.Code(err); code == codes.Unavailable || code == codes.Canceled || errors.Is(err, context.Canceled) {
		return err
	}
	m.failWorker(ref, &wire.Failure{Kind: wire.ClusterFailure, Message: "the job manager cannot keep the results: " + err.Error(), ExitCode: -1})
	return wire.Error(codes.ResourceExhausted, "the job manager cannot keep the results: %v", err)
}

// failWorker reports to the core that a worker has failed, for a reason that the worker's task
// manager does not know, and sends the worker a command to stop.
func (m *Manager) failWorker(ref wire.WorkerRef, f *wire.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	host := m.hostOf(ref)
	for id, c := range m.conns {
		if host == "" || c.peer().ID != host {
			continue
		}
		// The core accepts reports only on the connection on which the task manager is
		// registered.
		m.decide(core.Reported{Conn: id, WorkerEvent: wire.WorkerEvent{WorkerRef: ref, Failed: f}})
		// The core expects that a failed worker ends by itself. This worker does not know that
		// it has failed, so it gets a command to stop.
		c.push(outgoing{message: wire.ToTaskManager{Worker: &wire.WorkerCommand{WorkerRef: ref, Cancel: &wire.Cancel{Reason: f.Message}}}})
	}
}

// hostOf returns the ID of the task manager on which a worker runs. The caller holds mu.
func (m *Manager) hostOf(ref wire.WorkerRef) string {
	for _, node := range m.core.TaskManagers(m.clock()) {
		if slices.Contains(node.Workers, ref) {
			return node.ID
		}
	}
	return ""
}
