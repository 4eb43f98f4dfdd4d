package engine

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestPlanOfTheAttempt requires that a client has the plan at the parallelism of the current attempt,
// also if the job manager has sent the plan of another attempt.
func TestPlanOfTheAttempt(t *testing.T) {
	c, err := newConfig([]Option{Parallelism(4)})
	require.NoError(t, err)
	made, err := prepare(squares, squaresArgs{N: 4}, c)
	require.NoError(t, err)
	defer made.store.release()
	sent, err := made.plan.JSON()
	require.NoError(t, err)
	r := &clusterRun{c: c, graph: made.graph, store: newResultStore(1 << 20)}
	for attempt, parallelism := range []int{4, 2, 8} {
		require.NoError(t, r.state(&wire.JobInfo{State: wire.JobRunning, Attempt: attempt + 1, Parallelism: parallelism, Plan: sent}))
		require.Equal(t, parallelism, r.plan.Parallelism)
	}
}

// TestUncopiedIsLogged requires that the progress of a worker has the queues whose states are not copied, and that
// the client logs a warning for each of them once.
func TestUncopiedIsLogged(t *testing.T) {
	w := newWorkerProgress(&plan.Plan{}, false, nil)
	w.uncopied("q", errors.New("no codec"))
	p := w.take(false)
	require.NotNil(t, p)
	require.Nil(t, w.take(false))

	var logged bytes.Buffer
	c, err := newConfig([]Option{Logger(hclog.New(&hclog.LoggerOptions{Output: &logged, DisableTime: true}))})
	require.NoError(t, err)
	r := &clusterRun{c: c}
	for range 2 {
		require.NoError(t, r.event(&wire.Event{Progress: p}))
	}
	require.Equal(t, "[WARN]  the state of queue \"q\" is not copied, so another attempt would begin it at superstep 1: no codec\n", logged.String())
}
