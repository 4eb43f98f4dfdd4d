//go:build linux

package comqueue_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// averaging returns a function that builds a queue that averages rows in ten supersteps, each
// with two passes over the rows. It calls hook for every shard and pass.
func averaging(n int, hook func(step, shard int, values []float64)) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		read := func(ctx *comqueue.ComContext, shard int, out []float64) error {
			values := data.Get(ctx, shard).Floats("value")
			if hook != nil {
				hook(ctx.StepNo(), shard, values)
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

// TestRowsBeyondTheBudget requires that rows that do not fit in the memory budget are kept in
// files, and that the queue then gives the same bits, stays within the budget and leaves
// neither files nor memory behind.
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
				require.GreaterOrEqual(t, result.Report.PeakMemory, int64(8*n), "rows in memory must count in the budget")
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
}

// rowsFS creates the files for rows of queues by its function make, and all other files by
// disk.FS.
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

// TestRowsThatNoFileHolds requires that a full disk is reported with advice, and that rows must
// fit in memory if files cannot be mapped.
func TestRowsThatNoFileHolds(t *testing.T) {
	for _, test := range []struct {
		make func(dir, pattern string) (disk.File, error)
		want []string
	}{
		{func(string, string) (disk.File, error) { return nil, syscall.ENOSPC },
			[]string{"keep rows beyond the memory budget in ", "no space left on device; free disk space, choose another spill directory or raise the memory budget"}},
		{unmapped.make, []string{"out of memory: ", "give the job more memory, at least --memory"}},
	} {
		_, _, err := run(t, averaging(1<<17, nil), engine.Parallelism(2), engine.Shards(16), engine.MemoryBudget(128<<10), engine.Disk(rowsFS{disk.OS(), test.make}))
		for _, want := range test.want {
			require.ErrorContains(t, err, want)
		}
		require.ErrorContains(t, err, `partitioned data "data", shard `)
	}
}

// TestRowsBesideOthers requires that, if files cannot be mapped, rows are accepted even if
// other operators temporarily hold so much memory that the rows do not fit. Rows that would not
// fit in a budget that nothing else uses must be refused.
func TestRowsBesideOthers(t *testing.T) {
	const n, budget = 20_000, 256 << 10 // rows of 160 kB
	for state, want := range map[int64]string{0: "", 64 << 10: "", 160 << 10: "what the queue keeps for its rows: out of memory: "} {
		other := newCrowding(200 << 10)
		close(other.when)
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			other.addTo(b)
			rows := dataset(b, n, func(i int) float64 {
				if i == 0 {
					<-other.held
				}
				return float64(i)
			})
			key := comqueue.PartitionedRows("rows").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 { return state })
			return comqueue.New(b, "beside").InitWithPartitionedData(key, rows).
				Init(func(*comqueue.ComContext) error { close(other.taken); return nil }).Do(idle).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(budget), engine.Disk(unmapped))
		if want == "" {
			require.NoError(t, err, state)
		} else {
			require.ErrorContains(t, err, want, state)
		}
		require.Zero(t, other.memory.Load().Used())
	}
}

// crowding is a slot that takes bytes of its memory when its channel `when` is closed. It
// releases them when its channel taken is closed, which happens when the queue has read its rows.
type crowding struct {
	slot
	bytes             int64
	when, held, taken chan struct{}
}

