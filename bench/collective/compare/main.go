package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// compareCommand has the flags of the program.
type compareCommand struct {
	Superstep  string        `placeholder:"FILE" help:"The command superstep; without it Superstep does not take part."`
	Peers      string        `default:"bench/collective/peers/build" help:"Folder with gloo_bench and mpi_bench."`
	Mpirun     string        `default:"mpirun" help:"Open MPI's launcher."`
	Collective []string      `default:"allreduce,barrier" help:"Collectives to measure, from the list allreduce, broadcast, allgather, reduce_scatter, alltoall and barrier."`
	Ranks      []int         `default:"2,4,8" help:"Numbers of ranks."`
	Bytes      []int         `default:"8,1024,32768,1048576,67108864" help:"Sizes of a rank's larger buffer in bytes; barriers have no size."`
	Algorithm  []string      `placeholder:"NAME" help:"Algorithms of Superstep that take part, besides the algorithm that it chooses itself."`
	Only       []string      `placeholder:"NAME" help:"Contestants that take part; all by default."`
	Rounds     int           `default:"5" help:"How often each contestant runs."`
	Seconds    float64       `default:"0.5" help:"Approximate seconds for which a configuration is measured in a round."`
	Keep       int           `default:"2" help:"Number of configurations of a peer that run after the first round."`
	Limit      time.Duration `default:"2m" help:"How long a contestant may take for one run. A contestant that takes longer is terminated, and does not run again."`
	Deadline   time.Duration `help:"Time after which the comparison ends and prints what it has measured; 0 for no deadline."`
	NoIdle     bool          `help:"Do not measure the processor time of ranks that wait."`
	JSON       bool          `name:"json" help:"Print all figures as JSON instead of tables."`
}

// Validate is called by kong.
func (c *compareCommand) Validate() error {
	if c.Rounds < 1 || c.Keep < 1 || !(c.Seconds > 0) || c.Limit <= 0 || c.Deadline < 0 {
		return errors.New("want at least 1 round and 1 configuration to keep, and times of more than 0")
	}
	for _, p := range c.Ranks {
		if p < 2 {
			return fmt.Errorf("%d ranks have nobody to talk to, want 2 or more", p)
		}
	}
	for _, b := range c.Bytes {
		if b < 8 {
			return fmt.Errorf("%d bytes are no float64, want 8 or more", b)
		}
	}
	return nil
}

// Run is called by kong.
func (c *compareCommand) Run(ctx context.Context) error {
	contestants, err := c.contestants(os.Stderr)
	if err != nil {
		return err
	}
	if c.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Deadline, errDeadline)
		defer cancel()
	}
	return c.comparison(contestants, os.Stderr).run(ctx, os.Stdout)
}

// comparison is a comparison in progress.
type comparison struct {
	*compareCommand
	*report
	progress io.Writer

	// bound returns a context for one run of a contestant. If the run takes too long, the
	// context ends with the cause errTooLong. The process group then gets SIGTERM, and is
	// killed if its first process has not exited after the time grace.
	bound func(context.Context) (context.Context, context.CancelFunc)
	grace time.Duration
}

var (
	errTooLong  = errors.New("it takes too long, and is given up")
	errDeadline = errors.New("the deadline has come")
)

func (c *compareCommand) comparison(contestants []*contestant, progress io.Writer) *comparison {
	return &comparison{
		compareCommand: c, progress: progress, grace: 5 * time.Second,
		report: &report{CPUs: runtime.NumCPU(), Rounds: c.Rounds, Contestants: contestants},
		bound: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, c.Limit, errTooLong)
		},
	}
}

// run measures all points and prints the report. If ctx ends early, it prints what it has
// measured. It measures the processor time of waiting first, because the ratios to quiet peers
// depend on it.
func (c *comparison) run(ctx context.Context, out io.Writer) (err error) {
	if !c.NoIdle {
		err = c.measureIdle(ctx)
	}
	if err == nil {
		err = c.measure(ctx)
	}
	if err != nil {
		c.Ended = err.Error()
	}
	c.sum()
	if !c.JSON {
		return errors.Join(err, c.print(out))
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return errors.Join(err, enc.Encode(c.report))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	var c compareCommand
	k := kong.Parse(&c, kong.Name("compare"), kong.Description("Compares our collectives with those of Gloo and Open MPI."),
		kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	exitOn(k.Run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// contestants returns the contestants whose programs exist. It writes the names of the other
// contestants to progress.
func (c *compareCommand) contestants(progress io.Writer) ([]*contestant, error) {
	var found []*contestant
	for _, k := range allContestants(c) {
		k.IdleCPU = -1
		if len(c.Only) > 0 && !slices.Contains(c.Only, k.Name) {
			continue
		}
		missing := ""
		for _, program := range k.needs {
			if program == "" {
				missing = "no program given"
			} else if _, err := exec.LookPath(program); err != nil {
				missing = fmt.Sprintf("no %s", filepath.Base(program))
			}
		}
		if missing != "" {
			fmt.Fprintf(progress, "%s does not take part: %s\n", k.Name, missing)
			continue
		}
		found = append(found, k)
	}
	if len(found) == 0 {
		return nil, errors.New("nobody takes part: build the programs as the documentation says, and check --only")
	}
	return found, nil
}
