// Command cluster measures a cluster of processes on this machine.
//
//	go build -o bin/ ./cmd/superstep
//	bin/superstep dev --taskmanagers 4 --slots 1
//	go run ./bench/cluster --superstep bin/superstep --cluster localhost:6123 supersteps
//
// The command "supersteps" measures the time of a superstep over four worker processes. The
// superstep computes nothing and reduces eight float64. It is measured without and with a
// termination criterion, whose result must reach all subtasks. In turn with these measurements,
// the command measures the time of the same AllReduce in the collective benchmark.
//
// The command "start" measures the time from the submission of a job to the start of all its
// subtasks. By default it needs 200 slots, for example those of superstep dev --taskmanagers 20
// --slots 10.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// args are the arguments of the job.
type args struct {
	Steps     int
	Criterion bool
}

// result is the row that the queue emits.
type result struct{ Sum float64 }

var job = engine.Define("bench-superstep", func(b *engine.Builder, a args) error {
	rows := operators.Range(b, 0, 128)
	sums := shared.Scratch[[]float64]("sums")
	q := comqueue.New(b, "empty").
		InitWithPartitionedData(comqueue.PartitionedRows("rows"), rows).
		Init(func(ctx *comqueue.ComContext) error {
			sums.Put(ctx, make([]float64, 8))
			return nil
		}).
		Add(comqueue.AllReduce(sums)).
		SetMaxIter(a.Steps).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]result, error) { return []result{{sums.Get(ctx)[0]}}, nil }))
	if a.Criterion {
		q.SetCompareCriterionOfNode0(func(*comqueue.ComContext) (bool, error) { return false, nil })
	}
	engine.Collect(q.Exec(), "sum")
	return nil
})

// flags are the flags and commands of the program.
type flags struct {
	Superstep string `required:"" type:"path" help:"The superstep binary."`
	Cluster   string `required:"" help:"Job manager of the cluster."`

	Supersteps superstepsCommand `cmd:"" help:"Measure the time of a superstep. The cluster needs one task manager with one slot for each worker."`
	Start      startCommand      `cmd:"" help:"Measure the time in which a job starts. The cluster needs as many slots as the job's parallelism."`
}

func main() {
	engine.WorkerMain(job, wide)
	var f flags
	command := kong.Parse(&f, kong.Description("Measures a cluster of processes on this machine."))
	if err := command.Run(&f); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// superstepsCommand has the flags of the command supersteps.
type superstepsCommand struct {
	Workers int `default:"4" help:"Worker processes."`
	Steps   int `default:"5000" help:"Supersteps in each run."`
	Rounds  int `default:"5" help:"Rounds; the figures are medians."`
}

// Run measures the AllReduce and the supersteps in turn. It prints medians over the rounds: the
// medians of the times, and the medians of the ratios of the time of a superstep to the time of
// the AllReduce.
func (s *superstepsCommand) Run(f *flags) error {
	var plain, judged, reduce, ratio, judgedRatio []float64
	for range s.Rounds {
		r, err := s.allReduce(f)
		if err != nil {
			return err
		}
		p, err := s.superstep(f, false)
		if err != nil {
			return err
		}
		j, err := s.superstep(f, true)
		if err != nil {
			return err
		}
		fmt.Printf("allreduce %8.1f µs   superstep %8.1f µs (%.2f)   with criterion %8.1f µs (%.2f)\n", r, p, p/r, j, j/r)
		reduce, plain, judged = append(reduce, r), append(plain, p), append(judged, j)
		ratio, judgedRatio = append(ratio, p/r), append(judgedRatio, j/r)
	}
	fmt.Printf("medians: allreduce %.1f µs, superstep %.1f µs = %.2f x, with criterion %.1f µs = %.2f x\n",
		rounds.Median(reduce), rounds.Median(plain), rounds.Median(ratio), rounds.Median(judged), rounds.Median(judgedRatio))
	return nil
}

// superstep runs the job on the cluster and returns the mean time of its supersteps in
// microseconds.
func (s *superstepsCommand) superstep(f *flags, criterion bool) (float64, error) {
	r, err := engine.Run(context.Background(), job, args{s.Steps, criterion},
		engine.Cluster(f.Cluster), engine.Parallelism(s.Workers))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	q := r.Queue("empty")
	return float64(q.Elapsed) / float64(time.Microsecond) / float64(q.Supersteps), nil
}

// allReduce runs the collective benchmark and returns the median time of an AllReduce of eight
// float64, in microseconds.
func (s *superstepsCommand) allReduce(f *flags) (float64, error) {
	cmd := exec.Command(f.Superstep, "bench", "collective", "-p", strconv.Itoa(s.Workers), "-b", "64", "-e", "64", "--json", "--no-raw")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("the collective benchmark: %w", err)
	}
	var line struct {
		Median float64 `json:"p50_us"`
	}
	if err := json.Unmarshal(out, &line); err != nil {
		return 0, fmt.Errorf("the collective benchmark printed %q: %w", out, err)
	}
	return line.Median, nil
}
