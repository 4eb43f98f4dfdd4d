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

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// options are the flags.
type options struct {
	Python  string   `help:"A Python with xgboost, lightgbm and scikit-learn; without it Superstep runs alone." placeholder:"FILE"`
	Problem []string `help:"What to run: dense, sparse, leafwise, sparse-leafwise, forest, wide." enum:"dense,sparse,leafwise,sparse-leafwise,forest,wide" default:"dense,sparse,leafwise,sparse-leafwise,forest"`
	Spark   bool     `help:"Run Spark MLlib, too, where trees grow by depth: the Python must have pyspark, and there must be Java."`
	Rounds  int      `help:"How often each contestant runs." default:"3"`
	Trees   int      `help:"Trees, or rounds of boosting." default:"100"`
	Threads []int    `help:"Numbers of threads to run with." default:"1,2"`
	Scale   float64  `help:"Part of the rows to take." default:"1"`
	Seed    uint64   `help:"Seed of the rows." default:"1"`
	Beyond  float64  `help:"Train on more rows than fit memory: at one byte a value, the rows are this many times the memory budget of Superstep. XGBoost gets them in the same number of pieces, which it keeps in files. Only for dense, sparse and wide." placeholder:"TIMES"`
	Cold    bool     `help:"Drop the operating system's cache of files before each run; this needs root on Linux."`
	Dir     string   `help:"Where to put the rows, for the time of the run." type:"existingdir" placeholder:"DIR"`
	JSON    bool     `name:"json" help:"Print all figures as JSON instead of tables."`
}

// The ways to grow trees.
const (
	byDepth  = "depth"
	byLeaf   = "leaf"
	inForest = "forest"
)

// problem is one of the problems.
type problem struct {
	Name   string         `json:"problem"`
	Layout rawrows.Layout `json:"layout"`
	Policy string         `json:"policy"`
}

var problems = []problem{
	{"dense", rawrows.Layout{Rows: 1_000_000, Features: 28}, byDepth},
	{"sparse", rawrows.Layout{Rows: 200_000, Features: 1000, PerRow: 50}, byDepth},
	{"leafwise", rawrows.Layout{Rows: 1_000_000, Features: 28}, byLeaf},
	{"sparse-leafwise", rawrows.Layout{Rows: 200_000, Features: 1000, PerRow: 50}, byLeaf},
	{"forest", rawrows.Layout{Rows: 100_000, Features: 28}, inForest},
	{"wide", rawrows.Layout{Rows: 200_000, Features: 1000}, byDepth},
}

// sparkLibrary is the line.Library of Spark MLlib.
const sparkLibrary = "spark"

// outcome is the result of a contestant, in seconds and bytes.
type outcome struct {
	Train   float64 `json:"train"`
	Predict float64 `json:"predict"`
	Peak    int64   `json:"peak"` // 0 if unknown
	LogLoss float64 `json:"log_loss"`
	AUC     float64 `json:"auc"`
}

// line is a contestant and its results.
type line struct {
	Library string    `json:"library"` // name of another library; "" for Superstep
	Threads int       `json:"threads"`
	Rounds  []outcome `json:"rounds"`
}

// comparison has the results of all contestants on a problem.
type comparison struct {
	problem
	Trees int     `json:"trees"`
	How   string  `json:"how"` // unusual options of the runs, as text
	CPUs  int     `json:"cpus"`
	Lines []*line `json:"lines"`
}

func (l *line) title() string {
	if l.Library == "" {
		return fmt.Sprintf("ours, %d", l.Threads)
	}
	return fmt.Sprintf("%s, %d", l.Library, l.Threads)
}

// tasks are the tasks that a process of this program can run for a contestant.
var tasks = []rounds.Task{rounds.TaskOf(task.run)}

func main() {
	rounds.Main("trees", func() error {
		var o options
		kong.Parse(&o, kong.Name("trees"), kong.Description("Compares boosted trees and forests on this engine with those of other libraries."), kong.UsageOnError())
		return compare(&o, os.Stdout, os.Stderr)
	}, tasks...)
}

