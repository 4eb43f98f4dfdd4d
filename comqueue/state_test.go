//go:build linux

package comqueue_test

import (
	"encoding/binary"
	"errors"
	"math"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// leastStaged is the number of bytes of a shard that may be on the heap while it is read, even
// if the budget is smaller.
const leastStaged = 64 << 10

// keeping returns a function that builds a queue that sums rows in three supersteps. The queue
// declares the given number of bytes of state per row, each, and counts the shards that are on
// disk.
func keeping(n int, each int64, onDisk *atomic.Int32, meddle func(step int, rows *comqueue.Frame) error) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		state := func(_ *comqueue.ComContext, rows *comqueue.Frame) int64 { return each * int64(rows.Rows()) }
		return comqueue.New(b, "keeping").
			InitWithPartitionedData(data.WithState(state), dataset(b, n, func(i int) float64 { return float64(i % 101) })).
			Begin(func(ctx *comqueue.ComContext) error {
				centre.Put(ctx, []float64{0})
				return nil
			}).
			Init(func(ctx *comqueue.ComContext) error {
				gradient.Put(ctx, make([]float64, 1))
				return ctx.ForShards(func(shard int) error {
					if data.Get(ctx, shard).OnDisk() {
						onDisk.Add(1)
					}
					return nil
				})
			}).
			Add(comqueue.ForEachShard(gradient, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				rows := data.Get(ctx, shard)
				for _, v := range rows.Floats("value") {
					out[0] += v
				}
				if meddle == nil {
					return nil
				}
				return meddle(ctx.StepNo(), rows)
			})).
			Add(comqueue.AllReduce(gradient)).
			Do(func(ctx *comqueue.ComContext) error {
				centre.Get(ctx)[0] += gradient.Get(ctx)[0]
				return nil
			}).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				return []row{{centre.Get(ctx)[0]}}, nil
			})).
			SetMaxIter(3).
			Exec()
	}
}

// TestStateMakesRoom requires that the state of stages takes precedence over rows: rows, even
// those already in memory, move to disk if the state would not fit otherwise.
func TestStateMakesRoom(t *testing.T) {
	const n = 1 << 17 // a MiB of rows
	for _, test := range []struct {
		each        int64
		budget      int64
		least, most int32 // shards on disk, of 16
		beyond      int64 // bytes that may be held beyond the budget, except for a shard that is being read
	}{
		{0, 9 << 17, 0, 0, 0},
		{1, 9 << 17, 0, 2, 0}, // 1.125 MiB hold rows and state, but while the exchange uses half of the budget, at shard 8, 72 KiB are missing
		{2, 9 << 17, 2, 3, 0},
		{7, 9 << 17, 12, 13, 0},
		{9, 9 << 17, 16, 16, 9 << 16}, // state fills the budget, and the exchange uses up to half of the budget in addition until its rows are read
	} {
		var onDisk atomic.Int32
		got, result, err := runOnce(t, keeping(n, test.each, &onDisk, nil), engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(test.budget))
		require.NoError(t, err)
		want, _, err := runOnce(t, keeping(n, 0, new(atomic.Int32), nil), engine.Parallelism(1), engine.Shards(16))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.GreaterOrEqual(t, onDisk.Load(), test.least, "%d bytes a row", test.each)
		require.LessOrEqual(t, onDisk.Load(), test.most, "%d bytes a row", test.each)
		require.GreaterOrEqual(t, result.Report.PeakMemory, test.each*n)
		require.LessOrEqual(t, result.Report.PeakMemory, test.budget+test.beyond+8*n/16, "%d bytes a row", test.each)
	}
	_, _, err := runOnce(t, keeping(n, 10, new(atomic.Int32), nil), engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(9<<17))
	require.ErrorContains(t, err, `partitioned data "data", shard `)
	require.ErrorContains(t, err, "what the queue keeps for its rows: out of memory: ")
}

// advised returns the memory that an error advises.
func advised(t *testing.T, err error) int64 {
	t.Helper()
	found := regexp.MustCompile(`at least --memory (\d+)(KiB|MiB)`).FindStringSubmatch(err.Error())
	require.NotNil(t, found, err.Error())
	n, err := strconv.ParseInt(found[1], 10, 64)
	require.NoError(t, err)
	return n << map[string]int{"KiB": 10, "MiB": 20}[found[2]]
}

