// Command cluster measures what a superstep costs over four worker processes of a
// cluster on this machine, beside one AllReduce of the same length by the collective
// benchmark, in turn.
//
//	go build -o superstep ./cmd/superstep && go run ./bench/cluster --superstep ./superstep
//
// A superstep here computes nothing and reduces eight float64; with a criterion, all
// subtasks learn its verdict besides.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// args are those of the job.
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
		Add(comqueue.Named("preallocate", func(ctx *comqueue.ComContext) error {
			if ctx.StepNo() == 1 {
				sums.Put(ctx, make([]float64, 8))
			}
			return nil
		})).
		Add(comqueue.AllReduce(sums)).
		SetMaxIter(a.Steps).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]result, error) { return []result{{sums.Get(ctx)[0]}}, nil }))
	if a.Criterion {
		q.SetCompareCriterionOfNode0(func(*comqueue.ComContext) (bool, error) { return false, nil })
	}
	operators.Collect(b, "sum", q.Exec())
	return nil
})

// flags are the command line.
type flags struct {
	Superstep string `required:"" type:"path" help:"The superstep binary."`
	Workers   int    `default:"4" help:"Worker processes."`
	Steps     int    `default:"5000" help:"Supersteps of a run."`
	Rounds    int    `default:"5" help:"Rounds; the figures are medians."`
	Cluster   string `help:"Job manager of a cluster with as many task managers, spread, as workers (superstep dev --taskmanagers 4 --slots 1)." required:""`
}

func main() {
	engine.WorkerMain(job)
	var f flags
	kong.Parse(&f, kong.Description("Measures supersteps over worker processes."))
	if err := run(&f); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run measures in turn and prints the medians and their ratios.
func run(f *flags) error {
	var plain, judged, reduce, ratio, judgedRatio []float64
	for range f.Rounds {
		r, err := f.allReduce()
		if err != nil {
			return err
		}
		p, err := f.superstep(false)
		if err != nil {
			return err
		}
		j, err := f.superstep(true)
		if err != nil {
			return err
		}
		fmt.Printf("allreduce %8.1f µs   superstep %8.1f µs (%.2f)   with criterion %8.1f µs (%.2f)\n", r, p, p/r, j, j/r)
		reduce, plain, judged = append(reduce, r), append(plain, p), append(judged, j)
		ratio, judgedRatio = append(ratio, p/r), append(judgedRatio, j/r)
	}
	fmt.Printf("medians: allreduce %.1f µs, superstep %.1f µs = %.2f x, with criterion %.1f µs = %.2f x\n",
		median(reduce), median(plain), median(ratio), median(judged), median(judgedRatio))
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// superstep returns the microseconds of a superstep on the cluster.
func (f *flags) superstep(criterion bool) (float64, error) {
	r, err := engine.Run(context.Background(), job, args{f.Steps, criterion},
		engine.Cluster(f.Cluster), engine.Parallelism(f.Workers))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	q := r.Queue("empty")
	return float64(q.Elapsed) / float64(time.Microsecond) / float64(q.Supersteps), nil
}

// allReduce returns the microseconds of an AllReduce of eight float64 by the collective
// benchmark: the median.
func (f *flags) allReduce() (float64, error) {
	cmd := exec.Command(f.Superstep, "bench", "collective", "-p", strconv.Itoa(f.Workers), "-b", "64", "-e", "64", "--json", "--no-raw")
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
