package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// Budgets: see the package's documentation.
const (
	passBudget   = 1.05
	memoryFactor = 1.3
	memoryExtra  = 100_000_000
	// agreement is the largest relative difference between a contestant's sum of squared
	// distances and the loop's sum that is accepted. Contestants add rows in different orders,
	// and each order gives centres with other rounding errors.
	agreement = 1e-9
	// agreementSingle replaces agreement for contestants in single precision. Rounding of
	// distances to single precision may assign a row to a centre that is slightly farther away
	// than the nearest.
	agreementSingle = 1e-4
)

// line is a contestant and its results.
type line struct {
	Contestant string    `json:"contestant"`
	Threads    int       `json:"threads"`
	Rounds     []outcome `json:"rounds"`

	// Pass, Total and Peak are medians over the rounds.
	Pass  float64 `json:"pass"`
	Total float64 `json:"total"`
	Peak  int64   `json:"peak"`
	// Best is the smallest Pass of a round.
	Best float64 `json:"best"`
	CPU  float64 `json:"cpu"`
	// Ratio is the median over the rounds of this contestant's Pass divided by the Pass of the
	// loop with as many threads in the same round. RatioCPU is the same ratio for CPU.
	Ratio    float64 `json:"ratio"`
	RatioCPU float64 `json:"ratio_cpu"`
}

func (l *line) title() string {
	of := map[string]string{loopKind: "goroutine", engineKind: "subtask", singleKind: "subtask", sklearnKind: "thread", elkanKind: "thread"}[l.Contestant]
	if l.Threads > 1 {
		of += "s"
	}
	return fmt.Sprintf("%s, %d %s", l.Contestant, l.Threads, of)
}

// table has the results of all contestants on one problem.
type table struct {
	Shape   shape   `json:"shape"`
	Noise   float64 `json:"noise"`
	Seed    uint64  `json:"seed"`
	Settled float64 `json:"settled"`
	Lines   []*line `json:"lines"`
	Budgets struct {
		Ratio float64 `json:"ratio"`
		Peak  int64   `json:"peak"`
	} `json:"budgets"`
	CPUs int `json:"cpus"`
}

// newTable returns a table with the lines of all contestants, without results. For each number
// of threads, the line of the loop comes before the lines that are compared with it.
func newTable(o *options, p problem) *table {
	t := &table{Shape: p.shape, Noise: p.noise, Seed: o.Seed, CPUs: runtime.NumCPU()}
	t.Budgets.Ratio = passBudget
	t.Budgets.Peak = int64(memoryFactor*float64(t.Shape.bytes())) + memoryExtra
	kinds := []string{loopKind, engineKind}
	if o.Single {
		kinds = append(kinds, singleKind)
	}
	if o.Python != "" {
		kinds = append(kinds, sklearnKind, elkanKind)
	}
	for _, threads := range []int{1, 2} {
		for _, kind := range kinds {
			t.Lines = append(t.Lines, &line{Contestant: kind, Threads: threads})
		}
	}
	return t
}

// sum computes the medians. It returns an error if a contestant has a different sum of squared
// distances.
func (t *table) sum() error {
	for _, l := range t.Lines {
		yard := t.find(loopKind, l.Threads)
		var ratios, cpu []float64
		for i, r := range l.Rounds {
			ratios = append(ratios, r.Pass/yard.Rounds[i].Pass)
			if base := yard.Rounds[i].CPU; base > 0 {
				cpu = append(cpu, r.CPU/base)
			}
			want := t.Lines[0].Rounds[0].Inertia
			if t.Lines[0].Rounds[0].Emptied {
				want = t.find(engineKind, 1).Rounds[0].Inertia
			}
			within := agreement
			if l.Contestant == singleKind {
				within = agreementSingle
			}
			if !r.Emptied && !(math.Abs(r.Inertia-want) <= within*want) {
				return fmt.Errorf("%s ended with an inertia of %v, others with %v", l.title(), r.Inertia, want)
			}
		}
		l.Ratio = rounds.Median(ratios)
		if len(cpu) > 0 {
			l.RatioCPU = rounds.Median(cpu)
		}
		passes := values(l.Rounds, func(r outcome) float64 { return r.Pass })
		l.Pass, l.Best = rounds.Median(passes), slices.Min(passes)
		l.CPU = rounds.Median(values(l.Rounds, func(r outcome) float64 { return r.CPU }))
		l.Total = rounds.Median(values(l.Rounds, func(r outcome) float64 { return r.Total }))
		l.Peak = int64(rounds.Median(values(l.Rounds, func(r outcome) float64 { return float64(r.Peak) })))
	}
	t.Settled = t.Lines[0].Rounds[0].SingleDistance
	return nil
}

