package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// Mean times between failures of the simulated job in the picture, in seconds.
const (
	shortest = 60
	longest  = 30 * 86400
)

// The printed table has the goodput of the simulated job on these numbers of workers, each of
// which fails once in workerMean on average.
var workerCounts = []int{1, 16, 256, 1024, 4096}

const workerMean = 30 * 24 * time.Hour

// jobMeans returns the mean times between failures of jobs with workerCounts.
func jobMeans() (means []float64) {
	for _, n := range workerCounts {
		means = append(means, workerMean.Seconds()/float64(n))
	}
	return means
}

// check returns an error if the results are not complete.
func (r *results) check() error {
	if len(r.Simulated) == 0 || len(r.Table) == 0 {
		return errors.New("it has no results of the simulation")
	}
	for _, c := range slices.Concat(r.Simulated, r.Table) {
		if c.Name == "" || len(c.Points) == 0 {
			return errors.New("it has a curve without points")
		}
	}
	for _, c := range r.Table {
		if len(c.Points) != len(workerCounts) {
			return fmt.Errorf("its table has %d numbers of workers, want %d", len(c.Points), len(workerCounts))
		}
	}
	for _, c := range r.measured().Expected {
		if len(c.Points) == 0 {
			return errors.New("it has a curve without points")
		}
	}
	if r.Measured == nil {
		return nil
	}
	known := func(g guard) bool {
		return slices.ContainsFunc(r.Measured.Costs, func(c costs) bool { return c.Guard == g })
	}
	for _, run := range append([]*run{{Guard: noGuard}, {Guard: checkpoints}, {Guard: memory}}, r.Measured.Runs...) {
		if !known(run.Guard) {
			return fmt.Errorf("it has no costs with guard %q", run.Guard)
		}
	}
	return nil
}

// measured returns the results of a cluster, which are empty if there was none.
func (r *results) measured() *measured {
	if r.Measured == nil {
		return new(measured)
	}
	return r.Measured
}

// print prints the results as tables in Markdown.
func (r *results) print(w io.Writer) error {
	t := &printer{w: w}
	t.line("A day of supersteps, whose workers each fail every %v days on average, simulated:\n", workerMean.Hours()/24)
	head, rule := "| workers | a failure every |", "|---|---|"
	for _, c := range r.Table {
		head, rule = head+" "+c.Name+" |", rule+"---|"
	}
	t.line("%s\n%s", head, rule)
	for i, n := range workerCounts {
		row := fmt.Sprintf("| %d | %s |", n, duration(r.Table[0].Points[i].Mean))
		for _, c := range r.Table {
			row += " " + orLess(c.Points[i].Goodput) + " |"
		}
		t.line("%s", row)
	}
	if r.Measured != nil {
		r.Measured.print(t)
	}
	return t.err
}

func (m *measured) print(t *printer) {
	job, saved, copied := m.of(noGuard), m.of(checkpoints), m.of(memory)
	t.line("\nOn a cluster of %d task managers with %d slots, %d CPUs, load average %.1f to %.1f. Without failures, the job takes %.2f s, %.1f ms for each superstep. "+
		"A checkpoint stops it for %.1f ms and is complete %.0f ms later. States in memory are copied about every %d supersteps.\n",
		taskManagers, slots, m.CPUs, m.Load[0], m.Load[1], job.Work, 1e3*job.Superstep, 1e3*saved.Checkpoint, 1e3*saved.Write, copied.Every)
	t.line("| restarts with | number | deployed after a failure | compute after that |\n|---|---|---|---|")
	for _, c := range []*costs{saved, copied} {
		t.line("| %s | %d | %.2f s (median), %.2f s (slowest) | %.2f s, %.2f s |", c.Guard, len(c.Downs), c.Down, most(c.Downs), c.Restart, most(c.Restarts))
	}
	t.line("\n| a failure every | guard | failures | supersteps again | time | goodput | simulated with these failures | expected, 90 %% of jobs |")
	t.line("|---|---|---|---|---|---|---|---|")
	for _, r := range m.sorted() {
		e := m.of(r.Guard).simulate(r.Mean, expectedJobs, 1)
		got := "– | – | – | –"
		if !r.LeftOut {
			got = fmt.Sprintf("%d | %d | %.1f s | %s", r.Failures, r.Repeated, r.Wall, percent(r.Goodput))
		}
		predicted := percent(r.Simulated)
		if r.LeftOut {
			if predicted = percent(job.Work / r.Predicted.Wall); !r.Predicted.Finished {
				predicted = "less than " + predicted
			}
		}
		t.line("| %s | %s | %s | %s | %s, %s to %s |", duration(r.Mean), r.Guard, got, predicted, orLess(e.Goodput), orLess(e.Low), orLess(e.High))
	}
	if off, n := m.errors(); n > 0 {
		t.line("\nThe goodput of %d runs differs from that of the simulation with the same failures by %.1f percentage points at the median and %.1f at most.", n, 100*rounds.Median(off), 100*slices.Max(off))
	}
}

// most returns the largest of all, or 0.
func most(all []float64) (largest float64) {
	for _, v := range all {
		largest = max(largest, v)
	}
	return largest
}

// expectedJobs is the number of simulated jobs for the expectations of the printed table.
const expectedJobs = 1000

// sorted returns the runs in the order of the printed table.
func (m *measured) sorted() []*run {
	all := slices.Clone(m.Runs)
	order := func(g guard) int { return slices.IndexFunc(m.Costs, func(c costs) bool { return c.Guard == g }) }
	slices.SortStableFunc(all, func(a, b *run) int {
		return cmp.Or(cmp.Compare(order(a.Guard), order(b.Guard)), cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Round, b.Round))
	})
	return all
}

// errors returns, for each run, the difference between its goodput and that of the simulation with
// the same failures.
func (m *measured) errors() (off []float64, n int) {
	for _, r := range m.Runs {
		if !r.LeftOut {
			off = append(off, math.Abs(r.Goodput-r.Simulated))
		}
	}
	return off, len(off)
}

// printer prints lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", a...)
	}
}

// percent returns a share as text.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// orLess is like percent, for the goodput of simulated jobs. As they are given up after a time, the
// smallest goodputs mean that hardly a job ended.
func orLess(share float64) string {
	if share < 1.0/patience {
		return "< " + percent(1.0/patience)
	}
	return percent(share)
}

// duration returns seconds as text in a unit that fits.
func duration(seconds float64) string {
	for _, u := range []struct {
		name    string
		seconds float64
	}{{"d", 86400}, {"h", 3600}, {"min", 60}} {
		if seconds >= u.seconds {
			return fmt.Sprintf("%.3g %s", seconds/u.seconds, u.name)
		}
	}
	return fmt.Sprintf("%.3g s", seconds)
}
