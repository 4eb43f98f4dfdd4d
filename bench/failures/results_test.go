package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at returns a time of an invented observation.
func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// invented returns an observation of five supersteps of a second, with checkpoints after the second
// and the fourth, and a worker that was killed in the fourth. A second failure hit no worker.
func invented() *observation {
	return &observation{
		records: []record{
			{0, at(0)}, {1, at(1)}, {2, at(2)}, {3, at(3.25)},
			{0, at(6)}, {3, at(7)}, {4, at(8)}, {5, at(9.5)},
		},
		kills:    []kill{{at(4), true}, {at(4.25), false}, {at(10), true}},
		deployed: []time.Time{at(-1), at(5)},
		complete: map[int]time.Time{2: at(2.75), 4: at(8.75)},
	}
}

func TestObservation(t *testing.T) {
	o := invented()
	require.NoError(t, o.check(5))
	require.InDelta(t, 9.5, o.wall(), 1e-9)
	require.Equal(t, 1, o.repeated())
	require.Equal(t, 1, o.hits(), "the last worker was killed after the end")
	down, restart := o.recoveries()
	require.InDeltaSlice(t, []float64{1}, down, 1e-9)
	require.InDeltaSlice(t, []float64{1}, restart, 1e-9)
	cost, write := o.checkpoints(2)
	require.InDeltaSlice(t, []float64{0.25, 0.5}, cost, 1e-9)
	require.InDeltaSlice(t, []float64{0.5, 0.25}, write, 1e-9)
	require.InDeltaSlice(t, []float64{1, 1, 1, 1}, o.supersteps(2), 1e-9)
	require.InDelta(t, 6.75/6, mean(o.supersteps(0)), 1e-9)
}

// TestTracesThatAreRefused requires that the trace of a job that left out a superstep, or that
// continued where it cannot have been, is refused.
func TestTracesThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(o *observation){
		"nothing":           func(o *observation) { o.records = nil },
		"the end missing":   func(o *observation) { o.records = o.records[:7] },
		"a superstep more":  func(o *observation) { o.records = append(o.records, record{6, at(11)}) },
		"one missing":       func(o *observation) { o.records[2].Step = 3 },
		"begun in between":  func(o *observation) { o.records = o.records[1:] },
		"continued too far": func(o *observation) { o.records[5].Step, o.records[6].Step = 5, 6 },
		"out of order":      func(o *observation) { o.records[3].At = at(0.5) },
	} {
		o := invented()
		change(o)
		require.Error(t, o.check(5), name)
	}
}

func TestParseTrace(t *testing.T) {
	records, err := parseTrace([]byte("0 1000\n1 2000\n2 30"))
	require.NoError(t, err)
	require.Equal(t, []record{{0, time.Unix(0, 1000)}, {1, time.Unix(0, 2000)}}, records, "the last line has no end")
	for _, bad := range []string{"x 1\n", "1\n", "0 1\n-1 2\n", "0 1\n\n", "1 2 3\n"} {
		_, err := parseTrace([]byte(bad))
		require.ErrorContains(t, err, "line ", bad)
	}
}

// fakeResults returns invented results of a few simulated jobs and of runs on a cluster.
func fakeResults() *results {
	small := scenario{Work: 10, Superstep: 1, Down: 0.5, Restart: 0.5, Every: 2, Checkpoint: 0.1}
	all := variants(small)
	none := all[0].of(0)
	return &results{
		Simulated: simulated(all, spread(60, 600, 3), 10, 1),
		Table:     simulated(all, jobMeans(), 10, 1),
		Measured: &measured{
			CPUs: 2, Load: [2]float64{1, 2.5}, Costs: []costs{
				{Guard: noGuard, scenario: none}, {checkpoints, small, []float64{0.5, 0.25, 4}, []float64{0.5, 0.5, 0.5}},
				{memory, inMemory(small), []float64{0.5, 0.75}, []float64{0.5, 0.25}},
			},
			Runs: []*run{
				{Guard: memory, Mean: 12, Predicted: outcome{Wall: 11.5, Failures: 1, Finished: true}, Wall: 11.6, Failures: 1, Repeated: 1, Goodput: 0.86, Simulated: 0.86},
				{Guard: checkpoints, Mean: 12, Predicted: outcome{Wall: 12.5, Failures: 1, Finished: true}, Wall: 12.6, Failures: 1, Repeated: 2, Goodput: 0.79, Simulated: 0.8},
				{Guard: noGuard, Mean: 12, Predicted: outcome{Wall: 20, Failures: 2, Finished: true}, Wall: 19, Failures: 2, Repeated: 9, Goodput: 0.52, Simulated: 0.5},
				{Guard: noGuard, Mean: 0.25, Predicted: outcome{Wall: 50, Failures: 100}, LeftOut: true},
			},
			Expected: simulated(all[:3], spread(5, 20, 3), 10, 1),
		},
	}
}

