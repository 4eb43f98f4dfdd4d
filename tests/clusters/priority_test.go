//go:build linux && !race

package clusters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPriority runs a job on the only slot while two others wait. The one of the higher priority, which
// was submitted last, must run first.
func TestPriority(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 1, 1)
	slow := filepath.Join(t.TempDir(), "slow")
	require.NoError(t, os.WriteFile(slow, nil, 0o600))
	first := m.start("--steps", "500", "--pause", "200ms", "--while", slow, "--parallelism", "1")
	m.reaches(first, 1)

	type shown struct {
		ID, State string
		Priority  int
		Started   time.Time
	}
	show := func(id string) (j shown) {
		got := m.client("show", id, "-o", "json")
		require.Zero(t, got.Code, got.Stderr)
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &j))
		return j
	}
	submit := func(priority string) string {
		known := map[string]bool{}
		for _, j := range m.jobs() {
			known[j.ID] = true
		}
		c := m.start("--steps", "5", "--parallelism", "1", "--detach", "--priority", priority)
		require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)
		for _, j := range m.jobs() {
			if !known[j.ID] {
				return j.ID
			}
		}
		require.Fail(t, "the job is not listed")
		return ""
	}
	low, high := submit("-1"), submit("2")
	require.Equal(t, -1, show(low).Priority)
	says(t, m.client("show", high).Stdout, "priority     2", "waiting for 1 slot")
	says(t, m.client("show", low).Stdout, "1 job before it")

	require.NoError(t, os.Remove(slow))
	require.Zero(t, first.wait(t, waitLimit), "%s", &first.err)
	require.Eventually(t, func() bool { return show(low).State == "finished" && show(high).State == "finished" }, waitLimit, askEvery)
	require.True(t, show(high).Started.Before(show(low).Started), "the job of the higher priority must run first")
	m.requireFree()
}