// TestAdviceIsEnough requires that the advised memory suffices for the state of all shards of
// the subtask, including shards not yet read, however rows are distributed, and that it is not
// more than necessary.
func TestAdviceIsEnough(t *testing.T) {
	const n, each = 1 << 17, 10
	even := func(i, shards int) int { return i % shards }
	for _, test := range []struct {
		p, runs int // number of subtasks, and number of the run that must succeed at the latest
		spread  func(i, shards int) int
		disk    disk.FS
		most    int64 // bytes that may be advised at most; they are rounded up to a MiB
	}{
		{1, 2, even, disk.OS(), 5 << 18},
		{1, 2, func(i, shards int) int { return int(math.Sqrt(float64(i)/n) * float64(shards)) }, disk.OS(), 5 << 18}, // more rows in each later shard
		{1, 2, func(i, shards int) int { return min(i, shards-1) }, disk.OS(), 5 << 18},                               // nearly all rows in the last shard
		{2, 3, even, disk.OS(), 5 << 18},
		{3, 3, even, disk.OS(), 5 << 18 * 18 / 16}, // the subtasks have 5, 5 and 6 shards, so the budget must suffice for 18 shards
		{1, 3, even, unmapped, 9 << 18},            // rows are in memory
	} {
		key := comqueue.PartitionedRows("rows").WithState(func(_ *comqueue.ComContext, rows *comqueue.Frame) int64 { return each * int64(rows.Rows()) })
		build := func(b *engine.Builder) *engine.Dataset {
			rows := operators.PartitionByCustom(operators.Range(b, 0, n), func(i int64, shards int) int { return test.spread(int(i), shards) })
			return comqueue.New(b, "advised").InitWithPartitionedData(key, rows).Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}
		budget := int64(300 << 10)
		for run := 1; ; run++ {
			_, _, err := runOnce(t, build, engine.Parallelism(test.p), engine.Shards(16), engine.MemoryBudget(budget), engine.Disk(test.disk))
			if err == nil {
				break
			}
			require.Less(t, run, test.runs, err)
			more := advised(t, err)
			require.Greater(t, more, budget)
			budget = more
		}
		require.LessOrEqual(t, budget, (test.most+1<<20-1)>>20<<20)
	}
}

// TestDamageIsTheCause requires that, if a stage fails and rows on disk are damaged, the error
// contains both the damage and the error of the stage. If no rows are damaged, it must be the
// error of the stage.
func TestDamageIsTheCause(t *testing.T) {
	boom := errors.New("the sum is not what it was")
	for _, test := range []struct {
		name   string
		damage bool
		fail   func() error
	}{
		{"error", true, func() error { return boom }},
		{"panic", true, func() error { panic(boom) }},
		{"error alone", false, func() error { return boom }},
		{"panic alone", false, func() error { panic(boom) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := run(t, keeping(1<<17, 0, new(atomic.Int32), func(step int, rows *comqueue.Frame) error {
				if step < 2 || !rows.OnDisk() {
					return nil
				}
				if test.damage {
					rows.Floats("value")[0]++
				}
				return test.fail()
			}), engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(256<<10))
			if !test.damage {
				require.ErrorContains(t, err, boom.Error())
				require.NotContains(t, err.Error(), "damaged")
				return
			}
			require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
			require.ErrorContains(t, err, "is damaged")
			require.NotErrorIs(t, err, boom)
			if test.name == "error" {
				require.ErrorContains(t, err, "; the function failed with: "+boom.Error(), "the error of the stage must be included, as the stage itself may have changed the rows")
			}
		})
	}
}

// squares returns a function that builds a queue that computes a block from its rows and adds
// up the block in three supersteps.
func squares(n int, fill func(block []byte) error, onDisk *atomic.Bool, meddle func(step int, block []byte)) func(b *engine.Builder) *engine.Dataset {
	blocks := comqueue.PartitionedRows("rows")
	return func(b *engine.Builder) *engine.Dataset {
		type held struct{ of map[int][]byte }
		block := shared.Scratch[*held]("block")
		return comqueue.New(b, "squares").
			InitWithPartitionedData(blocks, dataset(b, n, func(i int) float64 { return float64(i % 7) })).
			Begin(func(ctx *comqueue.ComContext) error {
				centre.Put(ctx, []float64{0})
				return nil
			}).
			Init(func(ctx *comqueue.ComContext) error {
				gradient.Put(ctx, make([]float64, 1))
				h := &held{map[int][]byte{}}
				block.Put(ctx, h)
				return ctx.ForShards(func(shard int) error {
					values := blocks.Get(ctx, shard).Floats("value")
					all := values
					b, disk, err := ctx.HoldBlock("squares", []int{8 * (len(values) / 2), 0, 8 * (len(values) - len(values)/2)}, func(piece int, b []byte) error {
						values := values[len(values)/2:]
						if piece < 2 {
							values = all[:len(b)/8]
						}
						for i, v := range values {
							if binary.LittleEndian.Uint64(b[8*i:]) != 0 {
								return errors.New("the block is not zeroed")
							}
							binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v*v))
						}
						return fill(b)
					})
					if disk {
						onDisk.Store(true)
					}
					h.of[shard] = b
					return err
				})
			}).
			Add(comqueue.ForEachShard(gradient, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				b := block.Get(ctx).of[shard]
				for i := 0; i < len(b); i += 8 {
					out[0] += math.Float64frombits(binary.LittleEndian.Uint64(b[i:]))
				}
				if meddle != nil {
					meddle(ctx.StepNo(), b)
				}
				return nil
			})).
			Add(comqueue.AllReduce(gradient)).
			Do(func(ctx *comqueue.ComContext) error {
				centre.Get(ctx)[0] += gradient.Get(ctx)[0]
				return nil
			}).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				return []row{{centre.Get(ctx)[0]}}, nil
			})).
			SetMaxIter(3).
			Exec()
	}
}

