package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// outcome is the cost of one training. Figures that are unknown on this system are 0.
type outcome struct {
	Wall float64 `json:"wall"` // seconds from the start of the process to its end
	CPU  float64 `json:"cpu"`  // seconds of processor time
	Peak float64 `json:"peak"` // largest resident size in bytes
}

// line is a contestant with a number of threads, and its results.
type line struct {
	contestant contestant
	Contestant string    `json:"contestant"`
	Threads    int       `json:"threads"`
	Quality    []float64 `json:"quality"` // qualities of the model; table.Figures has their names
	Rounds     []outcome `json:"rounds"`
	Median     outcome   `json:"median"` // medians over the rounds
	// Ratio has, for each figure, the median over rounds of the ratio of this contestant's
	// figure to Superstep's figure in the same round, with the same number of threads.
	Ratio outcome `json:"ratio"`
}

func (l *line) title() string { return fmt.Sprintf("%s, %d", l.Contestant, l.Threads) }

// table has the results of all contestants on a problem.
type table struct {
	*problem
	Figures []string `json:"figures"` // names of the values in line.Quality
	CPUs    int      `json:"cpus"`
	Lines   []*line  `json:"lines"`
}

// newTable returns a table without results. For each number of threads it has a line for each
// contestant. The first contestant must be Superstep.
func newTable(p *problem, contestants []contestant, threads []int) *table {
	t := &table{problem: p, CPUs: runtime.NumCPU()}
	for _, f := range p.qualities {
		t.Figures = append(t.Figures, f.name)
	}
	for _, n := range threads {
		for _, c := range contestants {
			t.Lines = append(t.Lines, &line{contestant: c, Contestant: c.name(), Threads: n})
		}
	}
	return t
}

// sum computes the medians and ratios of all lines from their rounds.
func (t *table) sum() {
	ours := t.Lines[0]
	for _, l := range t.Lines {
		if l.Threads != ours.Threads {
			ours = l
		}
		for _, figure := range []func(*outcome) *float64{
			func(o *outcome) *float64 { return &o.Wall },
			func(o *outcome) *float64 { return &o.CPU },
			func(o *outcome) *float64 { return &o.Peak },
		} {
			all, base := make([]float64, len(l.Rounds)), make([]float64, len(l.Rounds))
			for i := range l.Rounds {
				all[i], base[i] = *figure(&l.Rounds[i]), *figure(&ours.Rounds[i])
			}
			if slices.Min(all) > 0 && slices.Min(base) > 0 {
				*figure(&l.Median), *figure(&l.Ratio) = rounds.Median(all), rounds.MedianRatio(all, base)
			}
		}
	}
}

// print writes the table as text.
func (t *table) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d rows × %d features, %s, from a CSV file to a saved model; medians of %d rounds on %d CPUs\n\n",
		t.Name, t.Rows, t.Features, t.what(), len(t.Lines[0].Rounds), t.CPUs)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "contestant, threads\twall time\ttimes ours\tCPU\ttimes ours\tpeak memory\ttimes ours\t")
	for _, name := range t.Figures {
		fmt.Fprintf(tw, "%s\t", name)
	}
	fmt.Fprintln(tw)
	for _, l := range t.Lines {
		memory := "unknown\t"
		if l.Ratio.Peak > 0 {
			memory = fmt.Sprintf("%.0f MB\t%.2f", l.Median.Peak/1e6, l.Ratio.Peak)
		}
		fmt.Fprintf(tw, "%s\t%.2f s\t%.2f\t%.2f s\t%.2f\t%s\t", l.title(), l.Median.Wall, l.Ratio.Wall, l.Median.CPU, l.Ratio.CPU, memory)
		for _, v := range l.Quality {
			fmt.Fprintf(tw, "%.6g\t", v)
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
