//go:build unix

package taskmanager

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// sole deploys the only worker of an attempt, which runs the script "states", and returns what it says.
func (a attempt) sole(t *testing.T, change func(d *wire.Deployment)) (said string) {
	t.Helper()
	d := deployment("states")
	d.WorkerRef, d.Keep = a.ref, true
	if change != nil {
		change(d)
	}
	a.say(t, &wire.ToTaskManager{Deploy: d})
	a.await(t, "what is in the directory for states", func() bool {
		said = ""
		for _, h := range a.heard {
			if h.ref == a.ref && h.piece != nil {
				said += string(h.piece.Log)
			}
		}
		return strings.Contains(said, ";")
	})
	return said
}

func (b *site) only(job wire.JobID, n int) attempt {
	return attempt{b, wire.WorkerRef{Job: job, Attempt: n}}
}

// kill kills the worker and waits until that is reported.
func (a attempt) kill(t *testing.T) {
	t.Helper()
	a.command(t, wire.WorkerCommand{Kill: &wire.Kill{}})
	a.ended(t)
}

// TestStatesOutliveAWorker requires that the next worker of a job finds what the killed one has left in the
// directory for states, that heartbeats name the job, and that the directory is removed once the job manager
// says that the job is over and its last worker has ended.
func TestStatesOutliveAWorker(t *testing.T) {
	r := launched(t)
	first, second := r.only("a/job", 1), r.only("a/job", 2)
	require.Contains(t, first.sole(t, nil), "directory true, files [], error <nil>")
	r.awaitHeartbeats(t, 2)
	require.Equal(t, []wire.JobID{"a/job"}, r.named())
	first.kill(t)
	other := r.only("a_job", 1) // whose directory must be another
	require.Contains(t, other.sole(t, nil), "files [], error <nil>")
	require.Contains(t, second.sole(t, nil), "files [of1], error <nil>")

	r.change(func() { r.finished = []wire.JobID{"a/job", "unknown"} })
	r.awaitHeartbeats(t, 3)
	require.Equal(t, []wire.JobID{"a/job", "a_job"}, r.named(), "a worker of the job still runs")
	second.kill(t)
	r.await(t, "the removal", func() bool { return slices.Equal(r.states, []wire.JobID{"a_job"}) })
	left, err := filepath.Glob(filepath.Join(r.dir, "states", "*"))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// named returns the jobs that the last heartbeat names.
func (b *fakeJobManager) named() []wire.JobID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states
}

// TestWorkersWithoutStates requires that only the sole worker with slots of an attempt that may be followed by
// another gets a new directory for states. A worker of a job that has one gets it too.
func TestWorkersWithoutStates(t *testing.T) {
	r := launched(t)
	for job, change := range map[wire.JobID]func(d *wire.Deployment){
		"others":    func(d *wire.Deployment) { d.Slots = append(d.Slots, wire.SlotRange{Lo: 2, Hi: 3}) },
		"last":      func(d *wire.Deployment) { d.Keep = false },
		"no-copies": func(d *wire.Deployment) { d.Spec.Run.Copies = -1 },
	} {
		a := r.only(job, 1)
		require.Contains(t, a.sole(t, change), "directory false", job)
		a.kill(t)
	}
	giver := r.only("giver", 1)
	require.Contains(t, giver.sole(t, func(d *wire.Deployment) { d.Slots = append(d.Slots, wire.SlotRange{Lo: 2, Hi: 2}) }), "directory true")
	giver.kill(t)
	require.Contains(t, r.only("giver", 2).sole(t, func(d *wire.Deployment) { d.Slots = append(d.Slots, wire.SlotRange{Lo: 2, Hi: 3}) }), "files [of1]")
}

// TestStatesOfAKilledTaskManager requires that a task manager removes states that one before it has left.
func TestStatesOfAKilledTaskManager(t *testing.T) {
	path := t.TempDir()
	left := filepath.Join(path, "states", "job-1")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "state"), []byte("x"), 0o600))
	d, err := openWorkDir(path, hclog.NewNullLogger())
	require.NoError(t, err)
	require.Empty(t, names(t, filepath.Join(path, "states")))
	for _, job := range []wire.JobID{"../../../etc", wire.JobID(strings.Repeat("long", 1000)), ""} {
		dir, err := d.states.forJob(job, true)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(path, "states"), filepath.Dir(dir))
		again, err := d.states.forJob(job, false)
		require.NoError(t, err)
		require.Equal(t, dir, again)
	}
	require.Len(t, d.states.jobs(), 3)
	require.NoError(t, d.close())
	require.NoFileExists(t, filepath.Join(path, "states"))
}
