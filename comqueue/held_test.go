//go:build linux

package comqueue_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
)

// averaging is a queue that averages rows in ten supersteps of two passes; meddle is called
// for every shard and pass.
func averaging(n int, meddle func(step, shard int, values []float64)) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		read := func(ctx *comqueue.ComContext, shard int, out []float64) error {
			values := data.Get(ctx, shard).Floats("value")
			if meddle != nil {
				meddle(ctx.StepNo(), shard, values)
			}
			for _, v := range values {
				out[0] += (v - centre.Get(ctx)[0]) / float64(n)
			}
			return nil
		}
		return comqueue.New(b, "averaging").
			InitWithPartitionedData(data, dataset(b, n, func(i int) float64 { return float64(i%1013) / 7 })).
			Begin(func(ctx *comqueue.ComContext) error {
				centre.Put(ctx, []float64{0})
				return nil
			}).
			Init(func(ctx *comqueue.ComContext) error {
				gradient.Put(ctx, make([]float64, 1))
				return nil
			}).
			Add(comqueue.ForEachShard(gradient, read)).
			Add(comqueue.AllReduce(gradient)).
			Do(func(ctx *comqueue.ComContext) error {
				centre.Get(ctx)[0] += gradient.Get(ctx)[0] / 2
				return nil
			}).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				return []row{{centre.Get(ctx)[0]}}, nil
			})).
			SetMaxIter(10).
			Exec()
	}
}

// TestRowsBeyondTheBudget: rows that the memory budget does not hold are in files, the queue
// has the same bits, keeps to the budget, and leaves nothing behind.
func TestRowsBeyondTheBudget(t *testing.T) {
	const n = 1 << 17 // a MiB
	want, _, err := run(t, averaging(n, nil), engine.Parallelism(1), engine.Shards(16))
	require.NoError(t, err)
	for _, p := range []int{1, 2, 3} {
		for _, budget := range []int64{128 << 10, 600 << 10, 4 << 20} {
			dir := t.TempDir()
			got, result, err := run(t, averaging(n, nil), engine.Parallelism(p), engine.Shards(16), engine.MemoryBudget(budget), engine.SpillDir(dir))
			require.NoError(t, err, "p=%d, budget %d", p, budget)
			require.Equal(t, want, got)
			require.LessOrEqual(t, result.Report.PeakMemory, 2*budget)
			if budget > 8*n {
				require.GreaterOrEqual(t, result.Report.PeakMemory, int64(8*n), "rows in memory count")
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
}

// TestRowsBeyondTheBudgetThatChange: what a function, or the disk, does to rows in a file is
// an error before anything leaves the queue, though no check was asked for.
func TestRowsBeyondTheBudgetThatChange(t *testing.T) {
	meddle := func(step, shard int, values []float64) {
		if step == 10 { // of every shard, as which of them are in memory is a matter of timing
			values[len(values)-1]++
		}
	}
	_, _, err := run(t, averaging(1<<17, meddle), engine.Parallelism(2), engine.Shards(16), engine.MemoryBudget(128<<10))
	require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
	require.ErrorContains(t, err, "is damaged")
	require.ErrorContains(t, err, "shard ")
}

// rowsFS makes files for the rows of queues as make does, and all others as the system does.
type rowsFS struct {
	disk.FS
	make func(dir, pattern string) (disk.File, error)
}

func (fs rowsFS) CreateTemp(dir, pattern string) (disk.File, error) {
	if strings.HasPrefix(pattern, "rows-") {
		return fs.make(dir, pattern)
	}
	return fs.FS.CreateTemp(dir, pattern)
}

// TestRowsThatNoFileHolds: a full disk is told, with what to do; where files cannot be mapped
// rows must fit in memory.
func TestRowsThatNoFileHolds(t *testing.T) {
	for _, test := range []struct {
		make func(dir, pattern string) (disk.File, error)
		want []string
	}{
		{func(string, string) (disk.File, error) { return nil, syscall.ENOSPC },
			[]string{"keep rows beyond the memory budget in ", "no space left on device; free disk space, choose another spill directory or raise the memory budget"}},
		{func(dir, pattern string) (disk.File, error) {
			f, err := disk.OS().CreateTemp(dir, pattern)
			return struct{ disk.File }{f}, err
		}, []string{"out of memory: ", "give the job more memory, at least --memory"}},
	} {
		_, _, err := run(t, averaging(1<<17, nil), engine.Parallelism(2), engine.Shards(16), engine.MemoryBudget(128<<10), engine.Disk(rowsFS{disk.OS(), test.make}))
		for _, want := range test.want {
			require.ErrorContains(t, err, want)
		}
		require.ErrorContains(t, err, `partitioned data "data", shard `)
	}
}
