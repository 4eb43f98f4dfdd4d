//go:build linux && !race

package clusters

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// restartManager kills the job manager and starts it again on the same address.
func (m *processCluster) restartManager() {
	m.t.Helper()
	require.NoError(m.t, m.manager.Process.Kill())
	_ = m.manager.Wait()
	m.startManager(m.address)
}

// listed describes a job in the answer of the job manager.
type listed struct {
	ID, State, Detail string
	Attempt, Restarts int
	Parallelism       int
	Lost              []struct {
		Number int
		Cause  string
	}
}

// jobs returns the jobs of the cluster, newest first.
func (m *processCluster) jobs() (all []listed) {
	m.t.Helper()
	list := m.client("list", "-o", "json")
	require.Zero(m.t, list.Code, list.Stderr)
	require.NoError(m.t, json.Unmarshal([]byte(list.Stdout), &all))
	return all
}

// reaches waits until a queue of the job that was submitted last has reached a superstep.
func (m *processCluster) reaches(c *clientRun, superstep int) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		select {
		case <-c.ended:
			require.Fail(m.t, "the client must not have ended", "%s", &c.err)
		default:
		}
		all := m.jobs()
		if len(all) == 0 {
			return false
		}
		var job struct {
			State    string
			Progress struct {
				Queues []struct{ Superstep int }
			}
		}
		require.NoError(m.t, json.Unmarshal([]byte(m.client("show", all[0].ID, "-o", "json").Stdout), &job))
		for _, q := range job.Progress.Queues {
			if q.Superstep >= superstep {
				return true
			}
		}
		return false
	}, waitLimit, time.Millisecond, "the job does not run: %s", &c.err)
}

// TestJobManagerRestarts kills the job manager while k-means trains and another job waits, and
// starts it again. Both jobs must have the output of an undisturbed run. The first must go on with
// the same workers, and its client, which stays attached, must see it through. Then the second
// runs, and the job manager is killed together with a task manager, which is started again too.
// The job must be restarted.
func TestJobManagerRestarts(t *testing.T) {
	t.Parallel()
	m := startProcesses(t, 2, 2, "--lease", "3s")
	dir := t.TempDir()
	input := filepath.Join(dir, "rows.csv")
	writeRows(t, input, 100_000)
	train := func(model string) []string {
		return []string{"train", "kmeans", "--input", input, "--k", "150", "--tol", "0", "--max-iter", "300", "--model", model}
	}
	superstep := programs.Build(t, "./cmd/superstep")
	want := programs.Execute(t, nil, superstep, train(filepath.Join(dir, "want"))...)
	require.Zero(t, want.Code, want.Stderr)
	job := programs.Build(t, "./tests/clusterjobs")
	steps := []string{"--steps", "300", "--progress", "json"}
	wantSteps := programs.Execute(t, nil, job, append(steps, "--output", filepath.Join(dir, "want.csv"))...)
	require.Zero(t, wantSteps.Code, wantSteps.Stderr)

	first := m.startProgram(superstep, append(train(filepath.Join(dir, "got")), "--progress", "json")...)
	m.reaches(first, 10)
	second := m.startProgram(job, append(steps, "--pause", "5ms", "--output", filepath.Join(dir, "got.csv"))...)
	require.Eventually(t, func() bool { return strings.Contains(second.err.String(), `"state":"waiting"`) }, waitLimit, time.Millisecond, "%s", &second.err)
	workers := m.allWorkers()
	require.Len(t, workers, 2)
	m.restartManager()
	all := m.jobs()
	require.Equal(t, []string{"waiting", "running"}, []string{all[0].State, all[1].State}, "%+v", all)
	require.Equal(t, workers, m.allWorkers())
	require.Zero(t, first.wait(t, waitLimit), "%s", &first.err)
	require.Equal(t, strings.ReplaceAll(want.Stdout, filepath.Join(dir, "want"), filepath.Join(dir, "got")), first.out.String())
	require.Equal(t, fileText(t, filepath.Join(dir, "want")), fileText(t, filepath.Join(dir, "got")))
	all = m.jobs()
	require.Equal(t, "finished", all[1].State)
	require.Equal(t, 1, all[1].Attempt)

	require.Eventually(t, func() bool { return m.jobs()[0].State == "running" }, waitLimit, askEvery)
	require.NoError(t, m.tasks[0].Process.Kill())
	_ = m.tasks[0].Wait()
	m.restartManager()
	m.startTask(0)
	require.Zero(t, second.wait(t, waitLimit), "%s", &second.err)
	require.Equal(t, wantSteps.Stdout, second.out.String())
	require.Equal(t, fileText(t, filepath.Join(dir, "want.csv")), fileText(t, filepath.Join(dir, "got.csv")))
	all = m.jobs()
	require.Equal(t, "finished", all[0].State)
	require.Equal(t, 1, all[0].Restarts)
	require.Contains(t, all[0].Lost[0].Cause, "task manager tm0 was restarted")
	m.requireFree()
	for _, pid := range workers {
		require.True(t, gone(pid))
	}
}

// writeRows writes a CSV file of random numbers.
func writeRows(t testing.TB, path string, rows int) {
	draw := rand.New(rand.NewPCG(1, 2))
	text := []byte("a,b,c,d,e,f\n")
	for range rows {
		for i := range 6 {
			text = append(fmt.Appendf(text, "%.4f", draw.Float64()), ",\n"[i/5])
		}
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

func fileText(t testing.TB, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestJobManagerKilledAtAnyMoment kills the job manager at random moments of the life of a job, from
// before its submission to after its end, once or twice, and starts it again. If the client was told
// that the job was submitted, the job must finish, with the output of an undisturbed run and no
// other files.
func TestJobManagerKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	job := programs.Build(t, "./tests/clusterjobs")
	dir := t.TempDir()
	args := func(name string) []string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return []string{"--steps", "100", "--progress", "off", "--output", filepath.Join(dir, name, "rows.csv")}
	}
	want := programs.Execute(t, nil, job, args("want")...)
	require.Zero(t, want.Code, want.Stderr)
	m := startProcesses(t, 2, 2, "--lease", "5s")
	for seed := range testsize.Of(1, 40) {
		draw := rand.New(rand.NewPCG(uint64(seed), 5))
		name := fmt.Sprint("round", seed)
		c := m.startProgram(job, append(args(name), "--pause", "3ms", "--detach")...)
		for range 1 + draw.IntN(2) {
			<-time.After(time.Duration(draw.IntN(900)) * time.Millisecond)
			m.restartManager()
		}
		if c.wait(t, waitLimit) != 0 {
			t.Logf("seed %d: not submitted: %s", seed, &c.err)
			continue
		}
		require.Eventually(t, func() bool { return slices.Contains([]string{"finished", "failed"}, m.jobs()[0].State) }, waitLimit, askEvery)
		t.Logf("seed %d: %+v", seed, m.jobs()[0])
		require.Equal(t, "finished", m.jobs()[0].State, "seed %d: %s", seed, m.jobs()[0].Detail)
		require.Equal(t, filesBelow(t, filepath.Join(dir, "want")), filesBelow(t, filepath.Join(dir, name)), "seed %d", seed)
	}
	m.requireFree()
	require.Empty(t, m.allWorkers())
}
