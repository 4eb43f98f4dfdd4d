// Superstep is the command line of the engine: at present its benchmarks.
//
//	superstep bench collective --ranks 4
//	superstep bench collective --simulate --ranks 4096 --network two-tier
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the whole command line.
type cli struct {
	Bench struct {
		Collective collectiveCommand `cmd:"" help:"Time collectives among processes on this machine or several, check their results, or price them on networks that are not there."`
	} `cmd:"" help:"Measure."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	// Whoever reads the output may stop (head): then writing fails, and the command ends
	// in good order instead of leaving its processes and files.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is what is wrong with the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// quietError is an error that whoever is to know it knows.
type quietError struct{ error }

func (e quietError) Unwrap() error { return e.error }

// run does what the arguments say and returns the exit code: 2 for a command line
// that cannot be, 1 for anything else that went wrong.
func run(ctx context.Context, args []string, out, errOut *os.File) int {
	var c cli
	exited, code := false, 0
	parser, err := kong.New(&c, kong.Name("superstep"),
		kong.Description("Superstep: iterative computation over partitioned data."),
		kong.Writers(out, errOut), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(n int) { exited, code = true, n }))
	if err != nil {
		fmt.Fprintln(errOut, "superstep:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		fmt.Fprintln(errOut, "superstep:", err)
		return 2
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(&streams{out, errOut})
	if err == nil {
		return 0
	}
	if !errors.As(err, new(quietError)) {
		fmt.Fprintln(errOut, "superstep:", err)
	}
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// streams are where output goes.
type streams struct{ out, err *os.File }
