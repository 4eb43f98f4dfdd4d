package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/engine"
)

// Sizes of the job that recovers. Its cluster has task managers with one slot, one of them to spare.
const (
	recoverWorkers  = 4
	recoverClusters = 100
	undisturbed     = 3 * time.Second // time for which the job runs after each recovery
	lookAgain       = time.Second     // time between two looks at it: each starts a process beside it
	recoverLimit    = 2 * time.Minute
)

// disruption makes a job stand still.
type disruption struct {
	name  string
	begin func(ctx context.Context, d *disrupted) (at time.Time, err error) // at is zero if the job chooses the time
	end   func(ctx context.Context, d *disrupted) error                     // once the job has recovered; nil if there is nothing to do
}

// disruptions are what happens in each round, in order.
var disruptions = []disruption{
	{"worker killed", func(_ context.Context, d *disrupted) (time.Time, error) {
		return time.Now(), d.signal(syscall.SIGKILL)
	}, nil},
	{"worker stopped", func(_ context.Context, d *disrupted) (time.Time, error) {
		return time.Now(), d.signal(syscall.SIGSTOP)
	}, nil},
	{"drained", func(ctx context.Context, d *disrupted) (time.Time, error) {
		return time.Time{}, d.command(ctx, nil, "drain", d.taskManager())
	}, func(ctx context.Context, d *disrupted) error {
		return d.command(ctx, nil, "uncordon", d.drained)
	}},
	{"scaled from 4 to 3", func(ctx context.Context, d *disrupted) (time.Time, error) {
		return time.Time{}, d.command(ctx, nil, "scale", d.job.ID, "3")
	}, nil},
	{"scaled from 3 to 4", func(ctx context.Context, d *disrupted) (time.Time, error) {
		return time.Time{}, d.command(ctx, nil, "scale", d.job.ID, "4")
	}, nil},
}

// disrupted is a job that is disrupted again and again.
type disrupted struct {
	*cluster
	round   int
	drained string // task manager that was drained
	job     shownJob
}

// shownJob is what the command show prints of a job.
type shownJob struct {
	ID      string
	State   string
	Lost    []lostAttempt
	Workers []struct {
		TaskManager string `json:"task_manager"`
	}
	Progress *struct {
		Queues []struct {
			Superstep int
			Ended     bool
		}
	}
}

// lostAttempt is an attempt that was lost, or that ended so that the job moves.
type lostAttempt struct {
	Number   int
	Ended    time.Time
	Recovery struct{ Agreed, Placed, Connected, Moved, Resumed time.Time } // when the phases of the recovery ended
}

// phases are the names of the phases, in order.
var phases = [...]string{"agreed", "placed", "connected", "moved", "resumed"}

// seconds are those until the end of each phase.
type seconds [len(phases)]float64

// since returns the seconds from a time until the end of each phase.
func (l *lostAttempt) since(at time.Time) (took seconds) {
	r := &l.Recovery
	for i, end := range []time.Time{r.Agreed, r.Placed, r.Connected, r.Moved, r.Resumed} {
		if !end.IsZero() {
			took[i] = end.Sub(at).Seconds()
		}
	}
	return took
}

// recover measures how long the job stands still after each disruption.
func (o *options) recover(ctx context.Context, out io.Writer) error {
	return o.withCluster(ctx, recoverWorkers+1, 1, func(c *cluster, dir string) (err error) {
		during, end := context.WithCancelCause(ctx)
		var beside sync.WaitGroup
		beside.Go(func() {
			r, err := engine.Run(during, training, trainingArgs{"k-means", o.Rows, 1 << 20, recoverClusters},
				engine.Cluster(c.address), engine.ClusterTokenFile(c.token), engine.ParallelismRange(recoverWorkers-1, recoverWorkers),
				engine.CheckpointDir(filepath.Join(dir, "checkpoints")), engine.CheckpointEvery(time.Hour),
				engine.Restarts(engine.Restart{Delay: restartDelay, Window: time.Millisecond}))
			if err == nil {
				r.Release()
				err = errors.New("the job has ended")
			}
			end(err)
		})
		took, err := o.disrupt(during, c)
		if cause := context.Cause(during); cause != nil {
			err = errors.Join(cause, fmt.Errorf("%s", c.output.tail()))
		}
		end(errOver)
		beside.Wait()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "median and slowest of %d; load %.1f\n", o.Recover, loadAverage())
		for _, d := range disruptions {
			fmt.Fprintf(out, "%-20s", d.name)
			for i, phase := range phases {
				var all []float64
				for _, round := range took[d.name] {
					all = append(all, round[i])
				}
				slices.Sort(all)
				fmt.Fprintf(out, "  %s %.2f %.2f s", phase, all[(len(all)-1)/2], all[len(all)-1])
			}
			fmt.Fprintln(out)
		}
		return nil
	})
}

