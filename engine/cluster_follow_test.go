package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

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
