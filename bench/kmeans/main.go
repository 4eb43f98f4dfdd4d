package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// options are the flags.
type options struct {
	Rows       int       `default:"1000000" help:"Rows to generate."`
	Features   int       `default:"16" help:"Features of a row."`
	Clusters   int       `short:"k" default:"10" help:"Clusters to find."`
	Components int       `default:"8" help:"Normal distributions to draw the rows from."`
	Iterations int       `default:"20" help:"How often the centres are moved."`
	Shapes     []string  `placeholder:"ROWSxFEATURESxCLUSTERS" help:"Several sizes in place of rows, features and clusters; components are then three quarters of the clusters."`
	Noise      []float64 `default:"0.5,0.7" help:"Standard deviations of the clusters, one table each."`
	Uniform    bool      `help:"Add a table of uniform rows, which have no clusters."`
	Single     bool      `help:"Have the engine take part in single precision, too."`
	Rounds     int       `default:"5" help:"How often each contestant runs."`
	Seed       uint64    `default:"1" help:"Seed of the rows."`
	Python     string    `placeholder:"FILE" help:"A Python with scikit-learn; without it scikit-learn does not take part."`
	Dir        string    `placeholder:"DIR" help:"Where to write the rows for the time of the run; the system's temporary directory by default."`
	JSON       bool      `name:"json" help:"Print all figures as JSON instead of tables."`
	Check      bool      `help:"Exit with 1 where a budget is exceeded."`
}

// Validate is called by kong.
func (o *options) Validate() error {
	switch {
	case o.Features < 1, o.Components < 1, o.Clusters < 2, o.Iterations < 1, o.Rounds < 1:
		return errors.New("want at least 1 feature, 1 component, 2 clusters, 1 iteration and 1 round")
	case o.Rows < o.Clusters:
		return fmt.Errorf("want at least as many rows as clusters, %d", o.Clusters)
	case len(o.Noise) == 0:
		return errors.New("want at least one noise")
	}
	for _, v := range o.Noise {
		if !(v >= 0 && v <= math.MaxFloat32) {
			return fmt.Errorf("noise is %v, want 0 or more", v)
		}
	}
	_, err := o.problems()
	return err
}

// problem describes the rows for which a table is printed.
type problem struct {
	shape
	noise float64 // standard deviation of the features in each component of a mixture
}

// problems returns the problems for which tables are printed: every shape with every noise, and
// with o.Uniform every shape with uniform rows.
func (o *options) problems() (all []problem, err error) {
	shapes := []shape{{o.Rows, o.Features, o.Clusters, o.Components, o.Iterations}}
	if len(o.Shapes) > 0 {
		shapes = nil
	}
	for _, text := range o.Shapes {
		s := shape{Moves: o.Iterations}
		if n, err := fmt.Sscanf(text, "%dx%dx%d", &s.Rows, &s.Features, &s.Clusters); n != 3 || err != nil {
			return nil, fmt.Errorf("shape %q: want ROWSxFEATURESxCLUSTERS, such as 1000000x32x64", text)
		}
		if s.Features < 1 || s.Clusters < 2 || s.Rows < s.Clusters {
			return nil, fmt.Errorf("shape %q: want at least 1 feature, 2 clusters, and as many rows as clusters", text)
		}
		s.Components = max(s.Clusters*3/4, 1)
		shapes = append(shapes, s)
	}
	for _, s := range shapes {
		for _, noise := range o.Noise {
			all = append(all, problem{s, noise})
		}
		if s.Components = 0; o.Uniform {
			all = append(all, problem{s, 0})
		}
	}
	return all, nil
}

// tasks are the tasks that a process of this program can run for a contestant.
var tasks = []rounds.Task{rounds.TaskOf(task.measure)}

func main() {
	rounds.Main("kmeans", func() error {
		var o options
		kong.Parse(&o, kong.Name("kmeans"), kong.Description("Compares k-means on this engine with a hand-written loop and scikit-learn."), kong.UsageOnError())
		within, err := compare(&o, os.Stdout, os.Stderr)
		if err == nil && o.Check && !within {
			os.Exit(1)
		}
		return err
	}, tasks...)
}

// compare runs all comparisons and prints their tables. It reports whether the engine stayed
// within all budgets.
func compare(o *options, out, progress io.Writer) (within bool, err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var tables []*table
	within = true
	problems, err := o.problems()
	if err != nil {
		return false, err
	}
	for _, p := range problems {
		t, err := compareAt(o, p, dir, progress)
		if err != nil {
			return false, err
		}
		within = within && t.within()
		tables = append(tables, t)
	}
	if o.JSON {
		return within, rounds.PrintJSON(out, tables)
	}
	for _, t := range tables {
		if err := t.print(out); err != nil {
			return false, err
		}
	}
	return within, nil
}

// compareAt runs the comparison on one problem and returns its table.
func compareAt(o *options, p problem, dir string, progress io.Writer) (*table, error) {
	if err := generateRows(dir, p.shape, p.noise, o.Seed); err != nil {
		return nil, err
	}
	t := newTable(o, p)
	err := rounds.Play(t.Lines, o.Rounds, t.data(), progress, (*line).title, func(_ int, l *line) error {
		out, err := o.runLine(l, p.shape, dir)
		l.Rounds = append(l.Rounds, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, t.sum()
}

// runLine runs a contestant in a process of its own.
func (o *options) runLine(l *line, s shape, dir string) (out outcome, err error) {
	algorithm := "lloyd"
	if l.Contestant == elkanKind {
		algorithm = "elkan"
	}
	child := exec.Command(o.Python, "-c", sklearnScript, filepath.Join(dir, rawrows.ValuesFile),
		strconv.Itoa(s.Rows), strconv.Itoa(s.Features), strconv.Itoa(s.Clusters), strconv.Itoa(s.Moves), algorithm)
	child.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(l.Threads), "OPENBLAS_NUM_THREADS="+strconv.Itoa(l.Threads))
	if l.Contestant != sklearnKind && l.Contestant != elkanKind {
		if child, err = rounds.Self(task{l.Contestant, l.Threads, dir, s}); err != nil {
			return out, err
		}
	}
	return rounds.Outcome[outcome](child)
}
