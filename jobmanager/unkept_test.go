package jobmanager

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestRequiredCheckpoints requires that a job whose queues must be able to continue is refused if its
// graph shows that one cannot, or if its settings save no state.
func TestRequiredCheckpoints(t *testing.T) {
	after := func(from plan.NodeID) []plan.Input { return []plan.Input{{From: from, Role: plan.Control}} }
	g := &plan.Graph{Job: "j", Shards: 8, Queues: []plan.Queue{{Name: "train", MaxSupersteps: 3}}, Nodes: []plan.Node{
		{ID: 0, Op: "QueueInit", Queue: "train", Stage: plan.QueueInit},
		{ID: 1, Op: "Compute", Name: "step", Queue: "train", Stage: plan.Compute, Unkept: true, Inputs: after(0)},
		{ID: 2, Op: "QueueClose", Queue: "train", Stage: plan.QueueClose, Inputs: after(1), Schema: []plan.Column{{Name: "x", Type: "float64"}}},
	}}
	data, err := g.JSON()
	require.NoError(t, err)
	s := &wire.JobSpec{Name: "j", Shards: 8, Parallelism: 2}
	_, planned, err := compile(s, data, s.Allowed())
	require.NoError(t, err)
	p, err := plan.DecodePlan(planned)
	require.NoError(t, err)
	require.Equal(t, plan.FromTheBeginning, p.Resumption[0].Resumes)
	s.Run.RequireCheckpoints = true
	_, _, err = compile(s, data, s.Allowed())
	require.ErrorContains(t, err, `--checkpoint require: queue "train" would begin at superstep 1 again: the instances of Compute "step"`)

	m := &Manager{}
	spec := wire.JobSpec{Name: "j", Shards: 8, Parallelism: 2, Version: wire.Version, Run: wire.RunOptions{IfExists: "fail", RequireCheckpoints: true}}
	for _, test := range []struct {
		name        string
		copies      int
		checkpoints *wire.Checkpoints
		refused     bool
	}{
		{"one copy", 0, nil, false},
		{"no copy", wire.NoCopies, nil, true},
		{"a savepoint to begin from", wire.NoCopies, &wire.Checkpoints{Savepoint: "/saved"}, true},
		{"a directory", wire.NoCopies, &wire.Checkpoints{Dir: "/shared"}, false},
	} {
		spec.Run.Copies, spec.Run.Checkpoints = test.copies, test.checkpoints
		err := m.acceptable(&spec)
		if test.refused {
			require.ErrorContains(t, err, "no state is saved that a queue could continue from", test.name)
		} else if err != nil {
			require.NotContains(t, err.Error(), "no state is saved", test.name)
		}
	}
}
