//go:build unix

package taskmanager

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestWholeLife(t *testing.T) {
	b := launched(t)
	b.deploy(t, "obey 5")
	b.ready(t)
	b.command(t, wire.WorkerCommand{Prepare: &wire.Prepare{}})
	b.event(t, "prepared", func(e *wire.WorkerEvent) bool { return e.Prepared != nil })
	b.command(t, wire.WorkerCommand{Prepare: &wire.Prepare{}}) // repeated, as happens after a broken connection
	b.command(t, wire.WorkerCommand{Start: &wire.Start{Addresses: []string{"a", "b"}}})
	e := b.event(t, "finished", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	require.Equal(t, "outcome", string(e.Finished.Outcome))
	b.command(t, wire.WorkerCommand{Commit: &wire.Commit{}})
	b.event(t, "committed", func(e *wire.WorkerEvent) bool { return e.Committed != nil })
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	require.Equal(t, "ran [a b]\n", b.text())

	// The job manager must have confirmed the collected rows before Finished was sent.
	shards, confirmed := 0, false
	for _, h := range b.events() {
		switch {
		case h.close:
			confirmed = true
		case h.piece != nil && h.piece.Collected != nil:
			require.Equal(t, shards, h.piece.Collected.Shard)
			shards++
			confirmed = false
		case h.event != nil && h.event.Finished != nil:
			require.Equal(t, 5, shards)
			require.True(t, confirmed)
		}
	}
}
