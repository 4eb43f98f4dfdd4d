//go:build linux

package comqueue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
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

// TestRowsBeyondTheBudgetThatChange requires that, if a function or the disk changes rows in a
// file, the job fails before the queue emits rows, even without checks.
func TestRowsBeyondTheBudgetThatChange(t *testing.T) {
	for first, last := range map[int]int{0: 7, 8: 15} { // shards of one subtask
		hook := func(step, shard int, values []float64) {
			if step == 10 && shard >= first && shard <= last { // all shards, as it depends on timing which of them are in files
				values[len(values)-1]++
			}
		}
		_, _, err := run(t, averaging(1<<17, hook), engine.Parallelism(2), engine.Shards(16), engine.MemoryBudget(128<<10))
		require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
		require.ErrorContains(t, err, "is damaged")
		require.ErrorContains(t, err, "shard ")
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

// holder is a source without rows that takes memory of its slot when it opens and never
// releases the memory. The source ends when the channel taken is closed.
type holder struct {
	bytes       int64
	held, taken chan struct{}
	used        *func() int64 // returns how many bytes of the slot's memory are in use
}

func (h holder) Open(c *engine.Context) error {
	*h.used = c.Memory.Used
	c.Memory.Take(h.bytes)
	close(h.held)
	return nil
}

func (h holder) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	select {
	case <-h.taken:
	case <-c.Done():
	}
	return nil
}

func (h holder) Close() error { return nil }

// TestRowsBesideOthers requires that, if files cannot be mapped, rows are accepted even if
// other operators temporarily hold so much memory that the rows do not fit. Rows that would not
// fit in a budget that nothing else uses must be refused.
func TestRowsBesideOthers(t *testing.T) {
	const n, budget = 20_000, 256 << 10 // rows of 160 kB
	for state, want := range map[int64]string{0: "", 64 << 10: "", 160 << 10: "what the queue keeps for its rows: out of memory: "} {
		held, taken := make(chan struct{}), make(chan struct{})
		var used func() int64
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			first := operators.FromSlice(b, []row{{1}})
			other := b.Add(engine.Spec{Op: "Hold", Schema: first.Schema(), Source: func() engine.Source {
				return holder{200 << 10, held, taken, &used}
			}})
			engine.Collect(other, "other")
			rows := dataset(b, n, func(i int) float64 {
				if i == 0 {
					<-held
				}
				return float64(i)
			})
			key := comqueue.PartitionedRows("rows").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 { return state })
			return comqueue.New(b, "beside").InitWithPartitionedData(key, rows).
				Init(func(*comqueue.ComContext) error { close(taken); return nil }).Do(idle).
				CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]row, error) { return nil, nil })).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(budget), engine.Disk(unmapped))
		if want == "" {
			require.NoError(t, err, state)
		} else {
			require.ErrorContains(t, err, want, state)
		}
		require.Equal(t, int64(200<<10), used(), "only the bytes that the other source never releases may remain")
	}
}

// crowding is a source that takes more memory than the budget has. It takes the memory when its
// channel `when` is closed, and releases it when its channel taken is closed, which happens
// when the queue has read its rows.
type crowding struct {
	bytes             int64
	when, held, taken chan struct{}
	used              *func() int64 // returns how many bytes of the slot's memory are in use
}

func (h crowding) Close() error { return nil }

func (h crowding) Open(c *engine.Context) error {
	*h.used = c.Memory.Used
	return nil
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
		when, held, taken := make(chan struct{}), make(chan struct{}), make(chan struct{})
		seen, files := 0, 0
		fs := rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
			files++
			return disk.OS().CreateTemp(dir, pattern)
		}}
		var used func() int64
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			schema := operators.FromSlice(b, []row{{1}}).Schema()
			engine.Collect(b.Add(engine.Spec{Op: "Crowd", Schema: schema, Source: func() engine.Source { return crowding{4480 << 10, when, held, taken, &used} }}), "other")
			rows := dataset(b, per*(before+1), func(i int) float64 {
				if i == per*before {
					<-held
				}
				return float64(i)
			})
			key := comqueue.PartitionedRows("rows").WithState(func(ctx *comqueue.ComContext, _ *comqueue.Frame) int64 {
				if seen++; seen == before {
					close(when)
				}
				return 0
			})
			return comqueue.New(b, "crowded").InitWithPartitionedData(key, rows).
				Init(func(*comqueue.ComContext) error { close(taken); return nil }).Do(idle).
				CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]row, error) { return nil, nil })).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(before+1), engine.MemoryBudget(budget), engine.Disk(fs))
		require.NoError(t, err)
		require.Equal(t, before+1, files)
		require.Zero(t, used())
	}
}

