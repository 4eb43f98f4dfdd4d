package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// measured has the results of the runs on a cluster.
type measured struct {
	CPUs int `json:"cpus"`
	// Load has the lowest and the highest load average of the last minute, before and after runs.
	Load [2]float64 `json:"load"`
	// Costs is the job as it was measured before the runs, with checkpoints.
	Costs scenario `json:"costs"`
	// Downs and Restarts have the times of the restarts before the runs, whose medians are
	// Costs.Down and Costs.Restart.
	Downs    []float64 `json:"downs"`
	Restarts []float64 `json:"restarts"`
	Runs     []*run    `json:"runs"`
	// Expected has the goodput that the simulation expects of the job with Costs.
	Expected []curve `json:"expected"`
}

// run is a run of the job on the cluster with injected failures.
type run struct {
	Checkpoints bool    `json:"checkpoints"`
	Mean        float64 `json:"mean"` // time between two failures of the job, in seconds
	Round       int     `json:"round"`
	// Predicted is the outcome of the simulation with the failures of the run, before it.
	Predicted outcome `json:"predicted"`
	LeftOut   bool    `json:"left_out,omitempty"` // the run would have taken too long
	Wall      float64 `json:"wall"`
	Failures  int     `json:"failures"` // workers that were killed
	Repeated  int     `json:"repeated"` // supersteps that were done again
	// Superstep is the mean time of a superstep in this run, as other load on the machine comes and
	// goes. Goodput is the number of supersteps times Superstep, divided by Wall.
	Superstep float64 `json:"superstep"`
	Goodput   float64 `json:"goodput"`
	// Simulated is the goodput of the simulation with the failures of the run and with Superstep.
	Simulated float64 `json:"simulated"`
}

