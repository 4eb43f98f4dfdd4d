//go:build linux && !race

package kills

import (
	"maps"
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
	// storeAway says that the job has ended while a fault had taken the store away.
	storeAway bool
	// struckLate says that a fault has struck while the job committed or later, and receipts is
	// the number of receipts that were left.
	struckLate bool
	receipts   int
}

// result says what happened in a run.
type result struct {
	struck, missed, lost, receipts int
	refused                        string // why the job had to fail; "" if it has finished
}

// begin submits a job of the given work to the cluster.
func (c *cluster) begin(w work, args ...string) *run {
	c.t.Helper()
	r := &run{c: c, want: w.undisturbed(c.t), outputs: watch(c.t, c.out())}
	require.NoError(c.t, os.MkdirAll(c.store(), 0o700))
	r.saves = watch(c.t, c.store())
	r.client = c.submit(slices.Concat(w.line(c.out(), filepath.Join(c.dir, "client")), w.pace, args)...)
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
			r.struckLate = r.struckLate || s.moment >= committing && s.moment != recovering
			now := r.observer.job()
			r.storeAway = r.storeAway || c.taken && now.ended()
			c.taken = false
		} else {
			got.missed++
			c.story.tell("missed: %s", s)
		}
	}
	if r.client.wait() == 0 {
		r.requireFinished()
	} else {
		got.refused = p.mustFail(r.client.err.String(), r.observer.job().Attempt)
		require.NotEmpty(t, got.refused, "the job must finish: %s", &r.client.err)
		c.story.tell("the job has failed, as it must: %s", got.refused)
		r.requireNoOutputs()
	}
	r.requireNothingLeft(got.refused == "")
	got.lost, got.receipts = len(r.observer.job().Lost), r.receipts
	return got
}

// mustFail returns why the plan makes the job fail with the given error in the given attempt, or
// "" if the job must not fail so.
func (p plan) mustFail(text string, attempt int) string {
	killed, full, store := 0, false, false
	for _, s := range p.strikes {
		for _, f := range s.faults {
			switch f.kind {
			case killWorker, killMachine, killAll:
				killed++
			case fillOutput:
				full = true
			case takeStore, fillStore:
				store = true
			}
		}
	}
	switch {
	case full && strings.Contains(text, "no space left on device"):
		return "no room for the outputs"
	case store && attempt == 1 && (strings.Contains(text, "--checkpoint-dir:") || strings.Contains(text, "/store/checkpoints")):
		return "no store when the job began"
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
	requireSame(t, r.want.client, files(t, filepath.Join(r.c.dir, "client")), "what the client has written")
	printed, notes := r.printed()
	if notes == 0 || printed != "" {
		require.Equal(t, r.want.stdout, printed)
	}
	requireSame(t, r.want.files, visible(files(t, r.c.out())), "the outputs")
	for _, name := range []string{"rows.csv", "rows.csv.parts"} {
		require.Equal(t, 1, r.outputs.count(name), "%s must get its name once: %q", name, r.outputs.seen())
	}
	require.Eventually(t, func() bool { return r.observer.job().State == "finished" }, waitLimit, time.Millisecond)
}

// printed returns what the client has printed, without the notes of workers that finished the
// commit of another worker: such a worker does not know whether the table was printed. notes is
// the number of these notes.
func (r *run) printed() (text string, notes int) {
	for line := range strings.Lines(r.client.out.String()) {
		if strings.Contains(line, "is not shown again: if it is not above, it was lost") {
			notes++
			continue
		}
		text += line
	}
	return text, notes
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
	if r.storeAway {
		c.story.tell("the store was away when its files were to be removed")
	} else {
		require.Empty(t, entries(c.store()), "a job that has finished must leave no checkpoints")
	}
	requireSame(t, r.want.files, visible(files(t, c.out())), "the outputs, when all processes have ended,")
	for _, name := range entries(c.out()) {
		if strings.HasPrefix(name, receipt) && r.struckLate {
			r.receipts++
			continue
		}
		require.Contains(t, []string{"rows.csv", "rows.csv.parts"}, name, "nothing may be left beside the outputs")
	}
}

// receipt begins the name of a file that worker 0 writes when an output is in its place, and
// removes when the job manager has recorded that the job has finished. If it dies in between, the
// next job with this output removes the file.
const receipt = ".superstep.done-"

// visible returns the files whose path has no name that begins with a dot.
func visible(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(path, _ string) bool { return strings.HasPrefix(path, ".") })
	return files
}

// entries returns the sorted names of the files and directories in a directory.
func entries(dir string) (names []string) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
