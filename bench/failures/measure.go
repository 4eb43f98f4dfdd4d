package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/engine"
)

// trial is one run of the job on the cluster.
type trial struct {
	job   jobArgs
	every int // supersteps between two checkpoints; 0 means none
	// copies says that states are copied to the memory of the other worker.
	copies bool
	// failures returns the time of the first failure after a time. Times are in seconds from the
	// first superstep, and infinite if there is none. nil means that nothing is killed.
	failures func(after float64) float64
	seed     uint64 // decides which worker is killed
}

// observation is what was seen of a trial.
type observation struct {
	records  []record
	kills    []kill
	deployed []time.Time       // when attempts were deployed
	complete map[int]time.Time // superstep -> when its checkpoint was complete
	state    []float64         // result of the job
	was      string            // last state of the job, for progress
	load     [2]float64        // load average before and after
}

// kill is a failure that was injected.
type kill struct {
	At  time.Time
	Hit bool // false if no worker ran where the failure was due
}

// run runs a trial, whose files lie in a new directory inside dir.
func (c *cluster) run(ctx context.Context, t trial, dir string, limit time.Duration) (o *observation, err error) {
	if dir, err = os.MkdirTemp(dir, "trial-"); err != nil {
		return nil, err
	}
	t.job.Trace = filepath.Join(dir, "trace")
	if err := os.WriteFile(t.job.Trace, nil, 0o600); err != nil {
		return nil, err
	}
	o = &observation{complete: make(map[int]time.Time)}
	o.load[0] = loadAverage()
	options := []engine.Option{
		engine.Cluster(c.address), engine.ClusterTokenFile(c.token), engine.Parallelism(taskManagers * slots),
		// An attempt that has run at all is stable, so that the delay is never doubled.
		engine.Copies(0),
		engine.Restarts(engine.Restart{Delay: restartDelay, Window: time.Millisecond}),
		engine.OnProgress(o.progress),
	}
	if t.copies {
		options = append(options, engine.Copies(1))
	}
	checkpoints := filepath.Join(dir, "checkpoints")
	if t.every > 0 {
		options = append(options, engine.CheckpointDir(checkpoints), engine.CheckpointSupersteps(t.every))
	}
	life, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the job did not end within %v", limit))
	defer cancel()
	during, end := context.WithCancelCause(life)
	var beside sync.WaitGroup
	if t.failures != nil {
		beside.Go(func() { end(o.inject(during, c, &t)) })
	}
	if t.every > 0 {
		beside.Go(func() { o.watch(during, checkpoints) })
	}
	r, err := engine.Run(during, job, t.job, options...)
	end(errOver)
	beside.Wait()
	if r != nil {
		defer r.Release()
	}
	if cause := context.Cause(during); cause != errOver {
		err = errors.Join(cause, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c.output.tail())
	}
	if o.state, err = engine.Rows[float64](r, result); err != nil {
		return nil, err
	}
	o.load[1] = loadAverage()
	o.records, err = readTrace(t.job.Trace)
	if err == nil {
		err = o.check(t.job.Steps)
	}
	return o, errors.Join(err, os.RemoveAll(dir))
}

// errOver ends what runs beside a job that has ended.
var errOver = errors.New("the job has ended")

// restartDelay is the time that the job manager waits before it restarts the job. It is shorter
// than the default of a second because everything here is shorter than in a real job.
const restartDelay = 100 * time.Millisecond

// progress is called with the progress of the job, at once when its state has changed.
func (o *observation) progress(p engine.Progress) {
	if p.State == "deploying" && o.was != p.State {
		o.deployed = append(o.deployed, time.Now())
	}
	o.was = p.State
}

// inject kills workers at the times of t.failures, until ctx ends. It returns an error if it
// cannot.
func (o *observation) inject(ctx context.Context, c *cluster, t *trial) error {
	var began time.Time
	err := poll(ctx, func() (bool, error) {
		records, err := readTrace(t.job.Trace)
		if len(records) > 0 {
			began = records[0].At
		}
		return len(records) > 0, err
	})
	if err != nil {
		return err
	}
	draw := rand.New(rand.NewPCG(t.seed, 0))
	for at := t.failures(0); ; at = t.failures(at) {
		if math.IsInf(at, 1) {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		due := time.NewTimer(time.Until(began.Add(time.Duration(at * float64(time.Second)))))
		select {
		case <-due.C:
		case <-ctx.Done():
			due.Stop()
			return context.Cause(ctx)
		}
		hit, err := c.kill(draw.IntN(taskManagers))
		if err != nil {
			return err
		}
		o.kills = append(o.kills, kill{time.Now(), hit})
	}
}

// watch records when checkpoints are complete, until ctx ends. A checkpoint is complete when its
// manifest is there.
func (o *observation) watch(ctx context.Context, dir string) {
	known := make(map[string]bool)
	_ = poll(ctx, func() (bool, error) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false, nil // not there yet, or no longer
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "checkpoint-") || known[e.Name()] {
				continue
			}
			now := time.Now()
			known[e.Name()] = true
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				continue // it was replaced by newer ones
			}
			var manifest struct{ Queues []struct{ Superstep int } }
			if json.NewDecoder(strings.NewReader(string(text))).Decode(&manifest) == nil && len(manifest.Queues) == 1 {
				o.complete[manifest.Queues[0].Superstep] = now
			}
		}
		return false, nil
	})
}

