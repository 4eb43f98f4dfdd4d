package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// options are the command-line flags.
type options struct {
	Alink     string   `placeholder:"DIR" help:"Folder in which Alink and the compiled AlinkTraining.java are installed; see the package documentation. Without this flag Superstep runs alone."`
	Java      string   `default:"java" placeholder:"FILE" help:"The command java."`
	Superstep string   `placeholder:"FILE" help:"The command superstep (default: built from the source tree that the working directory is in)."`
	Problems  []string `name:"problem" help:"What to train: kmeans, logistic, gbdt." enum:"kmeans,logistic,gbdt" default:"kmeans,logistic,gbdt"`
	Rows      int      `placeholder:"N" help:"Rows of every problem (default: 100,000 for gbdt, 1,000,000 for the others)."`
	Rounds    int      `default:"3" help:"How often each contestant trains."`
	Threads   []int    `default:"2" help:"Numbers of threads to train with."`
	Seed      uint64   `default:"1" help:"Seed of the rows."`
	Dir       string   `placeholder:"DIR" help:"Folder for rows and models, which are deleted at the end (default: the system's temporary directory)."`
	JSON      bool     `name:"json" help:"Print all figures as JSON instead of tables."`
}

// Validate is called by kong.
func (o *options) Validate() error {
	switch {
	case o.Rows < 0 || o.Rows > 0 && o.Rows < 100:
		return errors.New("want at least 100 rows")
	case o.Rounds < 1:
		return errors.New("want at least 1 round")
	case len(o.Threads) == 0 || slices.Min(o.Threads) < 1:
		return errors.New("want numbers of threads of at least 1")
	}
	return nil
}

func main() {
	rounds.Main("alink", func() error {
		var o options
		kong.Parse(&o, kong.Name("alink"), kong.Description("Compares training on this engine with Alink's, from a CSV file to a saved model."), kong.UsageOnError())
		return compare(&o, os.Stdout, os.Stderr)
	})
}

// compare runs the comparisons that o selects. It prints each table as soon as the table is
// complete, or, if o.JSON is set, all tables at the end.
func compare(o *options, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	contestants, err := o.contestants(dir)
	if err != nil {
		return err
	}
	var tables []*table
	for _, p := range problems {
		if !slices.Contains(o.Problems, p.Name) {
			continue
		}
		if o.Rows > 0 {
			p.Rows = o.Rows
		}
		t := newTable(&p, contestants, o.Threads)
		if err := t.measure(o, dir, progress); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if tables = append(tables, t); o.JSON {
			continue
		}
		if err := t.print(out); err != nil {
			return err
		}
	}
	if !o.JSON {
		return nil
	}
	return rounds.PrintJSON(out, tables)
}

// measure runs the training of all lines, round by round. In the first round each contestant
// also predicts the rows that it was trained on. measure fails unless all predictions have
// about the same quality.
func (t *table) measure(o *options, dir string, progress io.Writer) error {
	csv := filepath.Join(dir, t.Name+".csv")
	if err := writeRows(csv, t.problem, o.Seed); err != nil {
		return err
	}
	for round := range o.Rounds {
		for _, l := range rounds.Order(t.Lines, round) {
			fmt.Fprintf(progress, "%s, round %d of %d: %s\n", t.Name, round+1, o.Rounds, l.title())
			w := work{problem: t.problem, threads: l.Threads, csv: csv, model: filepath.Join(dir, "model"), output: filepath.Join(dir, "predictions.csv")}
			got, err := w.train(l.contestant)
			if err != nil {
				return fmt.Errorf("%s: %w", l.title(), err)
			}
			if l.Rounds = append(l.Rounds, got); round > 0 {
				continue
			}
			if l.Quality, err = w.quality(l.contestant); err != nil {
				return fmt.Errorf("%s: %w", l.title(), err)
			}
		}
		if err := t.alike(); err != nil {
			return err
		}
	}
	t.sum()
	return os.Remove(csv)
}

// alike returns an error if a quality of a line differs from that quality of the first line by
// more than the problem allows.
func (t *table) alike() error {
	var wrong []string
	for i, figure := range t.qualities {
		want := t.Lines[0].Quality[i]
		for _, l := range t.Lines[1:] {
			if got := l.Quality[i]; !(got >= want*(1-figure.within) && got <= want*(1+figure.within)) {
				wrong = append(wrong, fmt.Sprintf("the %s of %s is %.6g, that of %s %.6g", figure.name, l.title(), got, t.Lines[0].title(), want))
			}
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("contestants did not find the same, so that their times say nothing: %s", strings.Join(wrong, "; "))
	}
	return nil
}
