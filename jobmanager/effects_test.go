package jobmanager

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// TestEndsOfWorkers requires that a worker of the attempt that has finished a job is not killed before the
// end of the job is on disk, as it has the receipts until then, and that a worker of an earlier attempt is
// killed at once. The latter takes slots that other jobs have been given.
func TestEndsOfWorkers(t *testing.T) {
	const id = "job"
	c := &conn{wake: make(chan struct{}, 1)}
	j := &job{final: &wire.JobInfo{ID: id, State: wire.JobFinished, Attempt: 2}, kept: make(chan struct{})}
	m := &Manager{conns: map[int]*conn{1: c}, jobs: map[wire.JobID]*job{id: j}}
	kill := func(attempt int) []wire.WorkerRef {
		m.send(core.Send{Conn: 1, Message: wire.ToTaskManager{Worker: &wire.WorkerCommand{
			WorkerRef: wire.WorkerRef{Job: id, Attempt: attempt}, Kill: &wire.Kill{},
		}}})
		var sent []wire.WorkerRef
		queue, _ := c.take()
		for _, out := range queue {
			sent = append(sent, out.message.Worker.WorkerRef)
		}
		return sent
	}
	require.Empty(t, kill(2))
	require.Equal(t, []wire.WorkerRef{{Job: id, Attempt: 1}}, kill(1))
	close(j.kept)
	require.Equal(t, []wire.WorkerRef{{Job: id, Attempt: 2}}, kill(2))
}
