package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestOverlaps requires that attempts of a job may overlap only if all its sinks allow it.
func TestOverlaps(t *testing.T) {
	c, err := newConfig(nil)
	require.NoError(t, err)
	b := newBuilder("j", c, resolving())
	require.Zero(t, b.Attempt())
	c.attempt = attemptOf(&wire.Deployment{WorkerRef: wire.WorkerRef{Job: "j-1", Attempt: 3}})
	require.Equal(t, Attempt{Job: "j-1", Number: 3}, b.Attempt())
	rows := numbers(b, 3)
	require.True(t, b.overlaps())
	Collect(rows, "rows")
	require.True(t, b.overlaps(), "the job manager keeps the rows of one attempt")
	write := Spec{Op: "Write", Inputs: []Port{{From: rows}}, Operator: func() Operator { return swallower{} }, Sink: unremovableSink{}}
	write.AtClient = true
	b.Add(write)
	require.False(t, b.overlaps(), "this process writes the output")
	b.store.stream = &rowSender{}
	require.True(t, b.overlaps(), "the client writes the output")
	write.AtClient = false
	b.Add(write)
	require.False(t, b.overlaps(), "the sink does not know attempts")
}
