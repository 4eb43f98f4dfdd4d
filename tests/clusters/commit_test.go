//go:build linux && !race

package clusters

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// TestJobManagerKilledWhileCommitting kills the job manager, and in some rounds the workers
// too, at a random moment near the end of a job. After a restart, the job manager must finish
// the job: its commit if the job had reached it, and otherwise the same attempt or another one.
// The output must be complete, and no other files may be left.
func TestJobManagerKilledWhileCommitting(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testsize.Soak {
		rounds = 30
	}
	dir := t.TempDir()
	want := map[bool]map[string]string{}
	for _, perShard := range []bool{false, true} {
		path := filepath.Join(dir, "want", map[bool]string{false: "file", true: "shards"}[perShard], "out")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		got := programs.Execute(t, nil, programs.Build(t, "./tests/commitjobs"), commitArgs(path, perShard)...)
		require.Zero(t, got.Code, got.Stderr)
		want[perShard] = filesBelow(t, filepath.Dir(path))
	}
	m := startProcesses(t, 2, 2)
	for seed := range rounds {
		k := commitKill{seed: uint64(seed), perShard: seed%3 == 2, workers: seed%3 == 1}
		m.killCommit(filepath.Join(dir, "round", string(rune('a'+seed))), k, want[k.perShard])
	}
}

func commitArgs(path string, perShard bool) []string {
	args := []string{"--rows", "600000", "--shards", "16", "--progress", "off", "--output", path}
	if perShard {
		args = append(args, "--per-shard", "--if-exists", "replace")
	}
	return args
}

// commitResumed is the job manager's message about a job whose commit it has finished.
const commitResumed = "the job manager restarted while the results were being made visible"

// commitKill describes one round.
type commitKill struct {
	seed              uint64
	perShard, workers bool
}

func (m *processCluster) killCommit(dir string, k commitKill, want map[string]string) {
	t := m.t
	draw := rand.New(rand.NewPCG(k.seed, 9))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	out := filepath.Join(dir, "out")
	if k.perShard { // in this case the output exists already and is replaced
		require.NoError(t, os.Mkdir(out, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(out, "part-00000.csv"), []byte("old\n"), 0o600))
	}
	args := append(commitArgs(out, k.perShard), "--cluster", m.address, "--parallelism", "4", "--detach")
	got := programs.Execute(t, m.environ, programs.Build(t, "./tests/commitjobs"), args...)
	require.Zero(t, got.Code, got.Stderr)

	// If the output is one file, the commit is recorded, and then the parts are assembled. If
	// the output is a directory, the commit is a single step shortly after the last part is
	// complete.
	staging := filepath.Join(dir, ".superstep-out")
	seen := filepath.Join(staging, "whole")
	if k.perShard {
		seen = filepath.Join(staging, "parts-*", "part-00015.csv")
	}
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(seen)
		require.NoError(t, err)
		return len(found) > 0
	}, waitLimit, time.Millisecond, "the job does not come to its end: %s", m.output)
	span := 15
	if k.perShard {
		span = 150
	}
	late := time.NewTimer(time.Duration(draw.IntN(span)) * time.Millisecond)
	<-late.C
	require.NoError(t, m.manager.Process.Kill())
	_ = m.manager.Wait()
	if k.workers {
		for _, pid := range m.allWorkers() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	resumed := strings.Count(m.output.String(), commitResumed)
	m.startManager(m.address)
	state, detail := "", ""
	require.Eventually(t, func() bool {
		list := m.client("list", "-o", "json")
		var jobs []struct{ State, Detail string }
		if list.Code != 0 || json.Unmarshal([]byte(list.Stdout), &jobs) != nil || len(jobs) == 0 {
			return false
		}
		state, detail = jobs[0].State, jobs[0].Detail
		return state == "finished" || state == "failed"
	}, waitLimit, askEvery, "seed %d: the job does not end", k.seed)
	t.Logf("seed %d: the job is %s: %s", k.seed, state, detail)
	m.requireFree()
	require.Equal(t, "finished", state, "seed %d: the job must be finished: %s", k.seed, detail)
	if !k.perShard {
		require.Greater(t, strings.Count(m.output.String(), commitResumed), resumed, "seed %d: the job manager must have resumed the commit", k.seed)
	}
	require.Equal(t, want, filesBelow(t, dir), "seed %d: the directory must contain the output, and no other files", k.seed)
}

// filesBelow returns the contents of all files below a directory, by path.
func filesBelow(t testing.TB, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(data)
		return err
	}))
	return all
}
