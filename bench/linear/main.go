package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// options are the flags.
type options struct {
	Python  string   `help:"A Python with scikit-learn; without it neither scikit-learn nor Spark takes part." placeholder:"FILE"`
	Problem []string `help:"What to run: dense, sparse, lasso, even, even-lasso, sgd." enum:"dense,sparse,lasso,even,even-lasso,sgd" default:"dense,sparse,lasso,even,even-lasso,sgd"`
	Command string   `name:"liblinear" help:"The training command of liblinear; without it this contestant is left out." default:"liblinear-train" placeholder:"FILE"`
	Spark   bool     `help:"Run Spark MLlib, too: the Python must have pyspark, and there must be Java."`
	Methods []string `help:"Methods of Superstep: Auto, Newton, LBFGS, OWLQN, GD, SGD." default:"Auto"`
	Threads []int    `help:"Numbers of threads, for contestants that support more than one." default:"1,2"`
	Rounds  int      `help:"How often each contestant runs." default:"3"`
	Scale   float64  `help:"Part of the rows to take." default:"1"`
	Seed    uint64   `help:"Seed of the rows." default:"1"`
	Higgs   string   `help:"Rows of the problem sgd: tab-separated, the label first, compressed by gzip." default:"algorithms/objective/testdata/higgs.tsv.gz" placeholder:"FILE"`
	Dir     string   `help:"Where to put the rows, for the time of the run." type:"existingdir" placeholder:"DIR"`
}

// problem is one of the problems.
type problem struct {
	Name  string
	Shape shape
	Lasso bool
}

var problems = []problem{
	{"dense", shape{Layout: rawrows.Layout{Rows: 500_000, Features: 50}}, false},
	{"sparse", shape{Layout: rawrows.Layout{Rows: 200_000, Features: 10_000, PerRow: 50}}, false},
	{"lasso", shape{Layout: rawrows.Layout{Rows: 200_000, Features: 10_000, PerRow: 50}}, true},
	{"even", shape{Layout: rawrows.Layout{Rows: 200_000, Features: 10_000, PerRow: 50}, Even: true}, false},
	{"even-lasso", shape{Layout: rawrows.Layout{Rows: 200_000, Features: 10_000, PerRow: 50}, Even: true}, true},
}

// line is a contestant and its results.
type line struct {
	Title   string
	Method  optim.Method // method of Superstep
	Solver  string       // solver of scikit-learn, or sparkSolver, commandSolver or loopSolver; "" for Superstep
	Threads int
	Rounds  []outcome
}

// tasks are the tasks that a process of this program can run for a contestant.
var tasks = []rounds.Task{rounds.TaskOf(task.run), rounds.TaskOf(sgdTask.run), rounds.TaskOf(commandTask.run), rounds.TaskOf(loopTask.run)}

func main() {
	rounds.Main("linear", func() error {
		var o options
		kong.Parse(&o, kong.Name("linear"), kong.Description("Compares logistic regression on this engine with scikit-learn."), kong.UsageOnError())
		return compare(&o, os.Stdout, os.Stderr)
	}, tasks...)
}

