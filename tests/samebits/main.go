package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
)

// flags are the flags of the command line.
type flags struct {
	Workload    []string `help:"Workloads to run. If none is given, all workloads are listed."`
	Parallelism []int    `default:"1" help:"Numbers of subtasks."`
	BatchRows   []int    `default:"1024" help:"Rows that sources aim at per batch."`
	Shards      []int    `default:"128" help:"Numbers of shards."`
	Procs       []int    `default:"0" help:"Values of GOMAXPROCS; 0 leaves it as it is."`
	Rounds      int      `default:"1" help:"How often to run each setting."`
	Jitter      bool     `help:"Delay the workload's functions, differently in each round."`
	Forget      bool     `help:"Have queues forget between supersteps all but what their keys keep."`
	Cut         bool     `help:"Have queues go on at other parallelisms after their first supersteps."`
	Work        string   `help:"Directory to work in, with checkpoints after every superstep, from which the run continues; a temporary one without checkpoints if not given. For one setting."`
	KillAfter   int      `help:"Number of checkpoints after which the process kills itself; 0 means never. Needs --work."`
	Iris        string   `default:"examples/kmeans/data/iris.csv" help:"The CSV file with the iris."`
	Heart       string   `default:"examples/queue/data/heart_scale.libsvm" help:"The LibSVM file with the heart disease data."`
	Cluster     string   `help:"Job manager of the cluster to run on; this process alone if not given."`
	Out         string   `help:"Directory that keeps the bytes of every piece under their digest."`
}

func main() {
	engine.WorkerMain(job)
	var f flags
	kong.Parse(&f, kong.Description("Runs workloads at many settings and prints digests of their results."))
	do := run
	if len(f.Workload) == 0 {
		do = list
	}
	if err := do(&f, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "samebits:", err)
		os.Exit(1)
	}
}

// setting has the settings of one run of a workload.
type setting struct {
	Workload    string `json:"workload"`
	Shards      int    `json:"shards"`
	Parallelism int    `json:"parallelism"`
	BatchRows   int    `json:"batchRows"`
	Procs       int    `json:"procs"`
	Round       int    `json:"round"`

	cuts    []int // parallelisms at which queues continue after their first supersteps
	resumed bool  // queues may continue from checkpoints of an earlier process
}

// calls returns how often a stage is called in the given number of supersteps, summed over all
// subtasks.
func (s setting) calls(supersteps int) (n int64) {
	subtasks := s.Parallelism
	for step := range supersteps {
		n += int64(subtasks)
		if step < len(s.cuts) {
			subtasks = s.cuts[step]
		}
	}
	return n
}

// digest is a line of output.
type digest struct {
	setting
	Piece string `json:"piece"`
	Sum   string `json:"sum"`
	Size  int    `json:"size"`
}

// piece is one part of a workload's results, with its name.
type piece struct {
	name  string
	bytes []byte
}

// list prints the properties of all workloads.
func list(f *flags, out io.Writer) error {
	lines := json.NewEncoder(out)
	for _, w := range workloads {
		graph, err := engine.BuildGraph(job, env{Workload: w.name, Iris: f.Iris, Heart: f.Heart})
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		properties := struct {
			Name                 string `json:"name"`
			DependsOnParallelism bool   `json:"dependsOnParallelism"`
			Queues               int    `json:"queues"`
			Size                 size   `json:"size"`
		}{w.name, w.ranks, len(graph.Queues), w.size}
		if err := lines.Encode(properties); err != nil {
			return err
		}
	}
	return nil
}