// TestRowsThatChangeWhileTheQueueCloses requires that the job fails if files with rows change
// while the close function makes rows from them.
func TestRowsThatChangeWhileTheQueueCloses(t *testing.T) {
	boom := errors.New("boom")
	for _, perShard := range []bool{false, true} {
		for _, fails := range []error{nil, boom} {
			for _, damaged := range []bool{false, true} {
				var emitted atomic.Bool
				sum := func(ctx *comqueue.ComContext, shard int) ([]row, error) {
					values := data.Get(ctx, shard).Floats("value")
					if damaged && data.Get(ctx, shard).OnDisk() {
						values[0]++
					}
					s := 0.0
					for _, v := range values {
						s += v
					}
					if shard == 15 {
						return nil, fails
					}
					return []row{{s}}, nil
				}
				closing := comqueue.ShardOutput(sum)
				_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
					q := comqueue.New(b, "closing").InitWithPartitionedData(data, dataset(b, 1<<17, func(i int) float64 { return float64(i % 1013) })).Do(idle).SetMaxIter(1)
					if perShard {
						return q.CloseWith(closing).Exec()
					}
					sums := q.CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) (all []row, err error) {
						return all, ctx.ForShards(func(shard int) error {
							of, err := sum(ctx, shard)
							all = append(all, of...)
							return err
						})
					})).Exec()
					return operators.Map(sums, func(r row) row { emitted.Store(true); return r })
				}, engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(128<<10))
				switch {
				case damaged:
					require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
					require.ErrorContains(t, err, "is damaged")
				case fails != nil:
					require.ErrorContains(t, err, "boom")
				default:
					require.NoError(t, err)
				}
				if !damaged { // damage is found at the end, when rows may already have been emitted
					require.Equal(t, !perShard && fails == nil, emitted.Load())
				}
			}
		}
	}
}

// TestFaultsWhileBlocksAreFilled requires that, if the disk cannot read a page of a block, the
// subtask fails and the process does not crash, even while the first block is filled.
func TestFaultsWhileBlocksAreFilled(t *testing.T) {
	var file *os.File
	fs := rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
		f, err := disk.OS().CreateTemp(dir, pattern)
		if err == nil {
			file, err = os.OpenFile(f.Name(), os.O_RDWR, 0)
		}
		return f, err
	}}
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "faults").Init(func(ctx *comqueue.ComContext) error {
			_, _, err := ctx.HoldBlock("block", []int{2 << 20, 2 << 20}, func(piece int, b []byte) error {
				require.NoError(t, file.Truncate(0))
				b[1<<20] = 1
				return nil
			})
			return err
		}).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.MemoryBudget(128<<10), engine.Disk(fs))
	require.ErrorContains(t, err, ": block: fill the 4194304 bytes of the file "+file.Name()+", which is mapped: the disk does not hold them (runtime error: ")
	require.NoError(t, file.Close())
	requireUnmapped(t)
}

// keeper keeps a block between supersteps. Its snapshot depends on the block.
type keeper struct {
	block []byte
	calls byte
}

func (k *keeper) Calc(ctx *comqueue.ComContext) (err error) {
	if k.block == nil {
		k.block, _, err = ctx.HoldBlock("block", []int{4 << 20}, func(_ int, b []byte) error { b[0] = 1; return nil })
	}
	k.calls++
	return err
}

func (k *keeper) AppendSnapshot(dst []byte) ([]byte, error) {
	return append(dst, k.calls+k.block[0]-1), nil
}

func (k *keeper) Restore(src []byte) error { k.calls = src[0]; return nil }

// TestSnapshotsReadBlocks requires that the blocks of instances are still valid while their
// snapshots are taken.
func TestSnapshotsReadBlocks(t *testing.T) {
	for _, option := range []engine.Option{engine.CheckState(true), engine.CheckResume(1, 1)} {
		var last *keeper
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "keeping").AddNew(func() comqueue.Compute { last = &keeper{}; return last }).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3).Exec()
		}, engine.Parallelism(1), option)
		require.NoError(t, err)
		require.Equal(t, byte(3), last.calls)
	}
}