// compare runs the comparisons on the selected problems and prints their tables.
func compare(o *options, out, progress io.Writer) error {
	if o.Rounds < 1 || !(o.Scale > 0 && o.Scale <= 1) {
		return errors.New("want at least 1 round, and a scale above 0 and at most 1")
	}
	if len(o.Threads) == 0 || slices.Min(o.Threads) < 1 {
		return errors.New("want threads of at least 1")
	}
	for _, p := range problems {
		if !slices.Contains(o.Problem, p.Name) {
			continue
		}
		p.Shape.Rows = int(math.Ceil(o.Scale * float64(p.Shape.Rows)))
		if err := o.compareOn(p, out, progress); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	if slices.Contains(o.Problem, stochasticProblem) {
		if err := o.compareStochastic(out, progress); err != nil {
			return fmt.Errorf("%s: %w", stochasticProblem, err)
		}
	}
	return nil
}

// lines lists the contestants of a problem.
func (o *options) lines(p problem) ([]*line, error) {
	var all []*line
	for _, threads := range o.Threads {
		for _, name := range o.Methods {
			m, err := methodOf(name)
			if err != nil {
				return nil, err
			}
			all = append(all, &line{Title: fmt.Sprintf("ours, %s, %d", name, threads), Method: m, Threads: threads})
		}
		if o.Python != "" && !p.Lasso {
			all = append(all, &line{Title: fmt.Sprintf("scikit-learn lbfgs, %d", threads), Solver: "lbfgs", Threads: threads})
		}
		if o.Python != "" && o.Spark {
			all = append(all, &line{Title: fmt.Sprintf("Spark MLlib, %d", threads), Solver: sparkSolver, Threads: threads})
		}
	}
	if !p.Lasso {
		all = append(all, &line{Title: "loop, 1", Solver: loopSolver, Threads: 1})
	}
	if o.Python != "" {
		all = append(all, &line{Title: "scikit-learn liblinear, 1", Solver: "liblinear", Threads: 1})
	}
	if o.command() != "" {
		all = append(all, &line{Title: "liblinear's command, 1", Solver: commandSolver, Threads: 1})
	}
	return all, nil
}

// command returns the path of liblinear's command, or "" if there is none.
func (o *options) command() string {
	path, err := exec.LookPath(o.Command)
	if err != nil {
		return ""
	}
	return path
}

func methodOf(name string) (optim.Method, error) {
	for m := optim.Auto; m <= optim.SGD; m++ {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("there is no method %q", name)
}

// compareOn runs the comparison on one problem and prints its table.
func (o *options) compareOn(p problem, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := generate(dir, p.Shape, o.Seed); err != nil {
		return err
	}
	all, err := o.lines(p)
	if err != nil {
		return err
	}
	if o.command() != "" {
		if err := writeText(dir, p.Shape.Layout); err != nil {
			return err
		}
	}
	err = rounds.Play(all, o.Rounds, p.Name, progress, func(l *line) string { return l.Title }, func(_ int, l *line) error {
		got, err := o.runLine(l, p, dir)
		l.Rounds = append(l.Rounds, got)
		return err
	})
	if err != nil {
		return err
	}
	return print(out, p, all)
}

// runLine runs a contestant in a process of its own.
func (o *options) runLine(l *line, p problem, dir string) (got outcome, err error) {
	s := p.Shape
	penalty := "l2"
	t := task{Dir: dir, Shape: s, L2: 1 / float64(s.Rows), Parallel: l.Threads, Method: l.Method}
	if p.Lasso {
		penalty, t.L1, t.L2 = "l1", t.L2, 0
	}
	var child *exec.Cmd
	switch l.Solver {
	case "":
		child, err = rounds.Self(t)
	case commandSolver:
		child, err = rounds.Self(commandTask{Command: o.command(), Dir: dir, Shape: s, Lasso: p.Lasso})
	case loopSolver:
		child, err = rounds.Self(loopTask{Dir: dir, Shape: s, L2: t.L2})
	case sparkSolver:
		child = exec.Command(o.Python, "-c", sparkScript, dir, strconv.Itoa(s.Rows), strconv.Itoa(s.Features), strconv.Itoa(s.PerRow), penalty, strconv.Itoa(l.Threads))
	default:
		child = exec.Command(o.Python, "-c", sklearnScript, dir, strconv.Itoa(s.Rows), strconv.Itoa(s.Features), strconv.Itoa(s.PerRow), l.Solver, penalty)
		child.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(l.Threads), "OPENBLAS_NUM_THREADS="+strconv.Itoa(l.Threads))
	}
	if err != nil {
		return got, err
	}
	return rounds.Outcome[outcome](child)
}

// optimum returns the lowest value that any contestant reached.
func optimum(all []*line) float64 {
	least := math.Inf(1)
	for _, l := range all {
		for _, r := range l.Rounds {
			for _, p := range r.Trace {
				least = min(least, p.Objective)
			}
		}
	}
	return least
}

// print writes the table. It has the medians and the lowest values over the rounds, and the
// median of the ratios to the figure of the first line in the same round. By default, the first
// line is Superstep with one subtask.
func print(w io.Writer, p problem, all []*line) error {
	least := optimum(all)
	fmt.Fprintf(w, "%s: %d rows × %d features, optimum %.9g; seconds to within %g of it, medians of %d rounds on %d CPUs\n\n",
		p.Name, p.Shape.Rows, p.Shape.Features, least, tolerance, len(all[0].Rounds), runtime.NumCPU())
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "contestant\tmethod\tmedian\tbest\tsteps\tof it survey\treads in all\tpeak memory\ttimes ours, 1\t")
	for _, l := range all {
		var times, ratios []float64
		var steps int
		for i, r := range l.Rounds {
			seconds, n, ok := r.until(least)
			if !ok {
				continue
			}
			times, steps = append(times, seconds), n
			if base, _, ok := all[0].Rounds[i].until(least); ok {
				ratios = append(ratios, seconds/base)
			}
		}
		first := l.Rounds[0]
		if len(times) == 0 {
			fmt.Fprintf(tw, "%s\t%s\tnever\t\t%d\t\t\t%.0f MB\t\t\n", l.Title, first.Method, len(first.Trace), float64(first.Peak)/1e6)
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%.3f\t%.3f\t%d\t%.3f\t%.1f\t%.0f MB\t%.2f\t\n",
			l.Title, first.Method, rounds.Median(times), slices.Min(times), steps, first.Survey, first.Reads, float64(first.Peak)/1e6, rounds.Median(ratios))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, costs(all, least))
	return err
}

// costs returns a text with Superstep's time with one thread divided by the time of the loop,
// for the whole training and without the survey. Each is the median over the rounds of the
// ratio in the same round.
func costs(all []*line, least float64) string {
	at := slices.IndexFunc(all, func(l *line) bool { return l.Solver == loopSolver })
	if at < 0 || all[0].Threads != 1 {
		return ""
	}
	var whole, rest []float64
	for i, loop := range all[at].Rounds {
		ours := all[0].Rounds[i]
		a, _, found := ours.until(least)
		if b, _, ok := loop.until(least); ok && found {
			whole, rest = append(whole, a/b), append(rest, (a-ours.Survey)/(b-loop.Survey))
		}
	}
	return fmt.Sprintf("COST: %s takes %.2f times as long as the loop, %.2f times without the survey\n", all[0].Title, rounds.Median(whole), rounds.Median(rest))
}