// disrupt disrupts the job that runs on a cluster. took has the seconds of the phases, by disruption.
func (o *options) disrupt(ctx context.Context, c *cluster) (took map[string][]seconds, err error) {
	took = make(map[string][]seconds)
	d := &disrupted{cluster: c}
	for d.round = range o.Recover {
		for _, what := range disruptions {
			until, err := d.once(ctx, what)
			if err != nil {
				return nil, fmt.Errorf("round %d: %s: %w", d.round+1, what.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %.2f s\n", d.round+1, o.Recover, what.name, until)
			took[what.name] = append(took[what.name], until)
		}
	}
	return took, nil
}

// once disrupts the job when it has run undisturbed for a while, and returns the seconds of the phases of
// its recovery.
func (d *disrupted) once(ctx context.Context, what disruption) (took seconds, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverLimit, fmt.Errorf("the job does not run: %+v", d.job))
	defer cancel()
	if err := d.await(ctx, d.runs); err != nil {
		return took, err
	}
	select {
	case <-time.After(undisturbed):
	case <-ctx.Done():
		return took, context.Cause(ctx)
	}
	before := len(d.job.Lost)
	var last int
	if before > 0 {
		last = d.job.Lost[before-1].Number
	}
	at, err := what.begin(ctx, d)
	if err != nil {
		return took, err
	}
	var lost lostAttempt
	err = d.await(ctx, func() bool {
		if n := len(d.job.Lost); n > 0 {
			lost = d.job.Lost[n-1]
		}
		return lost.Number > last && !lost.Recovery.Resumed.IsZero()
	})
	if err != nil {
		return took, err
	}
	if at.IsZero() {
		at = lost.Ended
	}
	took = lost.since(at)
	if what.end != nil {
		err = what.end(ctx, d)
	}
	return took, err
}

// runs reports whether all workers run, and a queue has done a superstep.
func (d *disrupted) runs() bool {
	if d.job.State != "running" || d.job.Progress == nil {
		return false
	}
	for _, q := range d.job.Progress.Queues {
		if q.Superstep > 0 && !q.Ended {
			return true
		}
	}
	return false
}

// await reads the state of the job again and again until done returns true.
func (d *disrupted) await(ctx context.Context, done func() bool) error {
	return poll(ctx, func() (bool, error) {
		if d.job.ID == "" {
			var jobs []struct{ ID string }
			if err := d.command(ctx, &jobs, "list", "-o", "json"); err != nil || len(jobs) == 0 {
				return false, err
			}
			d.job.ID = jobs[0].ID
		}
		var now shownJob
		if err := d.command(ctx, &now, "show", d.job.ID, "-o", "json"); err != nil {
			return false, err
		}
		d.job = now
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
		return done(), nil
	})
}

// command runs a command of superstep, and decodes what it prints unless into is nil.
func (d *disrupted) command(ctx context.Context, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, d.superstep, append(args, "--cluster", d.address, "--token-file", d.token)...)
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// signal sends a signal to the worker whose turn it is in this round.
func (d *disrupted) signal(sig syscall.Signal) error {
	for i := range d.managers {
		hit, err := d.cluster.signal((i+d.round)%len(d.managers), sig)
		if hit || err != nil {
			return err
		}
	}
	return errors.New("there is no worker")
}

// taskManager returns the task manager that is drained in this round. Workers without slots come last.
func (d *disrupted) taskManager() string {
	d.drained = d.job.Workers[d.round%recoverWorkers].TaskManager
	return d.drained
}