// TestResults writes results, reads them, prints them and draws them.
func TestResults(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results", "failures.json")
	require.NoError(t, writeResults(path, fakeResults()))
	o := &options{From: path, Out: filepath.Join(dir, "failures.svg")}
	r, err := readResults(path)
	require.NoError(t, err)
	var printed, again bytes.Buffer
	require.NoError(t, fakeResults().print(&printed))
	require.NoError(t, r.print(&again))
	require.Equal(t, printed.String(), again.String())
	for _, want := range []string{
		"States in memory are copied about every 1 supersteps.",
		"| checkpoints | 3 | 0.50 s (median), 4.00 s (slowest) | 0.50 s, 0.50 s |", "| states in memory | 2 | 0.50 s (median), 0.75 s (slowest) | ",
		"| workers | a failure every | no checkpoints | checkpoints every 30 s |", "| 4096 | 10.5 min | ",
		"| 12 s | no checkpoints | 2 | 9 | 19.0 s | 52.0 % | 50.0 % | ", "| 12 s | checkpoints | 1 | 2 | 12.6 s | 79.0 % | 80.0 % | ",
		"| 12 s | states in memory | 1 | 1 | 11.6 s | 86.0 % | 86.0 % | ", "| 0.25 s | no checkpoints | – | – | – | – | less than 20.0 % | < 1.0 %, < 1.0 % to < 1.0 % |",
		"The goodput of 3 runs differs from that of the simulation with the same failures by 1.0 percentage points at the median and 2.0 at most.",
	} {
		require.Contains(t, printed.String(), want)
	}
	require.Less(t, strings.Index(printed.String(), "| 0.25 s"), strings.Index(printed.String(), "| 12 s | checkpoints"))

	require.NoError(t, r.draw(o.Out))
	text, err := os.ReadFile(o.Out)
	require.NoError(t, err)
	for _, want := range []string{"no checkpoints", "Young", "states in memory", "runs (points)", ">10 min<", ">10 s<", ">100 %<"} {
		require.Contains(t, string(text), want)
	}
	r.Measured = nil
	require.NoError(t, r.draw(filepath.Join(dir, "alone.png")))
}

func TestResultsThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "failures.json")
	for name, text := range map[string]string{"no JSON": "rows", "nothing": "{}", "no points": `{"simulated": [{"name": "a"}], "table": [{"name": "a"}]}`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readResults(path)
		require.ErrorContains(t, err, path, name)
	}
	good := options{Jobs: 1, Rounds: 1, Rows: 1, Steps: 2, Every: 1, State: 8, Longest: 1, Means: []time.Duration{1}}
	require.NoError(t, good.Validate())
	for name, change := range map[string]func(o *options){
		"picture": func(o *options) { o.Out = "a.txt" }, "means": func(o *options) { o.Means[0] = 0 },
		"steps": func(o *options) { o.Steps = 1 }, "from": func(o *options) { o.From, o.JSON = "a", "b" },
	} {
		bad := good
		bad.Means = []time.Duration{1}
		change(&bad)
		require.Error(t, bad.Validate(), name)
	}
}

// TestRegularly requires that each failure is later than the one before, whatever the rounding,
// and that there are no more than were wanted.
func TestRegularly(t *testing.T) {
	for _, apart := range []float64{0.1, 2.78, 1.0 / 3} {
		next := regularly(apart, 1000)
		last := 0.0
		for i := range 1000 {
			now := next(last)
			require.Greater(t, now, last)
			require.InDelta(t, apart*float64(i+1), now, 1e-9)
			last = now
		}
		require.Equal(t, math.Inf(1), next(last))
	}
}
