//go:build linux && !race

package comqueue_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
)

// peaks is an allocator that records the peak of allocated bytes.
type peaks struct {
	memory.Allocator
	now, most atomic.Int64
}

func newPeaks() *peaks { return &peaks{Allocator: memory.NewGoAllocator()} }

func (p *peaks) add(n int) {
	now := p.now.Add(int64(n))
	for most := p.most.Load(); now > most && !p.most.CompareAndSwap(most, now); most = p.most.Load() {
	}
}

func (p *peaks) Allocate(n int) []byte {
	p.add(n)
	return p.Allocator.Allocate(n)
}

func (p *peaks) Reallocate(n int, b []byte) []byte {
	p.add(n - len(b))
	return p.Allocator.Reallocate(n, b)
}

func (p *peaks) Free(b []byte) {
	p.add(-len(b))
	p.Allocator.Free(b)
}

// skewed returns a function that builds a queue over rows of numbers and texts, which are all
// in the first shard. The queue adds up the numbers.
func skewed(n int64, onDisk *atomic.Bool) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		key := comqueue.PartitionedRows("rows")
		ns, names := key.Ints("n"), key.Texts("name")
		rows := operators.Map(operators.Range(b, 0, n), func(i int64) named { return named{i, name(i)} })
		rows = operators.PartitionByCustom(rows, func(named, int) int { return 0 })
		return comqueue.New(b, "skewed").InitWithPartitionedData(key, rows).Do(idle).
			CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				if key.Get(ctx, shard).OnDisk() {
					onDisk.Store(true)
				}
				texts, sum := names.Get(ctx, shard), 0.0
				for i, v := range ns.Get(ctx, shard) {
					if texts.At(i) != name(v) {
						return nil, fmt.Errorf("row %d is %d, %q", i, v, texts.At(i))
					}
					sum += float64(v)
				}
				return []row{{sum}}, nil
			})).SetMaxIter(1).Exec()
	}
}

// TestOneLargeShard requires that a shard that is larger than the budget is never completely in
// memory while it is read, and that every byte in memory counts. If the budget holds the shard
// once but not twice, the shard must be in memory in the end.
func TestOneLargeShard(t *testing.T) {
	const n = 1 << 18 // 7 MiB with offsets, 1 MiB of which stays in memory
	for _, test := range []struct {
		budget, most int64
		onDisk       bool
	}{
		{3 << 20, 5 << 20, true}, // most includes the offsets of the rows in files twice
		{10 << 20, 8 << 20, false},
		{64 << 20, math.MaxInt64, false},
	} {
		mem, onDisk := newPeaks(), new(atomic.Bool)
		rows, result, err := runOnce(t, skewed(n, onDisk), engine.Parallelism(1), engine.Shards(4), engine.MemoryBudget(test.budget), engine.Allocator(mem))
		require.NoError(t, err)
		sums := []float64{rows[0].Value, rows[1].Value, rows[2].Value, rows[3].Value}
		require.Equal(t, []float64{n * (n - 1) / 2, 0, 0, 0}, sums)
		require.Equal(t, test.onDisk, onDisk.Load())
		require.LessOrEqual(t, mem.most.Load(), test.most, "budget %d", test.budget)
		require.LessOrEqual(t, result.Report.PeakMemory, test.budget+test.budget/8+4*n, "budget %d", test.budget) // each piece has its own offsets
		require.GreaterOrEqual(t, result.Report.PeakMemory, mem.most.Load()*8/10, "the source of a copy must count as held memory, budget %d", test.budget)
	}
}

// TestOneLargeShardOnBadDisks requires an error if the disk damages a part of a shard before
// the parts are joined. If files cannot be mapped, the shard must fit in memory.
func TestOneLargeShardOnBadDisks(t *testing.T) {
	write := func(f *os.File) error { _, err := f.WriteAt([]byte{99}, 5000); return err }
	cut := func(f *os.File) error { return f.Truncate(0) }
	for _, test := range []struct {
		name    string
		budget  int64
		spoiled int // index of the file to spoil
		spoil   func(f *os.File) error
		fail    error
		mapped  bool
		want    []string
	}{
		{"other bytes", 3 << 20, 0, write, nil, true, []string{`rows of "rows", kept beyond the memory budget: the file `, "is damaged"}},
		{"other bytes later", 2 << 20, 1, write, nil, true, []string{`rows of "rows", kept beyond the memory budget: the file `, "is damaged"}},
		{"no bytes", 3 << 20, 0, cut, nil, true, []string{`rows of "rows", kept beyond the memory budget: the file `, "some cannot be read"}},
		{"no room", 3 << 20, 0, nil, syscall.ENOSPC, true, []string{"keep rows beyond the memory budget in ", "no space left on device; free disk space"}},
		{"no mapping", 3 << 20, 0, nil, nil, false, []string{"out of memory: ", "at least --memory "}},
		{"no mapping, and room", 10 << 20, 0, nil, nil, false, nil},
	} {
		var files []*os.File
		fs := rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
			f, err := disk.OS().CreateTemp(dir, pattern)
			switch {
			case err != nil:
				return nil, err
			case !test.mapped:
				return struct{ disk.File }{f}, nil
			case test.fail != nil && len(files) > 0:
				return nil, errors.Join(test.fail, f.Close(), os.Remove(f.Name()))
			}
			kept, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
			require.NoError(t, err)
			t.Cleanup(func() { kept.Close() })
			if files = append(files, kept); test.spoil != nil && len(files) == test.spoiled+2 {
				err = test.spoil(files[test.spoiled])
			}
			return f, err
		}}
		dir := t.TempDir()
		_, _, err := runOnce(t, skewed(1<<18, new(atomic.Bool)), engine.Parallelism(1), engine.Shards(4), engine.MemoryBudget(test.budget), engine.SpillDir(dir), engine.Disk(fs))
		if test.want == nil {
			require.NoError(t, err)
		}
		for _, want := range test.want {
			require.ErrorContains(t, err, want, test.name)
			require.ErrorContains(t, err, `partitioned data "rows", shard 0: `, test.name)
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
