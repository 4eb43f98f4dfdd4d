//go:build linux && !race

package clusters

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRequiredCheckpoints runs jobs whose queues cannot continue from the memory of other workers. With
// --checkpoint require, a job whose plan shows that is refused before it is sent, and one whose state
// shows it fails after its first superstep, without another attempt. Without it, both run to their end.
func TestRequiredCheckpoints(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	run := func(args ...string) (code int, errors string) {
		c := m.start(append(args, "--progress", "off")...)
		code = c.wait(t, waitLimit)
		return code, c.err.String()
	}
	code, errors := run("--fault", "fields", "--checkpoint", "require")
	require.Equal(t, 2, code, errors)
	says(t, errors, `--checkpoint require: queue "sums" would begin at superstep 1 again: the instances of Compute`)
	require.Empty(t, m.jobs(), "the job must not be sent")

	code, errors = run("--fault", "differ", "--checkpoint", "require")
	require.Equal(t, 1, code, errors)
	says(t, errors, `--checkpoint require: queue "sums" cannot be saved: the replicated object "totals" differs between subtask 0 and subtask 1 at the beginning of superstep 2`)
	var job struct {
		State   string
		Attempt int
	}
	shown := m.client("show", m.jobs()[0].ID, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(shown.Stdout), &job), shown.Stderr)
	require.Equal(t, "failed", job.State)
	require.Equal(t, 1, job.Attempt)

	code, errors = run("--fault", "fields")
	require.Zero(t, code, errors)
	says(t, errors, `after a loss, queue "sums" would begin at superstep 1 again`)
	code, errors = run("--fault", "differ")
	require.Zero(t, code, errors)
	m.requireFree()
}