// newCrowding returns a source for one run of a job.
func newCrowding(bytes int64) crowding {
	return crowding{slot{new(atomic.Pointer[task.Budget]), make(chan struct{})}, bytes, make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

// addTo adds the source to a job.
func (h crowding) addTo(b *engine.Builder) {
	engine.Collect(b.Add(engine.Spec{Op: "Crowd", Schema: rowSchema(b), Source: func() engine.Source { return h }}), "other")
}

func (h crowding) ReadShard(c *engine.Context, shard int, _ engine.Output) error {
	if shard > 0 {
		return nil
	}
	<-h.when
	c.Memory.Take(h.bytes)
	defer c.Memory.Release(h.bytes)
	close(h.held)
	select {
	case <-h.taken:
	case <-c.Done():
	}
	return nil
}

// TestRowsWhileOthersUseMemory requires that each shard is moved to disk once, even if another
// source temporarily takes more memory than the budget has.
func TestRowsWhileOthersUseMemory(t *testing.T) {
	const per, budget = 40_000, 4 << 20 // shards of 320 kB, each in its own file
	for _, before := range []int{1, 3, 7} {
		other := newCrowding(4480 << 10)
		seen, files := 0, 0
		fs := rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
			files++
			return disk.OS().CreateTemp(dir, pattern)
		}}
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			other.addTo(b)
			rows := dataset(b, per*(before+1), func(i int) float64 {
				if i == per*before {
					<-other.held
				}
				return float64(i)
			})
			key := comqueue.PartitionedRows("rows").WithState(func(ctx *comqueue.ComContext, _ *comqueue.Frame) int64 {
				if seen++; seen == before {
					close(other.when)
				}
				return 0
			})
			return comqueue.New(b, "crowded").InitWithPartitionedData(key, rows).
				Init(func(*comqueue.ComContext) error { close(other.taken); return nil }).Do(idle).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(before+1), engine.MemoryBudget(budget), engine.Disk(fs))
		require.NoError(t, err)
		require.Equal(t, before+1, files)
		require.Zero(t, other.memory.Load().Used())
	}
}

// keeper keeps a block between supersteps. Its snapshot depends on the block.
type keeper struct {
	block []byte
	calls byte
	last  **keeper // the instance that was called last
}

func (k *keeper) Calc(ctx *comqueue.ComContext) (err error) {
	*k.last = k
	if k.block == nil {
		k.block, _, err = ctx.HoldBlock("block", []int{4 << 20}, func(_ int, b []byte) error { b[0] = 1; return nil })
	}
	k.calls++
	return err
}

func (k *keeper) AppendSnapshot(dst []byte) ([]byte, error) {
	if k.block == nil { // the instance was restored, and Calc was not called yet
		return append(dst, k.calls), nil
	}
	return append(dst, k.calls+k.block[0]-1), nil
}

func (k *keeper) Restore(src []byte) error { k.calls = src[0]; return nil }

// TestSnapshotsReadBlocks requires that the blocks of instances are still valid while their
// snapshots are taken.
func TestSnapshotsReadBlocks(t *testing.T) {
	for _, option := range []engine.Option{engine.CheckState(true), engine.CheckResume(1, 1)} {
		var last *keeper
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "keeping").AddNew(func() comqueue.Compute { return &keeper{last: &last} }).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3).Exec()
		}, engine.Parallelism(1), option)
		require.NoError(t, err)
		require.Equal(t, byte(3), last.calls)
	}
}

// requireUnmapped requires that the process no longer maps any file of rows.
func requireUnmapped(t *testing.T) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.NotContains(t, string(maps), "/rows-")
}

// unmapped creates files that cannot be mapped.
var unmapped = rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
	f, err := disk.OS().CreateTemp(dir, pattern)
	return struct{ disk.File }{f}, err
}}

type named struct {
	N    int64
	Name string
}

// name returns the text of a row; texts have different lengths.
func name(n int64) string { return fmt.Sprintf("%0*d", 8+n%5, n) }

