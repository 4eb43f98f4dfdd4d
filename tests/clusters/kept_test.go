//go:build linux && !race

package clusters

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestSurvivorsGoOn kills workers of a running job that has no checkpoints, one after the other, with
// subtask 0 and without, and then a task manager. The workers that are left must keep their processes,
// the job must continue after a superstep that it has done, and its results must be those of an
// undisturbed run, byte for byte.
func TestSurvivorsGoOn(t *testing.T) {
	t.Parallel()
	m := startShortTimeouts(t)
	dir := t.TempDir()
	path := programs.Build(t, "./tests/clusterjobs")
	args := func(name string) []string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return []string{"--steps", "600", "--output", filepath.Join(dir, name, "rows.csv")}
	}
	undisturbed := programs.Execute(t, nil, path, append(args("want"), "--progress", "off")...)
	require.Zero(t, undisturbed.Code, undisturbed.Stderr)

	trace := filepath.Join(dir, "trace")
	c := m.start(append(args("got"), "--pause", "3ms", "--restart-delay", "50ms", "--trace", trace)...)
	before := m.runs(c, 1)
	for attempt, victim := range []int{1, 0} {
		awaitSuperstep(t, trace, c, 20+40*attempt)
		require.NoError(t, syscall.Kill(before[victim], syscall.SIGKILL))
		after := m.runs(c, attempt+2)
		for i, pid := range before {
			require.Equal(t, i != victim, slices.Contains(after, pid), "attempt %d has the processes %v, after %v, of which number %d was killed", attempt+2, after, before, victim)
		}
		before = after
	}
	awaitSuperstep(t, trace, c, 120)
	require.NoError(t, m.tasks[1].Process.Kill())
	_ = m.tasks[1].Wait()
	m.startTask(1)
	m.runs(c, 4)
	require.Zero(t, c.wait(t, waitLimit), "%s", &c.err)

	require.Equal(t, undisturbed.Stdout, c.out.String())
	require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, "got")))
	m.requireFree()
	list := m.client("list", "-o", "json")
	var jobs []struct {
		ID   string
		From string
		Lost []struct {
			From     string
			Recovery recovery
		}
	}
	require.NoError(t, json.Unmarshal([]byte(list.Stdout), &jobs), list.Stderr)
	require.Len(t, jobs[0].Lost, 3)
	continued := []string{jobs[0].Lost[1].From, jobs[0].Lost[2].From}
	for _, from := range continued {
		require.Regexp(t, `^queue "sums" continues after superstep \d+ \(from memory\)$`, from)
	}
	for i, lost := range jobs[0].Lost {
		r := lost.Recovery
		phases := []time.Time{r.Detected, r.Agreed, r.Placed, r.Connected, r.Moved, r.Resumed}
		for k, at := range phases {
			require.False(t, at.IsZero() || k > 0 && at.Before(phases[k-1]), "recovery %d: phase %d of %v", i+1, k, phases)
		}
		require.Less(t, r.Resumed.Sub(r.Detected), waitLimit)
		require.Positive(t, r.Superstep)
		if i < len(continued) {
			require.Contains(t, continued[i], fmt.Sprintf("superstep %d ", r.Superstep-1), "recovery %d resumed at superstep %d", i+1, r.Superstep)
		}
	}
}

// recovery has the times of a recovery from a lost attempt.
type recovery struct {
	Detected, Agreed, Placed, Connected, Moved, Resumed time.Time
	Superstep                                           int
}

// awaitSuperstep waits until a superstep of the job is in its trace.
func awaitSuperstep(t *testing.T, trace string, c *clientRun, superstep int) {
	t.Helper()
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(trace)
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if n, err := strconv.Atoi(fields[1]); strings.HasSuffix(line, "\n") && err == nil && n >= superstep {
				return true
			}
		}
		return false
	}, waitLimit, time.Millisecond, "superstep %d does not end: %s", superstep, &c.err)
}
