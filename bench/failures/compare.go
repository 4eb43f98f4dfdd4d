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
	// Costs has the job as it was measured before the runs, with each way of guarding its state.
	Costs []costs `json:"costs"`
	Runs  []*run  `json:"runs"`
	// Expected has the goodput that the simulation expects of the job with Costs, in their order.
	Expected []curve `json:"expected"`
}

// guard is a way of guarding the state of a job against failures.
type guard string

const (
	noGuard     guard = "no checkpoints"
	checkpoints guard = "checkpoints"
	memory      guard = "states in memory"
)

// costs are the costs of a job with a guard.
type costs struct {
	Guard guard `json:"guard"`
	scenario
	// Downs and Restarts have the times of the restarts that were measured. The scenario has their medians.
	Downs    []float64 `json:"downs,omitempty"`
	Restarts []float64 `json:"restarts,omitempty"`
}

// of returns the costs with a guard.
func (m *measured) of(g guard) *costs {
	return &m.Costs[slices.IndexFunc(m.Costs, func(c costs) bool { return c.Guard == g })]
}

// run is a run of the job on the cluster with injected failures.
type run struct {
	Guard guard   `json:"guard"`
	Mean  float64 `json:"mean"` // time between two failures of the job, in seconds
	Round int     `json:"round"`
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

// withCluster calls f with a cluster and a directory for files, and ends the cluster.
func (o *options) withCluster(ctx context.Context, taskManagers, slots int, f func(c *cluster, dir string) error) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	command := o.Superstep
	if command == "" {
		command = filepath.Join(dir, "superstep")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", command, "github.com/superstep-ml/superstep/cmd/superstep").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	c, err := startCluster(ctx, command, dir, taskManagers, slots)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return f(c, dir)
}

// measure measures the costs of the job, and runs it with injected failures.
func (o *options) measure(ctx context.Context, progress io.Writer) (m *measured, err error) {
	err = o.withCluster(ctx, taskManagers, slots, func(c *cluster, dir string) error {
		s := &session{cluster: c, options: o, dir: dir, progress: progress, measured: measured{CPUs: runtime.NumCPU()}}
		m = &s.measured
		return s.measure(ctx)
	})
	return m, err
}

// measure measures the costs of the job, and runs it with injected failures.
func (s *session) measure(ctx context.Context) error {
	o := s.options
	if err := s.calibrate(ctx); err != nil {
		return fmt.Errorf("measure the costs of the job: %w", err)
	}
	for round := range o.Rounds {
		for _, r := range o.turns(round) {
			if err := s.run(ctx, r); err != nil {
				return err
			}
		}
	}
	var means []float64
	for _, mean := range o.Means {
		means = append(means, mean.Seconds())
	}
	lo, hi := slices.Min(means)/1.5, slices.Max(means)*1.5
	s.Expected = simulated(s.variants(), spread(lo, hi, 25), o.Jobs, o.Seed)
	return nil
}

// turns returns the runs of a round.
func (o *options) turns(round int) (all []*run) {
	for _, mean := range rounds.Order(o.Means, round) {
		for _, g := range rounds.Order([]guard{noGuard, checkpoints, memory}, round) {
			all = append(all, &run{Guard: g, Mean: mean.Seconds(), Round: round})
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

// calibrate measures the costs of the job: its time without failures, that of its checkpoints and copies,
// and that of a restart.
func (s *session) calibrate(ctx context.Context) error {
	limit := s.options.Longest
	fmt.Fprintln(s.progress, "no failures, no checkpoints")
	plain, err := s.trial(ctx, trial{}, limit)
	if err != nil {
		return err
	}
	work := plain.wall()
	without := scenario{Work: work, Superstep: work / float64(s.options.Steps)}
	saved, err := s.calibrateCheckpoints(ctx, without)
	if err != nil {
		return err
	}
	copied, err := s.calibrateMemory(ctx, without)
	if err != nil {
		return err
	}
	without.Down, without.Restart = saved.Down, saved.Restart // all workers are restarted in both cases
	s.Costs = []costs{{Guard: noGuard, scenario: without}, saved, copied}
	fmt.Fprintf(s.progress, "costs: %+v\n", s.Costs)
	return nil
}

// calibrateCheckpoints measures the costs with checkpoints.
func (s *session) calibrateCheckpoints(ctx context.Context, job scenario) (c costs, err error) {
	fmt.Fprintln(s.progress, "no failures, checkpoints")
	saved, err := s.trial(ctx, trial{every: s.options.Every}, s.options.Longest)
	if err != nil {
		return c, err
	}
	cost, write := saved.checkpoints(s.options.Every)
	if len(cost) == 0 {
		return c, fmt.Errorf("no checkpoint was seen in %d supersteps: want a smaller --every", s.options.Steps)
	}
	c = costs{Guard: checkpoints, scenario: job}
	c.Every, c.Checkpoint, c.Write = s.options.Every, max(0, rounds.Median(cost)), max(0, rounds.Median(write))
	_, err = s.calibrateRestarts(ctx, &c, trial{every: s.options.Every})
	return c, err
}

// calibrateMemory measures the costs with states in memory. How often they are copied follows from the
// supersteps that are done again after failures.
func (s *session) calibrateMemory(ctx context.Context, job scenario) (c costs, err error) {
	fmt.Fprintln(s.progress, "no failures, states in memory")
	copied, err := s.trial(ctx, trial{copies: true}, s.options.Longest)
	if err != nil {
		return c, err
	}
	c = costs{Guard: memory, scenario: job}
	killed, err := s.calibrateRestarts(ctx, &c, trial{copies: true})
	if err != nil {
		return c, err
	}
	c.Every = 1 + int(math.Round(2*float64(killed.repeated())/float64(killed.hits())))
	c.Checkpoint = max(0, copied.wall()-job.Work) * float64(c.Every) / float64(s.options.Steps)
	return c, nil
}

// calibrateRestarts measures what restarts take.
func (s *session) calibrateRestarts(ctx context.Context, c *costs, t trial) (*observation, error) {
	fmt.Fprintf(s.progress, "failures at fixed times, %s\n", c.Guard)
	t.seed, t.failures = s.options.Seed, regularly(max(c.Work/5, 1), restarts)
	killed, err := s.trial(ctx, t, 4*s.options.Longest)
	if err != nil {
		return nil, err
	}
	c.Downs, c.Restarts = killed.recoveries()
	if len(c.Downs) == 0 || killed.hits() == 0 {
		return nil, fmt.Errorf("no worker was killed in %.1f s: want more --steps", killed.wall())
	}
	c.Down, c.Restart = rounds.Median(c.Downs), rounds.Median(c.Restarts)
	return killed, nil
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

// variants returns the variants that are measured, in the order of Costs.
func (m *measured) variants() (all []variant) {
	for _, c := range m.Costs {
		name := string(c.Guard)
		if c.Guard == checkpoints {
			name = fmt.Sprintf("checkpoints every %d supersteps", c.Every)
		}
		all = append(all, variant{Name: name, of: func(float64) scenario { return c.scenario }})
	}
	return all
}

// run runs the job with injected failures, unless that would take too long by the simulation.
// Rounds have different failures.
func (s *session) run(ctx context.Context, r *run) error {
	failures := func() *poisson { return newPoisson(r.Mean, s.options.Seed, uint64(r.Round)) }
	scenario := s.of(r.Guard).scenario
	t := trial{copies: r.Guard == memory, seed: uint64(r.Round), failures: failures().next}
	if r.Guard == checkpoints {
		t.every = scenario.Every
	}
	longest := s.options.Longest.Seconds()
	r.Predicted = scenario.run(failures().next, longest)
	r.LeftOut = !r.Predicted.Finished || r.Predicted.Wall > longest
	s.Runs = append(s.Runs, r)
	fmt.Fprintf(s.progress, "a failure every %v s, %s, round %d: %.1f s by the simulation\n", r.Mean, r.Guard, r.Round+1, r.Predicted.Wall)
	if r.LeftOut {
		return nil
	}
	o, err := s.trial(ctx, t, 4*s.options.Longest)
	if err != nil {
		return fmt.Errorf("a failure every %v s, %s, round %d: %w", r.Mean, r.Guard, r.Round+1, err)
	}
	r.Wall, r.Failures, r.Repeated = o.wall(), o.hits(), o.repeated()
	scenario.Superstep = mean(o.supersteps(t.every))
	scenario.Work = scenario.Superstep * float64(s.options.Steps)
	r.Superstep, r.Goodput = scenario.Superstep, scenario.Work/r.Wall
	r.Simulated = scenario.Work / scenario.run(failures().next, patience*scenario.Work).Wall
	fmt.Fprintf(s.progress, "    %.1f s with %d failures, %d supersteps again\n", r.Wall, r.Failures, r.Repeated)
	return nil
}
