package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/engine"
)

// options are the command-line flags.
type options struct {
	Superstep string          `placeholder:"FILE" type:"path" help:"The command superstep (default: built from the source tree that the working directory is in)."`
	Simulate  bool            `help:"Only simulate; start no cluster."`
	From      string          `placeholder:"FILE" help:"Print and draw the results of an earlier run, which its --json wrote."`
	JSON      string          `name:"json" placeholder:"FILE" help:"File for all results."`
	Out       string          `placeholder:"FILE" help:"Picture to draw, whose name ends in .svg, .png or .pdf."`
	Dir       string          `placeholder:"DIR" type:"path" help:"Folder for the files of the cluster, which are deleted at the end (default: the system's temporary directory)."`
	Jobs      int             `default:"1000" help:"Simulated jobs for each point."`
	Seed      uint64          `default:"1" help:"Seed of all failures."`
	Means     []time.Duration `name:"mtbf" default:"3s,6s,12s,24s" help:"Mean times between failures of the job on the cluster."`
	Rounds    int             `default:"2" help:"Runs with each of these, with different failures."`
	Steps     int             `default:"200" help:"Supersteps of the job on the cluster."`
	Pause     time.Duration   `default:"50ms" help:"Time for which a superstep waits, in place of computing."`
	Every     int             `default:"20" help:"Supersteps between two checkpoints of the job on the cluster."`
	Rows      int64           `default:"200000" help:"Rows of the jobs on the cluster."`
	State     int             `default:"1000000" help:"Numbers in its state."`
	Longest   time.Duration   `default:"45s" help:"Leave out runs that take longer by the simulation."`
	Recover   int             `placeholder:"ROUNDS" help:"Measure instead, in this many rounds, how long k-means stands still if a worker is killed, if one is stopped, and if the job moves."`
	Overhead  int             `placeholder:"ROUNDS" help:"Measure instead, in this many rounds, what copies and checkpoints cost k-means, logistic regression and boosted trees."`
}

// Validate is called by kong.
func (o *options) Validate() error {
	switch {
	case o.Jobs < 1 || o.Rounds < 1 || o.Rows < 1 || o.Steps < 2 || o.Every < 1 || o.State < 8 || o.Pause < 0 || o.Longest <= 0:
		return errors.New("want at least 1 of --jobs, --rounds, --rows and --every, 2 --steps, 8 numbers of --state, and times of --pause and --longest that are not negative")
	case o.Recover < 0:
		return errors.New("--recover: want a number of rounds")
	case o.Overhead == 1 || o.Overhead < 0:
		return errors.New("--overhead: an interval needs at least 2 rounds")
	case len(o.Means) == 0 || slices.Min(o.Means) <= 0:
		return errors.New("--mtbf: want positive times")
	case o.From != "" && (o.Simulate || o.JSON != ""):
		return errors.New("--from only prints and draws: leave out --simulate and --json")
	}
	return validPicture(o.Out)
}

// results has all results.
type results struct {
	Simulated []curve   `json:"simulated"`
	Table     []curve   `json:"table"`              // at the points of the printed table
	Measured  *measured `json:"measured,omitempty"` // nil if no cluster was started
}

func main() {
	engine.WorkerMain(job, training)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	kong.Parse(&o, kong.Name("failures"), kong.Description("Measures and simulates which part of the time of a job is useful if its workers fail."), kong.UsageOnError())
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "failures:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) (err error) {
	switch {
	case o.Recover > 0:
		return o.recover(ctx, os.Stdout)
	case o.Overhead > 0:
		return o.overhead(ctx, os.Stdout)
	}
	r := new(results)
	if o.From != "" {
		if r, err = readResults(o.From); err != nil {
			return err
		}
	} else {
		all := variants(long)
		r.Simulated = simulated(all, spread(shortest, longest, 60), o.Jobs, o.Seed)
		r.Table = simulated(all, jobMeans(), o.Jobs, o.Seed)
		if !o.Simulate {
			if r.Measured, err = o.measure(ctx, os.Stderr); err != nil {
				return err
			}
		}
		if o.JSON != "" {
			if err := writeResults(o.JSON, r); err != nil {
				return err
			}
		}
	}
	if err := r.print(os.Stdout); err != nil || o.Out == "" {
		return err
	}
	return r.draw(o.Out)
}

// readResults reads what writeResults wrote.
func readResults(path string) (*results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: want a file that --json wrote", path, err)
	}
	return r, nil
}

// writeResults writes all results as JSON.
func writeResults(path string, r *results) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(rounds.PrintJSON(f, r), f.Close())
}
