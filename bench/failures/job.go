package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// jobArgs are the arguments of the job.
type jobArgs struct {
	Rows  int64         // rows to generate, again in each attempt
	Steps int           // supersteps
	Pause time.Duration // time for which each superstep waits, in place of computing
	State int           // numbers in the state
	// Trace is a file to which subtask 0 appends a line at the beginning of each attempt and after
	// each superstep. All workers must be on the machine that has the file.
	Trace string
}

// row is a row of the job.
type row struct {
	Key   int64
	Value float64
}

// job is a queue whose state depends on all supersteps before.
var job = engine.Define("bench-failures", func(b *engine.Builder, a jobArgs) error {
	rows := operators.PartitionByHash(operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) row {
		return row{i, draws.Float64() - 0.5}
	}), "key")
	var (
		data  = comqueue.PartitionedRows("rows")
		sums  = shared.Scratch[[]float64]("sums")
		state = shared.Replicated("state", shared.Float64s())
	)
	engine.Collect(comqueue.New(b, queue).
		InitWithPartitionedData(data, rows).
		Begin(func(ctx *comqueue.ComContext) error {
			state.Put(ctx, make([]float64, a.State))
			return nil
		}).
		Init(func(ctx *comqueue.ComContext) error {
			sums.Put(ctx, make([]float64, 8))
			return a.record(ctx, 0)
		}).
		Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			for i, v := range data.Get(ctx, shard).Floats("value") {
				out[(i+ctx.StepNo())%8] += v
			}
			return nil
		})).
		Add(comqueue.AllReduce(sums)).
		Do(func(ctx *comqueue.ComContext) error {
			s, add := state.Get(ctx), sums.Get(ctx)
			for i := range s {
				s[i] = 0.875*s[i] + add[i%8]
			}
			return a.wait(ctx)
		}).
		Do(func(ctx *comqueue.ComContext) error { return a.record(ctx, ctx.StepNo()) }).
		SetMaxIter(a.Steps).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return state.Get(ctx)[:8], nil })).
		Exec(), result)
	return nil
})

// Names of the queue and of the result of job.
const (
	queue  = "sums"
	result = "state"
)

// wait waits for the pause of a superstep.
func (a *jobArgs) wait(ctx *comqueue.ComContext) error {
	pause := time.NewTimer(a.Pause)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Context().Done():
		return ctx.Context().Err()
	}
}

// record appends a line to the trace if this is subtask 0. It opens the file each time, as a
// worker that is killed cannot close it.
func (a *jobArgs) record(ctx *comqueue.ComContext, step int) error {
	if ctx.TaskID() != 0 {
		return nil
	}
	f, err := os.OpenFile(a.Trace, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%d %d\n", step, time.Now().UnixNano()); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// record is a line of a trace: the time at which a superstep ended. Step 0 is the time at which
// an attempt had read its rows.
type record struct {
	Step int
	At   time.Time
}

// readTrace reads a trace, also while the job runs.
func readTrace(path string) ([]record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseTrace(text)
}

// parseTrace returns the records of a trace. A last line without its end is left out, as the
// worker may have been killed or may still be writing.
func parseTrace(text []byte) (records []record, err error) {
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return records, nil
		}
		first, second, _ := bytes.Cut(line, []byte(" "))
		step, err := strconv.Atoi(string(first))
		nanos, bad := strconv.ParseInt(string(second), 10, 64)
		if err != nil || bad != nil || step < 0 {
			return nil, fmt.Errorf("line %d of the trace is %q: want a superstep and a time in nanoseconds", number, line)
		}
		records = append(records, record{step, time.Unix(0, nanos)})
		text = rest
	}
}
