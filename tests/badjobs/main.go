//go:build unix

// Command badjobs is a program whose jobs fail in ways that need a whole process: they run out
// of disk, block, and are interrupted or killed. Its tests start it, wait for the line "ready"
// on standard error, and check what it leaves behind.
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

// Validate also sets the limit before the job runs, as it is a limit of the process.
func (a args) Validate() error {
	if a.FileLimit == 0 {
		return nil
	}
	// Beyond the limit the system sends a signal. Only if the signal is ignored does writing
	// fail.
	signal.Ignore(syscall.SIGXFSZ)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: a.FileLimit, Max: a.FileLimit})
}

// row is a row of the job.
type row struct {
	ID   int64
	Text string
}

// ready tells the test, once, that the run is in progress.
var ready = sync.OnceFunc(func() { fmt.Fprintln(os.Stderr, "ready") })

var job = engine.Define("bad", func(b *engine.Builder, a args) error {
	rows := operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) row {
		return row{i, fmt.Sprintf("%016x", draws.Uint64())}
	})
	// Rows wait in the exchange, on disk if the budget is small.
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

// fail commits the given fault.
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