// hookedAllocator is an allocator that calls hook before each allocation.
type hookedAllocator struct {
	memory.Allocator
	hook func()
}

func (m hookedAllocator) Allocate(n int) []byte {
	m.hook()
	return m.Allocator.Allocate(n)
}

// TestDamageWhileRowsAreWritten requires an error if a page of a file changes before all
// columns of a shard are written.
func TestDamageWhileRowsAreWritten(t *testing.T) {
	write := func(f *os.File) error { _, err := f.WriteAt([]byte{1}, 0); return err }
	cut := func(f *os.File) error { return f.Truncate(0) }
	for want, damage := range map[string]func(*os.File) error{
		`rows of "data", kept beyond the memory budget: the disk gives other rows back than it was given: column "value", row 0`: write,
		`, shard 0: fill the `: cut,
	} {
		for _, shards := range []int{1, 16} {
			err := damaged(t, shards, damage)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, `partitioned data "data", shard 0: `)
			requireUnmapped(t)
		}
	}
}

// requireUnmapped requires that the process no longer maps any file of rows.
func requireUnmapped(t *testing.T) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.NotContains(t, string(maps), "/rows-")
}

// damaged runs a queue whose rows exceed the budget and damages their file while columns are
// written. It returns the error of the queue and requires that all memory of the slot was
// released.
func damaged(t *testing.T, shards int, damage func(*os.File) error) error {
	type named struct {
		Value float64
		Name  string // offsets of text are allocated just before its values are written
	}
	var last atomic.Pointer[os.File]
	fs := rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
		f, err := disk.OS().CreateTemp(dir, pattern)
		if err == nil {
			kept, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
			assert.NoError(t, err)
			t.Cleanup(func() { kept.Close() })
			last.Store(kept)
		}
		return f, err
	}}
	mem := hookedAllocator{memory.NewGoAllocator(), func() {
		if f := last.Load(); f != nil {
			assert.NoError(t, damage(f))
		}
	}}
	var used func() int64
	looked := make(chan struct{})
	rows := comqueue.PartitionedRows("data")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		d := operators.Map(operators.Range(b, 0, 1<<17), func(i int64) named {
			<-looked
			return named{float64(i), "name"}
		})
		schema := operators.FromSlice(b, []row{{1}}).Schema()
		engine.Collect(b.Add(engine.Spec{Op: "Look", Schema: schema, Source: func() engine.Source { return looking{&used, looked} }}), "other")
		return comqueue.New(b, "damaged").InitWithPartitionedData(rows, d).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(shards), engine.MemoryBudget(256<<10), engine.Disk(fs), engine.Allocator(mem))
	require.Zero(t, used())
	return err
}

// looking is a source without rows that opens before other sources emit rows. It gives the test
// a function that returns how much of its slot's memory is in use.
type looking struct {
	used   *func() int64
	looked chan struct{}
}

func (l looking) ReadShard(*engine.Context, int, engine.Output) error { return nil }
func (l looking) Close() error                                        { return nil }

func (l looking) Open(c *engine.Context) error {
	*l.used = c.Memory.Used
	close(l.looked)
	return nil
}

// unmapped creates files that cannot be mapped.
var unmapped = rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
	f, err := disk.OS().CreateTemp(dir, pattern)
	return struct{ disk.File }{f}, err
}}

