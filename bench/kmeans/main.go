package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/alecthomas/kong"
)

// options are the flags.
type options struct {
	Rows       int       `default:"1000000" help:"Rows to generate."`
	Features   int       `default:"16" help:"Features of a row."`
	Clusters   int       `short:"k" default:"10" help:"Clusters to find."`
	Components int       `default:"8" help:"Normal distributions to draw the rows from."`
	Iterations int       `default:"20" help:"How often the centres are moved."`
	Noise      []float64 `default:"0.5,0.7" help:"Standard deviations of the clusters, one table each."`
	Rounds     int       `default:"5" help:"How often each contestant runs."`
	Seed       uint64    `default:"1" help:"Seed of the rows."`
	Python     string    `placeholder:"FILE" help:"A Python that has scikit-learn, to take part."`
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
	return nil
}

func (o *options) shape() shape {
	return shape{o.Rows, o.Features, o.Clusters, o.Components, o.Iterations}
}

func main() {
	if text := os.Getenv(childVariable); text != "" {
		exitOn(runChild(text, os.Stdout))
		return
	}
	var o options
	kong.Parse(&o, kong.Name("kmeans"), kong.Description("Compares k-means on this engine with a hand-written loop and scikit-learn."), kong.UsageOnError())
	within, err := compare(&o, os.Stdout, os.Stderr)
	exitOn(err)
	if o.Check && !within {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kmeans:", err)
		os.Exit(1)
	}
}

// compare runs everything and prints the tables. It reports whether all budgets
// were kept.
func compare(o *options, out, progress io.Writer) (within bool, err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var tables []*table
	within = true
	for _, noise := range o.Noise {
		t, err := compareAt(o, noise, filepath.Join(dir, "rows"), progress)
		if err != nil {
			return false, err
		}
		within = within && t.within()
		tables = append(tables, t)
	}
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return within, enc.Encode(tables)
	}
	for _, t := range tables {
		if err := t.print(out); err != nil {
			return false, err
		}
	}
	return within, nil
}

// compareAt makes one table. Every round begins with another contestant and every
// second one goes backwards.
func compareAt(o *options, noise float64, file string, progress io.Writer) (*table, error) {
	if err := writeRows(o, noise, file); err != nil {
		return nil, err
	}
	t := newTable(o, noise)
	for round := range o.Rounds {
		order := slices.Clone(t.Lines)
		turn := round / 2 % len(order)
		order = append(order[turn:], order[:turn]...)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, l := range order {
			fmt.Fprintf(progress, "noise %g, round %d of %d: %s\n", noise, round+1, o.Rounds, l.title())
			out, err := o.runLine(l, file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.title(), err)
			}
			l.Rounds = append(l.Rounds, out)
		}
	}
	return t, t.sum()
}

// writeRows writes the file of rows.
func writeRows(o *options, noise float64, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	err = generateRows(f, o.shape(), noise, o.Seed)
	return errors.Join(err, f.Close())
}

// childVariable holds the task of a process that is to run a contestant.
const childVariable = "SUPERSTEP_BENCH_KMEANS"

// runChild runs a contestant and prints its outcome.
func runChild(text string, w io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	out, err := t.measure()
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(out)
}

// runLine runs a contestant in a process of its own.
func (o *options) runLine(l *line, file string) (out outcome, err error) {
	s := o.shape()
	child := exec.Command(o.Python, "-c", sklearnScript, file,
		strconv.Itoa(s.Rows), strconv.Itoa(s.Features), strconv.Itoa(s.Clusters), strconv.Itoa(s.Moves))
	child.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(l.Threads), "OPENBLAS_NUM_THREADS="+strconv.Itoa(l.Threads))
	if l.Contestant != sklearnKind {
		self, err := os.Executable()
		if err != nil {
			return out, err
		}
		text, err := json.Marshal(task{l.Contestant, l.Threads, file, s})
		if err != nil {
			return out, err
		}
		child = exec.Command(self)
		child.Env = append(os.Environ(), childVariable+"="+string(text))
	}
	child.Stderr = os.Stderr
	text, err := child.Output()
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}