// measure measures the costs of the job, and runs it with injected failures.
func (o *options) measure(ctx context.Context, progress io.Writer) (m *measured, err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	command := o.Superstep
	if command == "" {
		command = filepath.Join(dir, "superstep")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", command, "github.com/superstep-ml/superstep/cmd/superstep").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	c, err := startCluster(ctx, command, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	s := &session{cluster: c, options: o, dir: dir, progress: progress, measured: measured{CPUs: runtime.NumCPU()}}
	if err := s.calibrate(ctx); err != nil {
		return nil, fmt.Errorf("measure the costs of the job: %w", err)
	}
	for round := range o.Rounds {
		for _, r := range o.turns(round) {
			if err := s.run(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	var means []float64
	for _, mean := range o.Means {
		means = append(means, mean.Seconds())
	}
	lo, hi := slices.Min(means)/1.5, slices.Max(means)*1.5
	s.Expected = simulated(s.variants(), spread(lo, hi, 25), o.Jobs, o.Seed)
	return &s.measured, nil
}

// turns returns the runs of a round.
func (o *options) turns(round int) (all []*run) {
	for _, mean := range rounds.Order(o.Means, round) {
		for _, checkpoints := range rounds.Order([]bool{false, true}, round) {
			all = append(all, &run{Checkpoints: checkpoints, Mean: mean.Seconds(), Round: round})
		}
	}
	return all
}

// session measures on a cluster.
type session struct {
	measured
	cluster  *cluster
	options  *options
	dir      string
	progress io.Writer
	state    []float64 // result of the job, which every run must have
}

// trial runs a trial and requires that the job has the result of the runs before, bit for bit.
func (s *session) trial(ctx context.Context, t trial, limit time.Duration) (*observation, error) {
	t.job = jobArgs{Rows: s.options.Rows, Steps: s.options.Steps, Pause: s.options.Pause, State: s.options.State}
	o, err := s.cluster.run(ctx, t, s.dir, limit)
	if err != nil {
		return nil, err
	}
	if s.state == nil {
		s.state = o.state
	}
	if !slices.EqualFunc(s.state, o.state, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
		return nil, fmt.Errorf("the job has the result %v, and had %v before", o.state, s.state)
	}
	if s.Load == [2]float64{} {
		s.Load = [2]float64{o.load[0], o.load[0]}
	}
	s.Load[0], s.Load[1] = min(s.Load[0], o.load[0], o.load[1]), max(s.Load[1], o.load[0], o.load[1])
	return o, nil
}

// calibrate measures the costs of the job: its time without failures, that of its checkpoints, and
// that of a restart.
func (s *session) calibrate(ctx context.Context) error {
	limit := s.options.Longest
	fmt.Fprintln(s.progress, "no failures, no checkpoints")
	plain, err := s.trial(ctx, trial{}, limit)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.progress, "no failures")
	saved, err := s.trial(ctx, trial{every: s.options.Every}, limit)
	if err != nil {
		return err
	}
	cost, write := saved.checkpoints(s.options.Every)
	if len(cost) == 0 {
		return fmt.Errorf("no checkpoint was seen in %d supersteps: want a smaller --every", s.options.Steps)
	}
	work := plain.wall()
	s.Costs = scenario{
		Work: work, Superstep: work / float64(s.options.Steps), Every: s.options.Every,
		Checkpoint: max(0, rounds.Median(cost)), Write: max(0, rounds.Median(write)),
	}
	fmt.Fprintln(s.progress, "failures at fixed times")
	killed, err := s.trial(ctx, trial{every: s.options.Every, seed: s.options.Seed, failures: regularly(max(work/5, 1), restarts)}, 4*limit)
	if err != nil {
		return err
	}
	down, restart := killed.recoveries()
	if len(down) == 0 {
		return fmt.Errorf("no worker was killed in %.1f s: want more --steps", killed.wall())
	}
	s.Costs.Down, s.Costs.Restart, s.Downs, s.Restarts = rounds.Median(down), rounds.Median(restart), down, restart
	fmt.Fprintf(s.progress, "costs: %+v\n", s.Costs)
	return nil
}

// restarts is the number of restarts that are measured.
const restarts = 8

// regularly returns a number of failures whose times are the multiples of a time. So a job ends
// even if its restart takes longer than that time.
func regularly(apart float64, number int) func(after float64) float64 {
	next, left := 0.0, number
	return func(after float64) float64 {
		for ; next <= after; left-- {
			if next += apart; left == 0 {
				next = math.Inf(1)
			}
		}
		return next
	}
}

// mean returns the mean of all, of which there must be at least one.
func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}

// variants returns the variants that are measured.
func (s *session) variants() []variant {
	without := s.Costs
	without.Every, without.Checkpoint, without.Write = 0, 0, 0
	return []variant{
		{Name: "no checkpoints", of: func(float64) scenario { return without }},
		{Name: fmt.Sprintf("checkpoints every %d supersteps", s.Costs.Every), of: func(float64) scenario { return s.Costs }},
	}
}

// run runs the job with injected failures, unless that would take too long by the simulation.
// Rounds have different failures.
func (s *session) run(ctx context.Context, r *run) error {
	failures := func() *poisson { return newPoisson(r.Mean, s.options.Seed, uint64(r.Round)) }
	scenario := s.variants()[0].of(r.Mean)
	if r.Checkpoints {
		scenario = s.Costs
	}
	longest := s.options.Longest.Seconds()
	r.Predicted = scenario.run(failures().next, longest)
	r.LeftOut = !r.Predicted.Finished || r.Predicted.Wall > longest
	s.Runs = append(s.Runs, r)
	fmt.Fprintf(s.progress, "a failure every %v s, checkpoints %v, round %d: %.1f s by the simulation\n", r.Mean, r.Checkpoints, r.Round+1, r.Predicted.Wall)
	if r.LeftOut {
		return nil
	}
	o, err := s.trial(ctx, trial{every: scenario.Every, seed: uint64(r.Round), failures: failures().next}, 4*s.options.Longest)
	if err != nil {
		return fmt.Errorf("a failure every %v s, checkpoints %v, round %d: %w", r.Mean, r.Checkpoints, r.Round+1, err)
	}
	r.Wall, r.Failures, r.Repeated = o.wall(), o.hits(), o.repeated()
	scenario.Superstep = mean(o.supersteps(scenario.Every))
	scenario.Work = scenario.Superstep * float64(s.options.Steps)
	r.Superstep, r.Goodput = scenario.Superstep, scenario.Work/r.Wall
	r.Simulated = scenario.Work / scenario.run(failures().next, patience*scenario.Work).Wall
	fmt.Fprintf(s.progress, "    %.1f s with %d failures, %d supersteps again\n", r.Wall, r.Failures, r.Repeated)
	return nil
}
