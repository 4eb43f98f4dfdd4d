//go:build unix

// Command badjobs is a program whose job fails in ways that affect a whole process: its disk
// space is used up, a function blocks, or the process is interrupted or killed. Tests start the
// program, wait for the line "ready" on its standard error, and check which files it leaves
// behind.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// args are the job's arguments.
type args struct {
	Rows      int64  `default:"20000" help:"Rows to generate."`
	Fault     string `enum:"none,panic,error,watch,ignore" default:"none" help:"What the function does at the row in the middle: nothing, panic, return an error, block until the run is cancelled, or block and ignore that."`
	FileLimit uint64 `help:"Largest file that the process may write, in bytes; 0 is any."`
	Output    string `required:"" help:"CSV file to write."`
}

// Validate checks the arguments. It also sets the file size limit of the process, because it is
// called before the job runs.
func (a args) Validate() error {
	if a.FileLimit == 0 {
		return nil
	}
	// If a write exceeds the limit, the system sends SIGXFSZ. Only if that signal is ignored
	// does the write return an error.
	signal.Ignore(syscall.SIGXFSZ)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: a.FileLimit, Max: a.FileLimit})
}

// row is a row of the job.
type row struct {
	ID   int64
	Text string
}

// ready prints the line that tells the test that the run is in progress. Only the first call
// prints it.
var ready = sync.OnceFunc(func() { fmt.Fprintln(os.Stderr, "ready") })

var job = engine.Define("bad", func(b *engine.Builder, a args) error {
	rows := operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) row {
		return row{i, fmt.Sprintf("%016x", draws.Uint64())}
	})
	// Rows wait in the exchange. If the memory budget is small, the exchange writes them to
	// disk.
	spread := operators.PartitionByHash(rows, "text")
	faulty := operators.MapPartition(spread, func(s *operators.Shard[row], emit func(row)) error {
		for r := range s.Rows() {
			if r.ID == a.Rows/2 {
				if err := fail(s.Context, a.Fault); err != nil {
					return err
				}
			}
			emit(r)
		}
		return nil
	})
	operators.WriteCSV(operators.Rebalance(faulty), a.Output, operators.CSVWriteOptions{})
	return nil
})

// fail does what the given fault says.
func fail(ctx context.Context, fault string) error {
	switch fault {
	case "panic":
		panic("the function panics")
	case "error":
		return fmt.Errorf("the function fails")
	case "watch":
		ready()
		<-ctx.Done()
		return context.Cause(ctx)
	case "ignore":
		ready()
		time.Sleep(time.Hour)
	}
	return nil
}

func main() { engine.Main(job) }
