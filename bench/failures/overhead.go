package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// trainingArgs are the arguments of the job training.
type trainingArgs struct {
	Algorithm string
	Rows      int64
	Steps     int
	Clusters  int // of k-means
}

// labelled is a row of training.
type labelled struct {
	X []float64
	Y int64
}

// training trains a model for a fixed number of supersteps.
var training = engine.Define("bench-overhead", func(b *engine.Builder, a trainingArgs) error {
	rows := operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) labelled {
		p := labelled{X: make([]float64, 16)}
		for j := range p.X {
			p.X[j] = draws.NormFloat64() + float64(i%7*int64(j%3))
		}
		if p.X[0]+2*draws.NormFloat64() > 0 {
			p.Y = 1
		}
		return p
	})
	switch a.Algorithm {
	case "k-means":
		engine.Collect(kmeans.Train(rows, kmeans.Params{VectorCol: "x", K: a.Clusters, Init: kmeans.Random, MaxIter: a.Steps, Tol: -1}), "model")
	case "logistic regression":
		engine.Collect(logistic.Train(rows, logistic.Params{VectorCol: "x", LabelCol: "y", Method: optim.GD, MaxIter: a.Steps, Tol: 1e-300, LossTol: 1e-300}), "model")
	case "boosted trees":
		engine.Collect(gbdt.Train(rows, gbdt.Params{VectorCol: "x", LabelCol: "y", Objective: gbdt.Logistic, NumTrees: a.Steps, MaxDepth: 6, NoTrainMetrics: true}), "model")
	default:
		return fmt.Errorf("there is no algorithm %q here", a.Algorithm)
	}
	return nil
})

// overheadEvery is the time between two checkpoints. It is short, so that a run has several.
const overheadEvery = 2 * time.Second

// options returns the options that guard the state of a job.
func (g guard) options(checkpointDir string) []engine.Option {
	switch g {
	case memory:
		return []engine.Option{engine.Copies(1)}
	case checkpoints:
		return []engine.Option{engine.Copies(0), engine.CheckpointDir(checkpointDir), engine.CheckpointEvery(overheadEvery)}
	default:
		return []engine.Option{engine.Copies(0)}
	}
}

// spent are the seconds that a training took.
type spent struct{ wall, cpu float64 }

// overhead measures the trainings with each guard, in turn, and prints the geometric means of the ratios to
// the seconds without a guard, with confidence intervals of 95 %.
func (o *options) overhead(ctx context.Context, out io.Writer) error {
	return o.withCluster(ctx, taskManagers, slots, func(c *cluster, dir string) error {
		for _, a := range []trainingArgs{{"k-means", o.Rows, 500, 50}, {"logistic regression", o.Rows, 1500, 0}, {"boosted trees", o.Rows, 150, 0}} {
			all := make(map[guard][]spent)
			err := rounds.Play([]guard{noGuard, checkpoints, memory}, o.Overhead, a.Algorithm, os.Stderr, func(g guard) string { return string(g) }, func(_ int, g guard) error {
				s, err := c.train(ctx, a, g.options(filepath.Join(dir, "checkpoints")))
				all[g] = append(all[g], s)
				return err
			})
			if err != nil {
				return err
			}
			for _, g := range []guard{noGuard, memory, checkpoints} {
				fmt.Fprintf(out, "%-20s %-17s supersteps %s   processor %s   load %.1f\n", a.Algorithm, g,
					compared(all[g], all[noGuard], func(s spent) float64 { return s.wall }),
					compared(all[g], all[noGuard], func(s spent) float64 { return s.cpu }), loadAverage())
			}
		}
		return nil
	})
}

// train runs the job training.
func (c *cluster) train(ctx context.Context, a trainingArgs, guard []engine.Option) (s spent, err error) {
	before, err := c.cpu(ctx)
	if err != nil {
		return s, err
	}
	r, err := engine.Run(ctx, training, a, append(guard, engine.Cluster(c.address), engine.ClusterTokenFile(c.token), engine.Parallelism(taskManagers*slots))...)
	if err != nil {
		return s, fmt.Errorf("%w\n%s", err, c.output.tail())
	}
	defer r.Release()
	for _, q := range r.Report.Queues {
		s.wall += q.Elapsed.Seconds()
	}
	after, err := c.cpu(ctx)
	s.cpu = after - before
	return s, err
}

// cpu waits until no worker runs, and returns the seconds of processor time that the cluster has used.
func (c *cluster) cpu(ctx context.Context) (seconds float64, err error) {
	for _, pid := range c.managers {
		err := poll(ctx, func() (bool, error) {
			workers, err := children(pid)
			return len(workers) == 0, err
		})
		if err != nil {
			return 0, err
		}
	}
	for _, pid := range append([]int{c.manager.Process.Pid}, c.managers...) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		ticks, err := processorTicks(text)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		seconds += float64(ticks) / ticksPerSecond
	}
	return seconds, nil
}

// ticksPerSecond is the unit of processor time in /proc of Linux, on all architectures that Go supports.
const ticksPerSecond = 100

// processorTicks returns the processor time of a process and of its children that have ended: the sum of
// fields 14 to 17 of its line in /proc (proc(5)).
func processorTicks(stat []byte) (ticks uint64, err error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from field 3; the name before may have any characters
	if len(fields) < 15 {
		return 0, fmt.Errorf("%d fields after the name, want at least 15", len(fields))
	}
	for _, field := range fields[11:15] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks, nil
}

// compared describes the median of figures, and their ratio to those without a guard.
func compared(of, to []spent, figure func(spent) float64) string {
	pick := func(all []spent) (figures []float64) {
		for _, s := range all {
			figures = append(figures, figure(s))
		}
		return figures
	}
	mean, lo, hi := ratios(pick(of), pick(to))
	return fmt.Sprintf("%6.2f s %+6.1f %% (%+.1f to %+.1f %%)", rounds.Median(pick(of)), 100*(mean-1), 100*(lo-1), 100*(hi-1))
}

// ratios returns the geometric mean of of[i]/to[i], and the bounds of its confidence interval of 95 % by
// Student's distribution.
func ratios(of, to []float64) (mean, lo, hi float64) {
	logs := make([]float64, len(of))
	for i := range of {
		logs[i] = math.Log(of[i] / to[i])
	}
	m, deviation := stat.MeanStdDev(logs, nil)
	half := distuv.StudentsT{Sigma: 1, Nu: float64(len(of) - 1)}.Quantile(0.975) * stat.StdErr(deviation, float64(len(of)))
	return math.Exp(m), math.Exp(m - half), math.Exp(m + half)
}