// run runs every workload at every combination of the settings.
func run(f *flags, out io.Writer) error {
	lines := json.NewEncoder(out)
	initial := runtime.GOMAXPROCS(0)
	for _, s := range f.settings() {
		w, err := find(s.Workload)
		if err != nil {
			return err
		}
		if s.Procs > 0 {
			runtime.GOMAXPROCS(s.Procs)
		} else {
			runtime.GOMAXPROCS(initial)
		}
		pieces, err := runOnce(w, s, f)
		if err != nil {
			return fmt.Errorf("%+v: %w", s, err)
		}
		for _, p := range pieces {
			sum := sha256.Sum256(p.bytes)
			d := digest{s, p.name, hex.EncodeToString(sum[:8]), len(p.bytes)}
			if err := lines.Encode(d); err != nil {
				return err
			}
			if f.Out == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(f.Out, d.Sum), p.bytes, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// settings returns all combinations of the values of the flags. The rounds of a combination
// follow one another.
func (f *flags) settings() []setting {
	var all []setting
	for _, workload := range f.Workload {
		for _, shards := range f.Shards {
			for _, parallelism := range f.Parallelism {
				for _, rows := range f.BatchRows {
					for _, procs := range f.Procs {
						for round := range f.Rounds {
							all = append(all, setting{Workload: workload, Shards: shards, Parallelism: parallelism, BatchRows: rows, Procs: procs, Round: round})
						}
					}
				}
			}
		}
	}
	return all
}

// runOnce runs a workload once, in a new directory, and returns the pieces of its result.
func runOnce(w workload, s setting, f *flags) (pieces []piece, err error) {
	dir := f.Work
	if dir == "" {
		if dir, err = os.MkdirTemp("", "samebits"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	e := env{Workload: s.Workload, Out: filepath.Join(dir, "out"), Iris: f.Iris, Heart: f.Heart}
	if f.Jitter {
		e.Jitter = uint64(s.Round) + 1
	}
	spill := filepath.Join(dir, "spill")
	for _, d := range []string{e.Out, spill} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	options := []engine.Option{
		engine.Parallelism(s.Parallelism), engine.Shards(s.Shards), engine.BatchRows(s.BatchRows),
		engine.Seed(17), engine.SpillDir(spill), engine.CheckState(f.Forget),
	}
	if f.Cut && w.ranks {
		return nil, errors.New("the results depend on parallelism, so --cut would change them")
	}
	if f.Cut {
		s.cuts = []int{min(3, s.Shards), 1, min(8, s.Shards)}
	}
	for i, p := range s.cuts {
		options = append(options, engine.CheckResume(i+1, p))
	}
	if f.Work != "" {
		options = append(options, engine.CheckpointDir(filepath.Join(dir, "checkpoints")), engine.CheckpointSupersteps(1),
			engine.Resume(true), engine.Disk(&killingDisk{FS: disk.OS(), after: int64(f.KillAfter)}))
		// An earlier process may have been killed when it had made its outputs visible.
		options, s.resumed = append(options, engine.IfExists(engine.Replace)), true
	}
	if w.memory > 0 {
		options = append(options, engine.MemoryBudget(w.memory))
	}
	if f.Cluster != "" {
		options = append(options, engine.Cluster(f.Cluster))
	}
	result, err := engine.Run(context.Background(), job, e, options...)
	if err != nil {
		return nil, err
	}
	defer result.Release()
	if (f.Forget || f.Cut) && len(result.Report.Queues) == 0 {
		return nil, errors.New("--forget and --cut have no effect on a workload without queues")
	}
	if err := checkAllWorked(result, s); err != nil {
		return nil, err
	}
	if w.memory > 0 && result.Report.Spilled == 0 {
		return nil, fmt.Errorf("nothing was spilled with a budget of %d bytes", w.memory)
	}
	if pieces, err = resultPieces(result); err != nil {
		return nil, err
	}
	if w.more != nil {
		added, err := w.more(result)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, added...)
	}
	if s.resumed {
		if left, err := os.ReadDir(filepath.Join(dir, "checkpoints")); err != nil || len(left) > 0 {
			return nil, fmt.Errorf("%d files are left of the checkpoints: %v", len(left), err)
		}
	}
	files, err := filePieces(e.Out)
	return append(pieces, files...), err
}

// killingDisk is a file system that kills the process when a number of checkpoints were written.
type killingDisk struct {
	disk.FS
	after   int64 // 0 means never
	written atomic.Int64
}

// Rename renames a file. Checkpoints are complete when their manifest has been renamed.
func (d *killingDisk) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if err == nil && strings.HasPrefix(filepath.Base(to), "checkpoint-") && d.written.Add(1) == d.after {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		return err
	}
	return err
}