// check returns an error unless the trace is that of a job that did all its supersteps in order:
// each attempt begins with a superstep that was done before, or with the one after it.
func (o *observation) check(steps int) error {
	last := 0
	for i, r := range o.records {
		switch {
		case i == 0 && r.Step != 0, i > 0 && r.At.Before(o.records[i-1].At):
			return fmt.Errorf("record %d of the trace is %v", i+1, r)
		case r.Step == 0, i > 0 && o.records[i-1].Step == 0 && r.Step <= last+1, r.Step == o.records[i-1].Step+1:
			last = max(last, r.Step)
			continue
		}
		return fmt.Errorf("superstep %d follows superstep %d in the trace", r.Step, o.records[i-1].Step)
	}
	if n := len(o.records); n == 0 || o.records[n-1].Step != steps {
		return fmt.Errorf("the trace of %d supersteps ends early", steps)
	}
	return nil
}

// wall returns the seconds from the beginning of the first superstep to the end of the last one.
func (o *observation) wall() float64 {
	return o.records[len(o.records)-1].At.Sub(o.records[0].At).Seconds()
}

// repeated returns the number of supersteps that were done again after a failure. Supersteps that
// a failure interrupted do not count.
func (o *observation) repeated() (n int) {
	seen := make(map[int]bool)
	for _, r := range o.records {
		if r.Step > 0 && seen[r.Step] {
			n++
		}
		seen[r.Step] = true
	}
	return n
}

// hits returns the number of workers that were killed before the last superstep ended.
func (o *observation) hits() (n int) {
	end := o.records[len(o.records)-1].At
	for _, k := range o.kills {
		if k.Hit && k.At.Before(end) {
			n++
		}
	}
	return n
}

// recoveries returns, for each worker that was killed, the seconds from then until the next
// attempt was deployed, and from then until its first superstep.
func (o *observation) recoveries() (down, restart []float64) {
	for _, k := range o.kills {
		i := slices.IndexFunc(o.deployed, func(at time.Time) bool { return at.After(k.At) })
		if !k.Hit || i < 0 {
			continue
		}
		first := slices.IndexFunc(o.records, func(r record) bool { return r.Step == 0 && r.At.After(o.deployed[i]) })
		if first < 0 {
			continue
		}
		down = append(down, o.deployed[i].Sub(k.At).Seconds())
		restart = append(restart, o.records[first].At.Sub(o.deployed[i]).Seconds())
	}
	return down, restart
}

// supersteps returns the seconds that each superstep took, without those that a failure
// interrupted, and without those after a checkpoint. every is the number of supersteps between
// two checkpoints, or 0.
func (o *observation) supersteps(every int) (took []float64) {
	for i, r := range o.records {
		if r.Step == 0 {
			continue
		}
		if before := o.records[i-1]; every == 0 || before.Step == 0 || before.Step%every != 0 {
			took = append(took, r.At.Sub(before.At).Seconds())
		}
	}
	return took
}

// checkpoints returns the seconds by which the superstep after each checkpoint took longer than
// the median of the others, and the seconds from then until the checkpoint was complete.
func (o *observation) checkpoints(every int) (cost, write []float64) {
	usual := rounds.Median(o.supersteps(every))
	for i, before := range o.records[:len(o.records)-1] {
		complete, known := o.complete[before.Step]
		if after := o.records[i+1]; known && before.Step > 0 && after.Step > 0 {
			more := after.At.Sub(before.At).Seconds() - usual
			cost, write = append(cost, more), append(write, complete.Sub(before.At).Seconds()-max(0, more))
		}
	}
	return cost, write
}

// loadAverage returns the load average of the last minute, or 0 where it is not known.
func loadAverage() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	if err != nil {
		return 0
	}
	return load
}
