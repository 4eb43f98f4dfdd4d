//go:build linux && !race

package kills

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run is a job on a cluster, with what is observed of both.
type run struct {
	c        *cluster
	want     outcome
	client   *submission
	observer *observer
	outputs  *watcher
	saves    *watcher
}

// result says what happened in a run.
type result struct {
	struck, missed, lost int
	refused              string // why the job had to fail; "" if it has finished
}

// begin submits a job of the given work to the cluster.
func (c *cluster) begin(w work, args ...string) *run {
	c.t.Helper()
	r := &run{c: c, want: w.undisturbed(c.t), outputs: watch(c.t, c.out())}
	require.NoError(c.t, os.MkdirAll(c.store(), 0o700))
	r.saves = watch(c.t, c.store())
	r.client = c.submit(slices.Concat(w.line(c.out()), w.pace, args)...)
	r.observer = c.observe(r.client)
	c.t.Cleanup(r.observer.stop)
	return r
}

// runPlan runs a plan and requires what every run must fulfil.
func runPlan(t *testing.T, p plan) (got result) {
	c := startCluster(t, p.shape)
	c.story.tell("%s", p)
	for _, s := range p.strikes {
		for _, f := range s.faults {
			if dir := map[kind]string{fillStore: filepath.Dir(c.store()), fillOutput: c.out()}[f.kind]; dir != "" && !c.small[dir] {
				c.small[dir] = c.mountSmall(dir)
			}
		}
	}
	args := append([]string{"--parallelism", strconv.Itoa(p.parallelism)}, p.restart...)
	if p.checkpoints != "" {
		args = append(args, "--checkpoint-dir", c.store(), "--checkpoint-every", p.checkpoints)
	}
	r := c.begin(p.work, args...)
	for _, s := range p.strikes {
		if r.await(s) {
			got.struck++
			c.strike(s)
		} else {
			got.missed++
			c.story.tell("missed: %s", s)
		}
	}
	if r.client.wait() == 0 {
		r.requireFinished()
	} else {
		got.refused = p.mustFail(r.client.err.String())
		require.NotEmpty(t, got.refused, "the job must finish: %s", &r.client.err)
		c.story.tell("the job has failed, as it must: %s", got.refused)
		r.requireNoOutputs()
	}
	r.requireNothingLeft(got.refused == "")
	got.lost = len(r.observer.job().Lost)
	return got
}

// mustFail returns why the plan makes the job fail with the given error, or "" if the job must
// not fail so.
func (p plan) mustFail(text string) string {
	killed, full := 0, false
	for _, s := range p.strikes {
		for _, f := range s.faults {
			switch f.kind {
			case killWorker, killMachine, killAll:
				killed++
			case fillOutput:
				full = true
			}
		}
	}
	switch {
	case full && strings.Contains(text, "no space left on device"):
		return "no room for the outputs"
	case killed >= 3 && strings.Contains(text, "workers crashed in this way in 3 attempts"):
		return "three crashes in the same way"
	}
	return ""
}

// requireFinished requires the outcome of an undisturbed run, and that each output has got its
// name once.
func (r *run) requireFinished() {
	t := r.c.t
	t.Helper()
	require.Equal(t, r.want.stdout, r.client.out.String())
	require.Equal(t, r.want.files, files(t, r.c.out()), "the outputs must be those of an undisturbed run, and no other files")
	for _, name := range []string{"rows.csv", "rows.csv.parts"} {
		require.Equal(t, 1, r.outputs.count(name), "%s must get its name once: %q", name, r.outputs.seen())
	}
	require.Eventually(t, func() bool { return r.observer.job().State == "finished" }, waitLimit, time.Millisecond)
}

// requireNoOutputs requires that no output of a job that has failed is visible.
func (r *run) requireNoOutputs() {
	r.c.t.Helper()
	for _, name := range []string{"rows.csv", "rows.csv.parts"} {
		require.Zero(r.c.t, r.outputs.count(name), "%s must not be visible", name)
	}
}

// requireNothingLeft requires that all slots become free, all workers end, and no temporary file
// is left. A job that has finished must leave no checkpoints and, beside its outputs, no files.
func (r *run) requireNothingLeft(done bool) {
	c, t := r.c, r.c.t
	t.Helper()
	c.requireFree()
	require.Eventually(t, func() bool { return len(c.workers()) == 0 }, waitLimit, 5*time.Millisecond, "all workers must end: %v", c.workers())
	for _, n := range c.nodes {
		dir := filepath.Join(c.dir, n.name, "workers")
		require.Eventually(t, func() bool { return len(entries(dir)) == 0 }, waitLimit, 5*time.Millisecond, "%s must be empty: %v", dir, entries(dir))
	}
	require.Empty(t, entries(filepath.Join(c.dir, "tmp")))
	if !done {
		return
	}
	require.Empty(t, entries(c.store()), "a job that has finished must leave no checkpoints")
	require.Equal(t, r.want.files, files(t, c.out()), "the outputs must not change any more")
	require.Equal(t, []string{"rows.csv", "rows.csv.parts"}, entries(c.out()), "no temporary directory may be left beside the outputs")
}

// entries returns the sorted names of the files and directories in a directory.
func entries(dir string) (names []string) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
