// Superstep is the command-line tool of the engine. It runs and operates clusters, submits and
// observes jobs, trains and applies models, runs built-in jobs, and runs benchmarks.
//
//	superstep dev --taskmanagers 3 --slots 2
//	superstep train logistic --input rows.csv --label bought --model model.json --cluster localhost:6123
//	superstep predict --model model.json --input others.csv --output predicted.csv
//	superstep run kmeans --input points.csv --k 3 --cluster localhost:6123
//	superstep list
//	superstep bench collective --ranks 4
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
	"github.com/superstep-ml/superstep/cmd/internal/commands"
	"github.com/superstep-ml/superstep/engine"
)

// cli has all commands of the binary.
type cli struct {
	commands.Cluster
	Bench struct {
		Collective collectiveCommand `cmd:"" help:"Time collectives among processes on this machine or several, check their results, or predict their times on a simulated network."`
	} `cmd:"" help:"Measure."`
}

func main() {
	engine.WorkerMain(builtin.Jobs()...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after that, a second Ctrl-C ends the process immediately
	// The reader of the output, such as head, may close the pipe. With SIGPIPE ignored, writing
	// then returns an error, and the command stops its processes and removes its temporary files
	// before it ends.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs a command line and returns the exit code: 2 for an invalid command line, and 1 for
// any other error.
func run(ctx context.Context, args []string, out, errOut *os.File) int {
	return commands.Main(ctx, "superstep", "Superstep: iterative computation over partitioned data.", new(cli), args,
		&commands.Streams{Out: out, Err: errOut, Lookup: os.LookupEnv}, &streams{out, errOut})
}

// streams has the standard output and the standard error.
type streams struct{ out, err *os.File }
