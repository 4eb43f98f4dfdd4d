package jobmanager

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestFollowerOfACutFile truncates the file with a job's events while the job runs and a client
// follows it. The client must get the error that rows are lost, and not the final state of the
// job.
func TestFollowerOfACutFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(collected("first")))
	require.NoError(t, s.Send(collected("second")))
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	m.mu.Lock()
	spool := m.jobs[id].spool
	m.mu.Unlock()
	spool.advance(&wire.Progress{}) // followers get progress after all events before it

	up, done := make(chan struct{}), make(chan error, 1)
	pieces, told, finished := 0, false, false
	ctx := bounded(t)
	go func() {
		done <- m.Watch(ctx, &wire.FollowRequest{Job: id}, func(e *wire.Event) error {
			switch {
			case e.Collected != nil:
				if pieces++; pieces == 1 {
					return os.Truncate(dir+"/"+spoolName(id), spool.view().size-5)
				}
			case e.Progress != nil && !told:
				told = true
				close(up)
			case e.State != nil:
				finished = e.State.State == wire.JobFinished
			}
			return nil
		})
	}()
	select {
	case <-up:
	case err := <-done:
		t.Fatal(err)
	}
	tm.succeed(d.WorkerRef, "o")
	err = <-done
	require.Equal(t, 1, pieces)
	require.False(t, finished)
	require.Equal(t, codes.DataLoss, wire.Code(err))
	require.ErrorContains(t, err, "has lost some of what job")
}
