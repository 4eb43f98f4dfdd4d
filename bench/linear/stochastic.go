package main

import (
	"bufio"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/engine"
)

// stochasticProblem is the name of the problem that is solved by stochastic gradient descent.
const stochasticProblem = "sgd"

// The parameters of the problem.
const (
	sgdEpochs  = 50
	sgdPenalty = 1e-4
)

// schedules has the schedules of learning rates that both libraries support. Superstep uses its
// default rate. rate is the learning rate of SGDClassifier, which is chosen so that
// SGDClassifier ends near the optimum. The schedule "optimal" of SGDClassifier ignores the
// rate.
var schedules = []struct {
	ours   optim.Schedule
	theirs string
	rate   float64
}{
	{optim.InverseScaling, "invscaling", 0.1},
	{optim.Constant, "constant", 0.001},
	{optim.Optimal, "optimal", 1},
}

// sgdScript trains with SGDClassifier of scikit-learn and prints an outcome.
//
//go:embed sgd.py
var sgdScript string

// sgdTask is a training with the SGD of Superstep.
type sgdTask struct {
	Dir      string
	Layout   rawrows.Layout
	Epochs   int
	Schedule optim.Schedule
	Exact    bool // whether to train to the optimum by Newton's method instead of SGD
}

// run trains on one thread. The time includes the survey and all epochs.
func (t sgdTask) run() (outcome, error) {
	p := logistic.Params{
		VectorCol: rawrows.VectorColumn, LabelCol: rawrows.LabelColumn, L2: sgdPenalty, NoStandardize: true,
		Method: optim.SGD, MaxIter: t.Epochs, Tol: -1, Stochastic: optim.Stochastic{Schedule: t.Schedule},
	}
	if t.Exact {
		p.Method, p.MaxIter, p.Tol = optim.Newton, 100, 1e-12
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows, err := rawrows.Dataset(b, t.Dir, t.Layout)
		if err == nil {
			engine.Collect(logistic.Train(rows, p), "model")
		}
		return err
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1))
	if err != nil {
		return outcome{}, err
	}
	defer result.Release()
	m, err := logistic.ModelOf(result, "model")
	if err != nil {
		return outcome{}, err
	}
	survey, training := result.Queue("logistic.Train facts"), result.Queue("logistic")
	if survey == nil || training == nil {
		return outcome{}, errors.New("the run has no times of its queues")
	}
	out := outcome{Survey: survey.Elapsed.Seconds(), Method: m.Summary.Method, Reads: m.Summary.Reads}
	out.Total = out.Survey + training.Elapsed.Seconds()
	out.Trace = []point{{out.Total, m.Summary.Objective}}
	return out, nil
}

// writeSample writes the files of rows for the table at path, which has tab-separated numbers
// with the label first. It scales features to mean 0 and standard deviation 1, which
// SGDClassifier needs.
func writeSample(path, dir string) (l rawrows.Layout, err error) {
	file, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	var values, labels []float64
	for lines := bufio.NewScanner(text); lines.Scan(); {
		cells := strings.Split(lines.Text(), "\t")
		if l.Rows++; l.Rows > 1 && len(cells) != 1+l.Features {
			return l, fmt.Errorf("%s: line %d has %d cells, the first one %d", path, l.Rows, len(cells), 1+l.Features)
		}
		l.Features = len(cells) - 1
		for i, cell := range cells {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return l, fmt.Errorf("%s: line %d: %w", path, l.Rows, err)
			}
			if i == 0 {
				labels = append(labels, v)
			} else {
				values = append(values, v)
			}
		}
	}
	if l.Rows == 0 {
		return l, fmt.Errorf("%s has no rows", path)
	}
	for j := range l.Features {
		var mean, square float64
		for i := range l.Rows {
			mean += values[i*l.Features+j] / float64(l.Rows)
		}
		for i := range l.Rows {
			apart := values[i*l.Features+j] - mean
			square += float64(apart*apart) / float64(l.Rows)
		}
		for i := range l.Rows {
			values[i*l.Features+j] = (values[i*l.Features+j] - mean) / math.Sqrt(square)
		}
	}
	out, err := rawrows.Create(dir)
	if err != nil {
		return l, err
	}
	for _, v := range values {
		out.Value(v)
	}
	for _, y := range labels {
		out.Label(y)
	}
	return l, out.Close()
}

// compareStochastic runs the comparison of SGD and prints its table. Every second round runs
// the contestants in reverse order.
func (o *options) compareStochastic(out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	layout, err := writeSample(o.Higgs, dir)
	if err != nil {
		return err
	}
	exact, err := runSelf(sgdTask{Dir: dir, Layout: layout, Exact: true})
	if err != nil {
		return err
	}
	least := exact.Trace[0].Objective
	type contestant struct {
		title string
		run   func() (outcome, error)
		times []float64
		gap   float64 // the largest relative distance from the optimum
	}
	var all []*contestant
	for _, s := range schedules {
		all = append(all, &contestant{title: "ours, " + s.theirs, run: func() (outcome, error) {
			return runSelf(sgdTask{Dir: dir, Layout: layout, Epochs: sgdEpochs, Schedule: s.ours})
		}})
		if o.Python != "" {
			all = append(all, &contestant{title: "SGDClassifier, " + s.theirs, run: func() (outcome, error) {
				child := exec.Command(o.Python, "-c", sgdScript, dir, strconv.Itoa(layout.Rows), strconv.Itoa(layout.Features),
					strconv.Itoa(sgdEpochs), s.theirs, fmt.Sprint(s.rate), fmt.Sprint(sgdPenalty))
				child.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
				return rounds.Outcome[outcome](child)
			}})
		}
	}
	err = rounds.Play(all, o.Rounds, stochasticProblem, progress, func(c *contestant) string { return c.title }, func(_ int, c *contestant) error {
		got, err := c.run()
		if err != nil {
			return err
		}
		last := got.Trace[len(got.Trace)-1]
		c.times, c.gap = append(c.times, last.Seconds), max(c.gap, last.Objective/least-1)
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d rows × %d features, optimum %.9g; milliseconds of %d epochs on a thread, medians of %d rounds\n\n",
		stochasticProblem, layout.Rows, layout.Features, least, sgdEpochs, o.Rounds)
	tw := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "contestant\tmedian\tbest\tabove the optimum\t")
	for _, c := range all {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.1e\t\n", c.title, 1000*rounds.Median(c.times), 1000*slices.Min(c.times), c.gap)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out)
	return err
}

// runSelf runs a task in a process of its own.
func runSelf(t sgdTask) (got outcome, err error) {
	child, err := rounds.Self(t)
	if err != nil {
		return got, err
	}
	return rounds.Outcome[outcome](child)
}
