//go:build !race

// This file is not built with the race detector, which needs additional memory for everything
// that it observes. The tests here measure memory.

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/bench/internal/usage"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// spillJob describes a job that shuffles far more rows than fit into its memory budget. The job
// runs in a process of its own.
type spillJob struct {
	Parallelism int
	Batches     int // number of batches per shard
	Budget      int64
	SpillDir    string
}

// spillRun is the result that the process of a spillJob prints.
type spillRun struct {
	Elapsed time.Duration
	Spilled int64
	Held    int64 // largest size of runs in memory, in bytes
	Peak    int64 // largest resident size, in bytes
}

// A row is a key and a vector: 136 bytes.
const (
	wide    = 16
	wideRow = 8 + 8*wide
)

// overhead is the memory that a process may use beyond its budget, for the Go runtime, batches
// in transit, file buffers and garbage.
const overhead = 80 << 20

const spillVariable = "SUPERSTEP_BENCH_SPILL"

// TestMain lets the test binary act as the process that shuffles.
func TestMain(m *testing.M) {
	if text := os.Getenv(spillVariable); text != "" {
		if err := spillChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// spillChild runs the job that text describes and prints its spillRun.
func spillChild(text string) error {
	var j spillJob
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	rows, err := wideRows()
	if err != nil {
		return err
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		d := ready(b, rows, j.Batches, 0)
		drop(through(d, false, engine.Port{From: d, Partitioner: engine.Hash, Keys: []string{"key"}}))
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{},
		engine.Parallelism(j.Parallelism), engine.MemoryBudget(j.Budget), engine.SpillDir(j.SpillDir))
	if err != nil {
		return err
	}
	defer result.Release()
	if got, want := rowsDropped(result), j.rows(); got != want {
		return fmt.Errorf("%d rows came out, want %d", got, want)
	}
	rss, err := usage.PeakRSS()
	if err != nil {
		return err
	}
	r := result.Report
	return json.NewEncoder(os.Stdout).Encode(spillRun{r.Elapsed, r.Spilled, r.PeakMemory, rss})
}

func (j spillJob) rows() int64 { return int64(shardCount * j.Batches * batchRows) }

// run runs the job in its own process.
func (j spillJob) run(t testing.TB) spillRun {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	child := proctest.Command(os.Args[0])
	child.Env = append(os.Environ(), spillVariable+"="+string(text), "GOGC=100") // overhead is for this percentage
	child.Stderr = os.Stderr
	out, err := child.Output()
	require.NoError(t, err)
	var r spillRun
	require.NoError(t, json.Unmarshal(out, &r))
	return r
}

// check requires that a run stayed within its limits.
func (j spillJob) check(t testing.TB, r spillRun) {
	t.Helper()
	require.Positive(t, r.Spilled)
	require.LessOrEqual(t, r.Held, j.Budget)
	require.LessOrEqual(t, r.Peak, j.Budget+overhead, "largest resident size with a budget of %d bytes", j.Budget)
	left, err := os.ReadDir(j.SpillDir)
	require.NoError(t, err)
	require.Empty(t, left, "no temporary files may be left after the run")
}

// wideRows returns a batch of keys and vectors.
func wideRows() (arrow.Record, error) {
	vector, err := batch.VectorType(wide)
	if err != nil {
		return nil, err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int64}, {Name: "vector", Type: vector}}, nil)
	keys := array.NewInt64Builder(memory.NewGoAllocator())
	defer keys.Release()
	values := make([]float64, batchRows*wide)
	for i := range batchRows {
		keys.Append(int64(i) * 7919)
	}
	for i := range values {
		values[i] = float64(i)
	}
	return array.NewRecord(schema, []arrow.Array{keys.NewArray(), batch.WrapVectorArray(values, wide)}, batchRows), nil
}

// TestSpillKeepsToBudget requires that a process that shuffles 285 MB, with a memory budget of
// 8 MiB for sorted runs, does not exceed that budget by more than overhead.
func TestSpillKeepsToBudget(t *testing.T) {
	j := spillJob{Parallelism: 2, Batches: 16, Budget: 8 << 20, SpillDir: t.TempDir()}
	require.Greater(t, j.rows()*wideRow, 2*(j.Budget+overhead), "the data must exceed the limit by a factor of two, or the test proves nothing")
	j.check(t, j.run(t))
}

// BenchmarkSpill compares two shuffles of 570 MB: one with 8 MiB of memory for sorted runs, and
// one with enough memory for all runs.
func BenchmarkSpill(b *testing.B) {
	for _, parallelism := range []int{1, 2} {
		b.Run(fmt.Sprintf("p=%d", parallelism), func(b *testing.B) {
			tight := spillJob{Parallelism: parallelism, Batches: 32, Budget: 8 << 20, SpillDir: b.TempDir()}
			roomy := tight
			roomy.Budget = 4 << 30
			var p pairs
			var beyond, spilled []int64
			for b.Loop() {
				run := tight.run(b)
				tight.check(b, run)
				p.add(run.Elapsed, roomy.run(b).Elapsed)
				beyond, spilled = append(beyond, run.Peak-tight.Budget), append(spilled, run.Spilled)
			}
			p.report(b, tight.rows(), "in-memory")
			b.ReportMetric(float64(median(beyond))/(1<<20), "MiB-beyond-budget")
			b.ReportMetric(float64(median(spilled))/(1<<20), "MiB-spilled")
		})
	}
}