// peers reports whether scikit-learn took part.
func (t *table) peers() bool { return t.find(sklearnKind, 1) != nil }

// find returns the line of a contestant with the given number of threads.
func (t *table) find(kind string, threads int) *line {
	for _, l := range t.Lines {
		if l.Contestant == kind && l.Threads == threads {
			return l
		}
	}
	return nil
}

// relativeSpeed returns the number of passes that a contestant makes while the faster algorithm
// of scikit-learn makes one pass. It is the median over the rounds, and compares runs with the
// same number of threads in the same round.
func (t *table) relativeSpeed(l *line) float64 {
	lloyd, elkan := t.find(sklearnKind, l.Threads), t.find(elkanKind, l.Threads)
	var ratios []float64
	for i, r := range l.Rounds {
		ratios = append(ratios, min(lloyd.Rounds[i].Pass, elkan.Rounds[i].Pass)/r.Pass)
	}
	return rounds.Median(ratios)
}

// within reports whether the engine stayed within its budgets.
func (t *table) within() bool {
	for _, l := range t.Lines {
		if l.Contestant == engineKind && (l.Ratio > t.Budgets.Ratio || l.Peak > t.Budgets.Peak) {
			return false
		}
	}
	return true
}

// data returns a description of the rows.
func (t *table) data() string {
	if t.Shape.Components == 0 {
		return "uniform"
	}
	return fmt.Sprintf("noise %g", t.Noise)
}

// print writes the table as text.
func (t *table) print(w io.Writer) error {
	s := t.Shape
	fmt.Fprintf(w, "%d rows × %d features (%.0f MB), k = %d, %d passes, %s: %.0f %% of rows settled by one distance; medians of %d rounds on %d CPUs\n\n",
		s.Rows, s.Features, float64(s.bytes())/1e6, s.Clusters, s.passes(), t.data(), 100*t.Settled, len(t.Lines[0].Rounds), t.CPUs)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	peers := t.peers()
	head := "contestant\tper pass\tbest\tCPU\ttotal\tpeak memory\tratio to loop\tCPU ratio\t"
	if peers {
		head += "times as fast as scikit-learn\t"
	}
	fmt.Fprintln(tw, head)
	for _, l := range t.Lines {
		memory := "unknown"
		if l.Peak > 0 {
			memory = fmt.Sprintf("%.0f MB", float64(l.Peak)/1e6)
		}
		fmt.Fprintf(tw, "%s\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f s\t%s\t%.3f\t%.3f\t",
			l.title(), 1e3*l.Pass, 1e3*l.Best, 1e3*l.CPU, l.Total, memory, l.Ratio, l.RatioCPU)
		if peers {
			fmt.Fprintf(tw, "%.2f\t", t.relativeSpeed(l))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	verdict := "kept"
	if !t.within() {
		verdict = "EXCEEDED"
	}
	_, err := fmt.Fprintf(w, "\nbudgets of the engine %s: ratio %.2f, memory %.0f MB\n\n", verdict, t.Budgets.Ratio, float64(t.Budgets.Peak)/1e6)
	return err
}

// values returns of(v) for each element v of all.
func values[T any](all []T, of func(T) float64) []float64 {
	out := make([]float64, len(all))
	for i, v := range all {
		out[i] = of(v)
	}
	return out
}
