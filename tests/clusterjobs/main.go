//go:build unix

// Command clusterjobs is a program whose job fails on a worker of a cluster, in all ways in
// which user code can fail. The job can also run until another process ends it.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// args are the job's arguments.
type args struct {
	Rows   int64         `default:"2000" help:"Rows to generate."`
	Steps  int           `default:"20" help:"Supersteps."`
	Pause  time.Duration `default:"0s" help:"How long each superstep waits on each subtask."`
	While  string        `help:"File: supersteps wait only while it exists."`
	Fault  string        `enum:"none,error,panic,gopanic,exit,exit0,kill,stop,memory,noise,spin,input,differ,fields" default:"none" help:"What the subtask does at the step: nothing, return an error, panic, panic on a goroutine of its own, end the process with 3 or 0, kill or stop the process, take all memory, write nonsense to its outputs, ignore that the job was cancelled; read an input that is not there; or, from the first step on, make a replicated object differ, or keep fields without a snapshot."`
	At     int           `default:"5" help:"The superstep of the fault."`
	By     int           `default:"1" help:"The subtask of the fault."`
	Text   string        `help:"Text for the job's outputs."`
	Input  string        `help:"CSV file to read."`
	Output string        `help:"CSV file to which all rows are written."`
	Bulk   int64         `help:"Further rows to collect, for clients that are to have much to read."`
	Made   string        `help:"File to which each process appends a line for each row that it generates: the row's number."`
	Trace  string        `help:"File to which subtask 0 appends a line for each superstep: its process, the superstep, and the time in nanoseconds."`
}

// row is a row of the job.
type row struct {
	Key   int64
	Value float64
}

var job = engine.Define("clusterjobs", func(b *engine.Builder, a args) error {
	if a.Fault == "input" {
		engine.Collect(operators.ReadCSV(b, a.Input, operators.CSVOptions{}), "rows")
		return nil
	}
	rows := operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) row {
		a.noteMade(i)
		return row{i % 101, draws.Float64() - 0.5}
	})
	var (
		data   = comqueue.PartitionedRows("rows")
		sums   = shared.Scratch[[]float64]("sums")
		totals = shared.Replicated("totals", shared.Float64s())
	)
	model := comqueue.New(b, "sums").
		InitWithPartitionedData(data, operators.PartitionByHash(rows, "key")).
		Begin(func(ctx *comqueue.ComContext) error {
			totals.Put(ctx, make([]float64, 8))
			return nil
		}).
		Init(func(ctx *comqueue.ComContext) error {
			sums.Put(ctx, make([]float64, 8))
			return nil
		}).
		Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			keys := data.Get(ctx, shard).Ints("key")
			for i, v := range data.Get(ctx, shard).Floats("value") {
				out[keys[i]%8] += v / (1 + float64(ctx.StepNo()))
			}
			return nil
		})).
		Add(comqueue.AllReduce(sums)).
		Do(func(ctx *comqueue.ComContext) error {
			for i, v := range sums.Get(ctx) {
				totals.Get(ctx)[i] += v
			}
			if a.Fault == "differ" && ctx.TaskID() == a.By {
				totals.Get(ctx)[0]++
			}
			return nil
		}).
		Add(comqueue.Named("fault", comqueue.Do(a.fault)))
	if a.Fault == "fields" {
		model.AddNew(func() comqueue.Compute { return &counter{} })
	}
	closed := model.SetMaxIter(a.Steps).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return totals.Get(ctx), nil })).
		Exec()
	if a.Output != "" {
		operators.WriteCSV(rows, a.Output, operators.CSVWriteOptions{})
	}
	if a.Bulk > 0 {
		engine.Collect(operators.Generate(b, a.Bulk, func(draws sharding.Random, i int64) row {
			return row{i, draws.Float64()}
		}), "bulk")
	}
	operators.Print(closed, operators.PrintOptions{})
	engine.Collect(closed, "sums")
	return nil
})

// counter is a stage with a field that is lost with its process.
type counter struct{ calls int }

func (c *counter) Calc(ctx *comqueue.ComContext) error {
	if c.calls++; c.calls != ctx.StepNo() {
		return fmt.Errorf("call %d in superstep %d", c.calls, ctx.StepNo())
	}
	return nil
}

// noteMade appends a line for row i to the file of the argument Made.
func (a args) noteMade(i int64) {
	if a.Made == "" {
		return
	}
	f, err := os.OpenFile(a.Made, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, i)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// fault waits, and then does what the fault named by the arguments says.
func (a args) fault(ctx *comqueue.ComContext) error {
	ctx.Report("step", float64(ctx.StepNo()))
	if a.Trace != "" && ctx.TaskID() == 0 {
		if err := a.trace(ctx.StepNo()); err != nil {
			return err
		}
	}
	if a.pauses() {
		select {
		case <-time.After(a.Pause):
		case <-ctx.Context().Done():
			return ctx.Context().Err()
		}
	}
	if ctx.StepNo() != a.At || ctx.TaskID() != a.By {
		return nil
	}
	switch a.Fault {
	case "error":
		return fmt.Errorf("the fault that was asked for: %s", a.Text)
	case "panic":
		panic("the panic that was asked for")
	case "gopanic":
		go func() { panic("the panic of a goroutine") }()
		time.Sleep(time.Minute)
	case "exit":
		fmt.Fprintln(os.Stderr, "about to exit")
		os.Exit(3)
	case "exit0":
		os.Exit(0)
	case "kill":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stop":
		return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "memory":
		return takeMemory()
	case "noise":
		fmt.Println(strings.Repeat("\x00\x01\xff\x1b[2Jnonsense", 1000))
		fmt.Fprint(os.Stderr, strings.Repeat("no line end ", 10000))
		fmt.Println(a.Text)
	case "spin":
		for { // this loop ignores the cancellation of the job
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// pauses reports whether the superstep waits.
func (a args) pauses() bool {
	if a.While != "" {
		if _, err := os.Stat(a.While); err != nil {
			return false
		}
	}
	return a.Pause > 0
}

// trace appends a line to the file that the arguments name.
func (a args) trace(step int) error {
	f, err := os.OpenFile(a.Trace, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d %d\n", os.Getpid(), step, time.Now().UnixNano())
	return errors.Join(err, f.Close())
}

// takeMemory allocates memory until the Go runtime ends the process. A limit on the address
// space of the process protects the machine.
func takeMemory() error {
	limit := syscall.Rlimit{Cur: 4 << 30, Max: 4 << 30}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	for held := [][]byte{nil}; len(held) > 0; {
		held = append(held, make([]byte, 64<<20))
	}
	return nil
}

func main() { engine.Main(job) }