// TestRowsOfFilesThatAreEmitted requires that rows of files that a queue emits unchanged are
// copied. The files are not verified after the end of the queue, and later damage to them must
// not change the emitted rows.
func TestRowsOfFilesThatAreEmitted(t *testing.T) {
	const n = 1 << 12
	again := comqueue.PartitionedRows("again")
	for name, damage := range map[string]func(f *os.File) error{
		"write": func(f *os.File) error { _, err := f.WriteAt(make([]byte, 512), 1024); return err },
		"cut":   func(f *os.File) error { return f.Truncate(0) },
	} {
		for _, once := range []bool{false, true} {
			const budget = 2 << 20
			var watched watchedFiles
			var first []*os.File
			var memory atomic.Pointer[task.Budget]
			got, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
				source := watching(b, &memory, n)
				crowd := sync.OnceFunc(func() { memory.Load().Take(budget) }) // so that the first queue keeps its rows in files
				rows := operators.Map(source, func(r row) row { crowd(); return r })
				q := comqueue.New(b, "first").InitWithPartitionedData(data, rows).Do(func(ctx *comqueue.ComContext) error {
					memory.Load().Release(budget)
					first = watched.all()
					return nil
				}).SetMaxIter(1)
				unchanged := emitted(b, q, once, func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
					return emit(data.Get(ctx, shard).Batch())
				})
				return comqueue.New(b, "second").InitWithPartitionedData(again, unchanged).Do(func(ctx *comqueue.ComContext) error {
					require.NotEmpty(t, first)
					for _, f := range first {
						require.NoError(t, damage(f))
					}
					return ctx.ForShards(func(shard int) error {
						require.False(t, again.Get(ctx, shard).OnDisk(), "the rows must be in memory, or the test does not show that they are independent of files")
						return nil
					})
				}).CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
					sum := 0.0
					err := ctx.ForShards(func(shard int) error {
						for _, v := range again.Get(ctx, shard).Floats("value") {
							sum += v
						}
						return nil
					})
					return []row{{sum}}, err
				})).SetMaxIter(1).Exec()
			}, engine.Parallelism(1), engine.Shards(4), engine.BatchRows(n), engine.MemoryBudget(budget), engine.Disk(watched.fs(t)))
			require.NoError(t, err, name)
			require.Equal(t, []row{{n * (n - 1) / 2}}, got, name)
		}
	}
}

// TestViewsThatAreEmitted requires correct rows if a close function emits batches that refer to
// the queue's rows and blocks in memory, although the queue returns that memory to the system
// when it ends.
func TestViewsThatAreEmitted(t *testing.T) {
	const n = 1 << 18 // 2 MiB of numbers, which are not on the Go heap
	ended := func(b *engine.Builder, views *engine.Dataset) *engine.Dataset {
		read := operators.Map(views, func(r row) row { return r })
		return comqueue.New(b, "second").InitWithPartitionedData(comqueue.PartitionedRows("again"), read).Do(idle).SetMaxIter(1).
			CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				sum := 0.0
				for _, v := range comqueue.PartitionedRows("again").Get(ctx, shard).Floats("value") {
					sum += v
				}
				return []row{{sum}}, nil
			})).Exec()
	}
	blocks := shared.Scratch[[]float64]("block")
	views := map[string]func(ctx *comqueue.ComContext, shard int) []float64{
		"rows":  func(ctx *comqueue.ComContext, shard int) []float64 { return data.Get(ctx, shard).Floats("value") },
		"block": func(ctx *comqueue.ComContext, _ int) []float64 { return blocks.Get(ctx) },
	}
	block := func(ctx *comqueue.ComContext) error {
		held, _, err := ctx.HoldBlock("numbers", []int{8 * n}, func(_ int, b []byte) error {
			return ctx.ForShards(func(shard int) error {
				copy(b, arrow.Float64Traits.CastToBytes(data.Get(ctx, shard).Floats("value")))
				return nil
			})
		})
		blocks.Put(ctx, arrow.Float64Traits.CastFromBytes(held))
		return err
	}
	for name, view := range views {
		for _, once := range []bool{false, true} {
			got, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
				rows, schema := dataset(b, n, func(i int) float64 { return float64(i) }), rowSchema(b)
				q := comqueue.New(b, "first").InitWithPartitionedData(data, rows).Init(block).Do(idle).SetMaxIter(1)
				return ended(b, emitted(b, q, once, func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
					made, err := columnar.NewBatch(nil, schema, view(ctx, shard))
					if err != nil {
						return err
					}
					defer made.Release()
					return emit(made)
				}))
			}, engine.Parallelism(1), engine.Shards(1))
			require.NoError(t, err, name)
			require.Equal(t, []row{{n * (n - 1) / 2}}, got, "%s, once: %v", name, once)
		}
	}
}
