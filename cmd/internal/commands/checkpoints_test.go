package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/disk"
)

// TestCheckpoints requires that checkpoints are listed while a run holds the lock of the
// directory, and that a damaged one is an error that names it.
func TestCheckpoints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	code, _, errOut := run(t, nil, "checkpoints", dir)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, dir)
	store, err := checkpoint.OpenDir(disk.OS(), dir)
	require.NoError(t, err)
	defer store.Close()
	code, out, _ := run(t, nil, "checkpoints", dir)
	require.Zero(t, code)
	require.Equal(t, "there are no checkpoints in "+dir+"\n", out)
	journal, err := checkpoint.Open(t.Context(), store, checkpoint.Run{Job: "j"})
	require.NoError(t, err)
	for step := 1; step <= 2; step++ {
		_, _, err := journal.Write(t.Context(), []checkpoint.State{
			{Queue: "a", Superstep: 10 * step, Pieces: func(yield func([]byte, error) bool) { yield(make([]byte, 100), nil) }},
			{Queue: "b", Superstep: step, Ended: true, Pieces: func(yield func([]byte, error) bool) { yield([]byte("b"), nil) }},
		})
		require.NoError(t, err)
	}
	code, out, _ = run(t, nil, "checkpoints", dir, "--verify")
	require.Zero(t, code)
	require.Regexp(t, `^CHECKPOINT  WRITTEN              SIZE  QUEUE  SUPERSTEP
2           \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \d+ B  a      20
                                       b      2, the last
1           \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \d+ B  a      10
                                       b      1, the last
$`, out)
	code, out, _ = run(t, nil, "checkpoints", dir, "-o", "json")
	require.Zero(t, code)
	var manifests []checkpoint.Manifest
	require.NoError(t, json.Unmarshal([]byte(out), &manifests))
	require.Len(t, manifests, 2)
	require.Equal(t, 20, manifests[0].Queues[0].Superstep)

	piece := func(step int) string { return fmt.Sprintf("state-00000001-%016x-%d-0", xxh3.HashString("a"), step) }
	require.NoError(t, os.WriteFile(filepath.Join(dir, piece(20)), nil, 0o600))
	code, _, _ = run(t, nil, "checkpoints", dir)
	require.Zero(t, code, "without --verify states are not read")
	code, out, errOut = run(t, nil, "checkpoints", dir, "--verify")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "cannot be used")
	require.Contains(t, errOut, "checkpoint 2 in "+dir+" cannot be used: queue \"a\", superstep 20: "+piece(20)+": it is damaged")
	_, err = os.Stat(filepath.Join(dir, piece(10)))
	require.NoError(t, err)
}
