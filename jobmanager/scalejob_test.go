package jobmanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestScaleOfOneSubtask requires that a job all of whose operators run on one subtask is not scaled, also
// if it was submitted with one.
func TestScaleOfOneSubtask(t *testing.T) {
	t.Parallel()
	m := start(t)
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 1)
	g, err := plan.DecodeGraph(spec.Graph)
	require.NoError(t, err)
	for i := range g.Nodes {
		g.Nodes[i].Single = true
	}
	spec.Graph, err = g.JSON()
	require.NoError(t, err)
	id := submit(t, c, spec)
	_, err = c.Scale(bounded(t), &wire.ScaleRequest{Job: id, Parallelism: wire.Parallelism{Min: 4, Max: 4}})
	require.ErrorContains(t, err, "the job's plan needs 1 slot at any parallelism")
}

// TestScale scales a job that waits, starts the job manager again, and lets the job run. Followers must
// get the plan at the parallelism of the attempt. What cannot be is refused.
func TestScale(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	id := submit(t, c, specOf(t, 2))
	scale := func(least, most int) (*wire.ScaleReply, error) {
		return c.Scale(bounded(t), &wire.ScaleRequest{Job: id, Parallelism: wire.Parallelism{Min: least, Max: most}})
	}
	for want, to := range map[string]wire.Parallelism{
		"want a number from 1, or a range such as 2:8": {Min: 3, Max: 2},
		"above the number of shards":                   {Min: 1, Max: 1 << 20},
	} {
		_, err := scale(to.Min, to.Max)
		require.Equal(t, codes.FailedPrecondition, wire.Code(err))
		require.ErrorContains(t, err, want)
	}
	_, err := c.Scale(bounded(t), &wire.ScaleRequest{Job: "none", Parallelism: wire.Parallelism{Min: 1, Max: 1}})
	require.Equal(t, codes.NotFound, wire.Code(err))
	reply, err := scale(1, 4)
	require.NoError(t, err)
	require.Equal(t, wire.Parallelism{Min: 1, Max: 4}, reply.Job.Allowed)
	require.NoError(t, m.Close())

	m = start(t, func(c *Config) { c.Dir = dir })
	c = dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 3))
	d := tm.run()
	require.Equal(t, 3, d.Spec.Parallelism)
	require.Equal(t, []wire.SlotRange{{Lo: 0, Hi: 3}}, d.Slots)
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, 3, info.Parallelism)
	p, err := plan.DecodePlan(info.Plan)
	require.NoError(t, err)
	require.Equal(t, 3, p.Parallelism, "the plan must be that of the attempt")
	tm.succeed(d.WorkerRef, "")
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
	_, err = scale(1, 2)
	require.ErrorContains(t, err, "the job is finished")
}
