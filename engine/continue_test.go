package engine

import (
	"bytes"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/disk"
)

// TestDifferencesAreSaidOnce requires that what differs from the run of a savepoint is told to the user or, if
// there is none, is logged, and not both.
func TestDifferencesAreSaidOnce(t *testing.T) {
	place := t.TempDir()
	store, err := checkpoint.OpenDir(disk.OS(), place)
	require.NoError(t, err)
	journal, err := checkpoint.Open(t.Context(), store, checkpoint.Run{Job: "before", Shards: 8})
	require.NoError(t, err)
	_, _, err = journal.Write(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, store.Close())

	var logged bytes.Buffer
	var told []string
	c, err := newConfig([]Option{FromSavepoint(place), Logger(hclog.New(&hclog.LoggerOptions{Output: &logged}))})
	require.NoError(t, err)
	now := checkpoint.Run{Job: "after", Shards: 8}
	_, err = c.findSavepoint(t.Context(), now, &checkpointed{})
	require.NoError(t, err)
	require.Contains(t, logged.String(), `it is of job \"before\"`)
	logged.Reset()
	c.checkpoints.say = func(line string) { told = append(told, line) }
	_, err = c.findSavepoint(t.Context(), now, &checkpointed{})
	require.NoError(t, err)
	require.Equal(t, []string{`unlike the run that wrote the savepoint: it is of job "before"`}, told)
	require.Empty(t, logged.String())
}