// TestBlocks requires that blocks in memory and in files give the same bits, and that subtasks
// that continue a queue make their blocks again.
func TestBlocks(t *testing.T) {
	const n = 1 << 17
	want := 0.0
	for i := range n {
		want += float64((i % 7) * (i % 7))
	}
	fine := func([]byte) error { return nil }
	for _, budget := range []int64{0, 3 << 19, 600 << 10} {
		for _, check := range []bool{false, true} {
			var onDisk atomic.Bool
			got, result, err := run(t, squares(n, fine, &onDisk, nil), engine.Parallelism(2), engine.Shards(8), engine.MemoryBudget(budget), engine.CheckState(check))
			require.NoError(t, err)
			require.Equal(t, []row{{3 * want}}, got)
			require.Equal(t, budget > 0, onDisk.Load(), "budget %d", budget)
			if budget > 0 {
				require.LessOrEqual(t, result.Report.PeakMemory, budget+2*leastStaged)
			}
		}
	}
	var onDisk atomic.Bool
	for _, check := range []bool{false, true} {
		for step := 1; step <= 3; step++ {
			_, _, err := runOnce(t, squares(n, fine, &onDisk, func(s int, b []byte) {
				if s == step {
					b[len(b)-1] ^= 1
				}
			}), engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(600<<10), engine.CheckState(check))
			require.ErrorContains(t, err, "squares, kept beyond the memory budget: the file ", "step %d", step)
			require.ErrorContains(t, err, "is damaged")
		}
	}
	boom := errors.New("boom")
	for _, budget := range []int64{0, 600 << 10} {
		_, _, err := run(t, squares(n, func([]byte) error { return boom }, &onDisk, nil), engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(budget))
		require.ErrorContains(t, err, "squares: boom")
	}
}

// TestRowsOnDiskMove requires that the new owners of shards get the rows in memory and in files
// without a copy, that blocks are made again, and that changes on disk are reported even after
// that.
func TestRowsOnDiskMove(t *testing.T) {
	const n = 1 << 17
	want := 0.0
	for i := range n {
		want += float64((i % 7) * (i % 7))
	}
	fine := func([]byte) error { return nil }
	for _, budget := range []int64{0, 3 << 19, 600 << 10} {
		for _, at := range []map[int]int{{1: 4}, {2: 1}, {1: 3, 2: 8, 3: 2}} {
			var onDisk atomic.Bool
			options := append(resumes(at), engine.Parallelism(2), engine.Shards(8), engine.MemoryBudget(budget))
			got, result, err := runOnce(t, squares(n, fine, &onDisk, nil), options...)
			require.NoError(t, err)
			require.Equal(t, []row{{3 * want}}, got)
			require.Equal(t, budget > 0, onDisk.Load(), "budget %d", budget)
			if budget > 0 {
				require.LessOrEqual(t, result.Report.PeakMemory, budget+2*leastStaged)
			}
		}
	}
	for _, damaged := range []int{1, 2, 3} { // before the cut, in the superstep that is cut, after it
		_, _, err := runOnce(t, keeping(n, 0, new(atomic.Int32), func(step int, rows *comqueue.Frame) error {
			if step == damaged && rows.OnDisk() {
				rows.Floats("value")[0]++
			}
			return nil
		}), engine.Parallelism(1), engine.Shards(16), engine.MemoryBudget(256<<10), engine.CheckResume(2, 3))
		require.ErrorContains(t, err, `rows of "data", kept beyond the memory budget: the file `)
		require.ErrorContains(t, err, "is damaged")
	}
	var onDisk atomic.Bool
	for _, damaged := range []int{2, 3} {
		_, _, err := runOnce(t, squares(n, fine, &onDisk, func(step int, b []byte) {
			if step == damaged {
				b[len(b)-1] ^= 1
			}
		}), engine.Parallelism(1), engine.Shards(8), engine.MemoryBudget(600<<10), engine.CheckResume(2, 2))
		require.ErrorContains(t, err, "squares, kept beyond the memory budget: the file ")
		require.ErrorContains(t, err, "is damaged")
	}
}