// compare runs the comparisons on the selected problems and prints their tables.
func compare(o *options, out, progress io.Writer) error {
	switch {
	case o.Rounds < 1 || o.Trees < 1 || !(o.Scale > 0 && o.Scale <= 1):
		return errors.New("want at least 1 round and 1 tree, and a scale above 0 and at most 1")
	case o.Beyond != 0 && !(o.Beyond >= 1):
		return errors.New("want rows that are at least as large as memory, or no --beyond")
	case len(o.Threads) == 0 || slices.Min(o.Threads) < 1:
		return errors.New("want numbers of threads of at least 1")
	}
	var all []*comparison
	for _, p := range problems {
		if !slices.Contains(o.Problem, p.Name) {
			continue
		}
		if o.Beyond > 0 && p.Policy != byDepth {
			return fmt.Errorf("%s: --beyond is for trees that grow by depth", p.Name)
		}
		p.Layout.Rows = int(math.Ceil(o.Scale * float64(p.Layout.Rows)))
		t, err := o.compareOn(p, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if all = append(all, t); o.JSON {
			continue
		}
		if err := t.print(out); err != nil {
			return err
		}
	}
	if !o.JSON {
		return nil
	}
	return rounds.PrintJSON(out, all)
}

// lines lists the contestants of a problem.
func (o *options) lines(p problem) []*line {
	libraries := []string{""}
	switch {
	case o.Python == "":
	case o.Beyond > 0:
		libraries = append(libraries, "xgboost")
	case p.Policy == inForest:
		libraries = append(libraries, "scikit-learn")
	default:
		libraries = append(libraries, "xgboost", "lightgbm")
		if o.Spark && p.Policy == byDepth {
			libraries = append(libraries, sparkLibrary)
		}
	}
	var all []*line
	for _, threads := range o.Threads {
		for _, library := range libraries {
			all = append(all, &line{Library: library, Threads: threads})
		}
	}
	return all
}

// compareOn runs the comparison on one problem and returns its results.
func (o *options) compareOn(p problem, progress io.Writer) (t *comparison, err error) {
	dir, err := os.MkdirTemp(o.Dir, "superstep-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := prepare(dir, p.Layout, o.Seed); err != nil {
		return nil, err
	}
	t = &comparison{problem: p, Trees: o.Trees, How: o.how(), CPUs: runtime.NumCPU(), Lines: o.lines(p)}
	return t, rounds.Play(t.Lines, o.Rounds, p.Name, progress, (*line).title, func(_ int, l *line) error {
		if o.Cold {
			if err := dropFileCache(); err != nil {
				return err
			}
		}
		got, err := o.runLine(l, p, dir)
		l.Rounds = append(l.Rounds, got)
		return err
	})
}

// dropFileCache makes the operating system write its cached files to disk and drop them from
// memory.
func dropFileCache() error {
	if out, err := exec.Command("sync").CombinedOutput(); err != nil {
		return fmt.Errorf("sync: %w: %s", err, out)
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0o200); err != nil {
		return fmt.Errorf("--cold: %w", err)
	}
	return nil
}

// pieces returns the number of parts into which rows that do not fit into memory are divided,
// or 0 if the rows fit.
func (o *options) pieces() int { return int(math.Ceil(o.Beyond)) }

// budget returns the memory budget of Superstep in bytes, or 0 for the default.
func (o *options) budget(l rawrows.Layout) int64 {
	if o.Beyond == 0 {
		return 0
	}
	return int64(float64(l.Rows) * float64(l.Width()) / o.Beyond)
}

// runLine runs a contestant in its own process.
func (o *options) runLine(l *line, p problem, dir string) (got outcome, err error) {
	var child *exec.Cmd
	if l.Library == sparkLibrary {
		child = exec.Command(o.Python, "-c", sparkScript, dir, strconv.Itoa(p.Layout.Rows), strconv.Itoa(p.Layout.Features), strconv.Itoa(p.Layout.PerRow),
			strconv.Itoa(l.Threads), strconv.Itoa(o.Trees))
	} else if l.Library != "" {
		child = exec.Command(o.Python, "-c", peersScript, dir, strconv.Itoa(p.Layout.Rows), strconv.Itoa(p.Layout.Features), strconv.Itoa(p.Layout.PerRow),
			l.Library, strconv.Itoa(l.Threads), strconv.Itoa(o.Trees), p.Policy, strconv.Itoa(o.pieces()))
		child.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(l.Threads))
	} else {
		child, err = rounds.Self(task{Dir: dir, Layout: p.Layout, Threads: l.Threads, Trees: o.Trees, Policy: p.Policy, Budget: o.budget(p.Layout)})
		if err != nil {
			return got, err
		}
		child.Env = append(child.Env, "GOMAXPROCS="+strconv.Itoa(l.Threads))
	}
	return rounds.Outcome[outcome](child)
}

// how returns a description of unusual options of the runs, or "" if there are none.
func (o *options) how() (text string) {
	if o.Beyond > 0 {
		text += fmt.Sprintf(", %g times beyond memory", o.Beyond)
	}
	if o.Cold {
		text += ", files forgotten before each"
	}
	return text
}

// print writes the table. It has the medians over the rounds, and the median of the ratios to
// Superstep's time with the same number of threads in the same round.
func (t *comparison) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d rows × %d features, %d trees%s; medians of %d rounds on %d CPUs\n\n",
		t.Name, t.Layout.Rows, t.Layout.Features, t.Trees, t.How, len(t.Lines[0].Rounds), t.CPUs)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "contestant\ttrain\tbest\ttimes ours\tmemory\ttimes ours\tpredict\ttimes ours\tlog-loss\tAUC\t")
	for _, l := range t.Lines {
		at := slices.IndexFunc(t.Lines, func(o *line) bool { return o.Library == "" && o.Threads == l.Threads })
		column := func(of func(outcome) float64) (value, ratio float64) {
			var values, ours []float64
			for i, r := range l.Rounds {
				values, ours = append(values, of(r)), append(ours, of(t.Lines[at].Rounds[i]))
			}
			return rounds.Median(values), rounds.MedianRatio(values, ours)
		}
		train, trainRatio := column(func(o outcome) float64 { return o.Train })
		memory, memoryRatio := column(func(o outcome) float64 { return float64(o.Peak) })
		predict, predictRatio := column(func(o outcome) float64 { return o.Predict })
		best := slices.MinFunc(l.Rounds, func(a, b outcome) int { return int(math.Copysign(1, a.Train-b.Train)) }).Train
		peak := "–\t–"
		if memory != 0 {
			peak = fmt.Sprintf("%.0f MB\t%.2f", memory/1e6, memoryRatio)
		}
		fmt.Fprintf(tw, "%s\t%.3f s\t%.3f s\t%.2f\t%s\t%.3f s\t%.2f\t%.5f\t%.5f\t\n", l.title(),
			train, best, trainRatio, peak, predict, predictRatio, l.Rounds[0].LogLoss, l.Rounds[0].AUC)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