// TestQueuesThatDoNotFitTogether requires that, if rows cannot move to disk, queues that run at
// the same time are refused if their rows together exceed twice the budget.
func TestQueuesThatDoNotFitTogether(t *testing.T) {
	const n, queues = 100_000, 3 // 800 kB of rows each
	budget, refused := int64(1<<20), 0
	for ; refused < 6; refused++ {
		ctx, cancel := context.WithCancel(t.Context())
		var open sync.WaitGroup
		open.Add(queues)
		job := engine.Anonymous(func(b *engine.Builder) error {
			for i := range queues {
				name := fmt.Sprint("queue ", i)
				engine.Collect(comqueue.New(b, name).InitWithPartitionedData(data, dataset(b, n, func(i int) float64 { return float64(i) })).
					Init(func(queue *comqueue.ComContext) error { // all queues hold their rows at the same time
						open.Done()
						all := make(chan struct{})
						go func() { open.Wait(); close(all) }()
						select {
						case <-all:
						case <-queue.Context().Done():
						}
						return nil
					}).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec(), name)
			}
			return nil
		})
		result, err := engine.Run(ctx, job, struct{}{}, engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(budget), engine.Disk(unmapped))
		cancel()
		if err == nil {
			require.LessOrEqual(t, result.Report.PeakMemory, 2*budget+budget/4)
			result.Release()
			break
		}
		var full *task.BudgetError
		require.ErrorAs(t, err, &full)
		require.Greater(t, full.Enough, budget)
		budget = full.Enough
	}
	require.NotZero(t, refused)
	require.Less(t, refused, 6, "the advised memory must rise with each refusal, as it includes what other queues hold")
}

// TestInputsThatDoNotFitTogether requires that the advised memory includes the rows of inputs
// that have not been read yet.
func TestInputsThatDoNotFitTogether(t *testing.T) {
	const n = 20_000 // 160 kB of rows each
	budget, refused := int64(64<<10), 0
	for ; refused < 4; refused++ {
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			q := comqueue.New(b, "inputs")
			for i := range 3 {
				q.InitWithPartitionedData(comqueue.PartitionedRows(fmt.Sprint("input ", i)), dataset(b, n, func(i int) float64 { return float64(i) }))
			}
			return q.Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(budget), engine.Disk(unmapped))
		if err == nil {
			break
		}
		var full *task.BudgetError
		require.ErrorAs(t, err, &full)
		budget = full.Enough
	}
	require.Equal(t, 1, refused)
}

// TestStateThatPanics requires that the memory of rows is released if the user's function of
// WithState panics for them.
func TestStateThatPanics(t *testing.T) {
	for _, budget := range []int64{128 << 10, 64 << 20} {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		var used func() int64
		looked := make(chan struct{})
		key := comqueue.PartitionedRows("rows").WithState(func(*comqueue.ComContext, *comqueue.Frame) int64 {
			<-looked
			panic("boom")
		})
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			schema := operators.FromSlice(b, []row{{1}}).Schema()
			engine.Collect(b.Add(engine.Spec{Op: "Look", Schema: schema, Source: func() engine.Source { return looking{&used, looked} }}), "other")
			return comqueue.New(b, "state").InitWithPartitionedData(key, dataset(b, 1<<17, func(i int) float64 { return float64(i) })).Do(idle).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(1), engine.Shards(1), engine.MemoryBudget(budget), engine.Allocator(mem))
		require.ErrorContains(t, err, "boom")
		mem.AssertSize(t, 0)
		require.Zero(t, used())
		requireUnmapped(t)
	}
}

// TestOffsetsOfRowsInFilesCount requires that the offsets of rows in files, which stay in
// memory, count in the budget.
func TestOffsetsOfRowsInFilesCount(t *testing.T) {
	const n, shards = 1 << 15, 16
	var used func() int64
	looked, held := make(chan struct{}), int64(0)
	key := comqueue.PartitionedRows("rows")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		rows := operators.Map(operators.Range(b, 0, n), func(i int64) named {
			<-looked
			return named{i, name(i)}
		})
		schema := operators.FromSlice(b, []row{{1}}).Schema()
		engine.Collect(b.Add(engine.Spec{Op: "Look", Schema: schema, Source: func() engine.Source { return looking{&used, looked} }}), "other")
		return comqueue.New(b, "offsets").InitWithPartitionedData(key, rows).Do(func(ctx *comqueue.ComContext) error {
			held = used()
			onDisk := 0
			for shard := range shards {
				if key.Get(ctx, shard).OnDisk() {
					onDisk++
				}
			}
			require.Greater(t, onDisk, shards/2)
			return nil
		}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(shards), engine.MemoryBudget(256<<10))
	require.NoError(t, err)
	require.Greater(t, held, int64(4*n))
}

type named struct {
	N    int64
	Name string
}

// name returns the text of a row; texts have different lengths.
func name(n int64) string { return fmt.Sprintf("%0*d", 8+n%5, n) }
