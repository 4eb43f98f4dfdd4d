package task

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestReport requires that the report and the progress count the rows in and out of all
// operators.
func TestReport(t *testing.T) {
	g := parseGraph(8, `
		a = source rows=100
		b = filter a
		c = twice b/hash
		d = tap c
		e = tap a`)
	want := g.reference()
	count := func(name string) (n int64) {
		for _, rows := range want[g.names[name]] {
			n += int64(len(rows))
		}
		return n
	}
	var mu sync.Mutex
	rows, shards := map[int]int64{}, map[int]int{}
	env := Env{Progress: func(e Progress) {
		mu.Lock()
		defer mu.Unlock()
		rows[int(e.Vertex)] = max(rows[int(e.Vertex)], e.Rows)
		shards[int(e.Vertex)] = max(shards[int(e.Vertex)], e.ShardsDone)
	}}
	got := g.run(t, context.Background(), 3, env, hooks{})
	require.NoError(t, got.err)
	require.Len(t, got.report.Vertices, 2)
	in, out := make([]int64, 5), make([]int64, 5)
	owned := 0
	for _, v := range got.report.Vertices {
		require.Len(t, v.Subtasks, 3)
		for _, s := range v.Subtasks {
			owned += s.Shards
			require.LessOrEqual(t, s.Busy+s.Waiting, got.report.Elapsed)
			for _, o := range s.Operators {
				in[o.Node] += o.RowsIn
				out[o.Node] += o.RowsOut
				if o.Node > 0 && o.RowsIn > 0 {
					require.Equal(t, []Counter{{"seen", o.RowsIn}}, o.Counters)
				}
			}
		}
	}
	all, kept := count("e"), count("d")/2
	require.Equal(t, 16, owned)
	require.Equal(t, []int64{0, all, kept, 2 * kept, all}, in)
	require.Equal(t, []int64{all, kept, 2 * kept, 0, 0}, out)
	require.Equal(t, map[int]int64{0: all, 1: kept}, rows)
	require.Equal(t, map[int]int{0: 8, 1: 8}, shards)
	exchange := got.report.Vertices[1].Subtasks
	require.Equal(t, kept, exchange[0].RowsIn+exchange[1].RowsIn+exchange[2].RowsIn)
}

// TestAccumulate requires that the sum of values with magnitudes from 1e-8 to 1e16 has, at any
// parallelism, the bits of the sum along the aligned tree.
func TestAccumulate(t *testing.T) {
	value := func(shard, i int) float64 {
		r := sharding.NewRandom(3, "values", shard, 0)
		return (r.Float64At(uint64(2*i)) - 0.5) * math.Pow(10, math.Floor(r.Float64At(uint64(2*i+1))*24)-8)
	}
	per := make([]float64, 0, 16)
	present := []int{}
	for shard := range 16 {
		n := len(sourceRows(500, 16, shard))
		sum := 0.0
		for i := range n {
			sum += value(shard, i)
		}
		if n > 0 {
			per, present = append(per, sum), append(present, shard)
		}
	}
	want := treeSum(per, present, 0, 16)
	for _, p := range []int{1, 2, 3, 5, 16} {
		h := hooks{operators: map[string]func() Operator{"user": func() Operator {
			n, at := 0, -1
			return &funcOperator{process: func(c *Context, _, shard int, rows arrow.Record, out Output) error {
				if shard != at {
					at, n = shard, 0
				}
				for range rows.NumRows() {
					c.Accumulate("sum", shard, value(shard, n))
					c.Accumulate("rows", shard, 1)
					n++
				}
				return nil
			}}
		}}}
		got := parseGraph(16, `
			a = source rows=500
			b = user a`).run(t, context.Background(), p, Env{BatchRows: 7}, h)
		require.NoError(t, got.err)
		require.Equal(t, "rows", got.report.Accumulators[0].Name)
		require.Equal(t, float64(rowsOf(500, 16)), got.report.Accumulators[0].Value)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got.report.Accumulators[1].Value), "p=%d", p)
	}
}

func rowsOf(n, shards int) (rows int) {
	for shard := range shards {
		rows += len(sourceRows(n, shards, shard))
	}
	return rows
}

// treeSum adds the values of shards lo to hi-1 along the aligned tree, by recursion.
func treeSum(values []float64, shards []int, lo, hi int) float64 {
	sum, any := 0.0, false
	if hi-lo == 1 {
		for i, s := range shards {
			if s == lo {
				return values[i]
			}
		}
		return 0
	}
	mid := (lo + hi) / 2
	for _, half := range [][2]int{{lo, mid}, {mid, hi}} {
		there := false
		for _, s := range shards {
			there = there || half[0] <= s && s < half[1]
		}
		switch v := treeSum(values, shards, half[0], half[1]); {
		case !there:
		case any:
			sum += v
		default:
			sum, any = v, true
		}
	}
	return sum
}

// TestBudget requires that reservations count in all parents, and that the error names the budget
// that is full.
func TestBudget(t *testing.T) {
	run := NewBudget("the run", 100, nil)
	a, b := NewBudget("slot 0", 80, run), NewBudget("slot 1", 80, run)
	require.True(t, a.TryReserve(70))
	require.False(t, a.TryReserve(20))
	require.False(t, b.TryReserve(40))
	require.ErrorContains(t, a.Reserve(20), "20 B more do not fit in the budget of slot 0, which is 80 B with 70 B in use")
	require.ErrorContains(t, b.Reserve(40), "the budget of the run, which is 100 B")
	require.NoError(t, b.Reserve(30))
	require.EqualValues(t, 100, run.Used())
	a.Release(70)
	b.Release(30)
	require.Zero(t, run.Used()+a.Used()+b.Used())
	require.EqualValues(t, 100, run.Peak())
	require.EqualValues(t, 80, a.Limit())
}

// TestFootprint requires that the bytes counted for stored messages are at least the bytes that
// the messages take on the heap, and exceed them by less than half.
func TestFootprint(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, rows := range []int{64, 1024, 4096} {
		e := newEnds(sharding.Range{Lo: 0, Hi: 1}, false, func(err error) { t.Error(err) })
		in := newInbox(sharding.Range{Lo: 0, Hi: 4}, e)
		in.budget, in.spill = NewBudget("test", math.MaxInt64, nil), &spillFile{}
		in.fail = func(_ int, err error) { t.Error(err) }
		rec := benchRows(rows)
		order := make([]int32, rows)
		for i := range order {
			order[i] = int32(rows - 1 - i)
		}
		before := heap()
		for seq := range 1 << 20 / rows {
			parts := []transport.Part{{Shard: 0, End: rows / 2}, {Shard: 1, End: rows - 9}, {Shard: 3, End: rows}}
			taken, err := batch.Take(memory.DefaultAllocator, rec, order)
			require.NoError(t, err)
			in.Receive(transport.Message{Seq: int64(seq), Rows: taken, Parts: parts})
		}
		took := heap() - before
		require.LessOrEqual(t, took, in.budget.Used(), "%d rows", rows)
		require.Less(t, in.budget.Used(), took*3/2, "%d rows", rows)
		require.NoError(t, in.close())
		require.Zero(t, in.budget.Used())
	}
}

// TestSideBeyondBudget requires that a side input that does not fit is an error, which names the
// memory that is enough.
func TestSideBeyondBudget(t *testing.T) {
	g := parseGraph(8, `
		a = source rows=1000
		b = addside a a/side
		c = tap b`)
	got := g.run(t, context.Background(), 2, Env{MemoryBudget: 2000}, hooks{})
	var se *SideError
	require.ErrorAs(t, got.err, &se)
	require.ErrorContains(t, got.err, `operator addside "b" (test.txt:2), subtask 0 of 2: side input 1, the rows of source "a": out of memory: it takes `)
	require.ErrorContains(t, got.err, "--memory "+flagBytes(se.Enough))
	var more *SideError
	require.ErrorAs(t, g.run(t, context.Background(), 2, Env{MemoryBudget: 9000}, hooks{}).err, &more)
	require.Equal(t, more.Size, se.Size, "the size must include all rows of the side input, also those that came after it was too large")
	require.NoError(t, g.run(t, context.Background(), 2, Env{MemoryBudget: se.Enough}, hooks{}).err)
}

// TestSideInputsFitTogether requires an error if side inputs fit individually but not together.
func TestSideInputsFitTogether(t *testing.T) {
	g := parseGraph(8, `
		a = source rows=1000
		b = source rows=1000
		c = addside a b/side
		d = addside c a/side
		e = tap d`)
	size := func(budget int64) *SideError {
		err := g.run(t, context.Background(), 2, Env{MemoryBudget: budget}, hooks{}).err
		if err == nil {
			return nil
		}
		var se *SideError
		require.ErrorAs(t, err, &se)
		return se
	}
	one := size(1000).Size
	se := size(one * 3 / 2)
	require.NotNil(t, se)
	require.Equal(t, one, se.Size)
	require.Greater(t, se.Together, one)
	require.Nil(t, size(2*one))
}

// TestSideMemory requires that the bytes of all side inputs of a run, and of copies of their
// rows, are counted until the inputs are released. The error must give the size of the input
// that does not fit, and name the largest input if that is another input.
func TestSideMemory(t *testing.T) {
	const limit = 100
	budget := NewBudget("the run", limit, nil)
	budget.share = 0.25 // one of four processes
	m := &sideMemory{budget: budget}
	ignore := func(error) {}
	large, small := newSideInput("large", 1, 1, m, ignore), newSideInput("small", 1, 1, m, ignore)
	require.True(t, m.take(large, 60))
	require.True(t, m.take(small, 40), "rows that fill the budget exactly must be kept")
	require.Equal(t, int64(limit), budget.Used())
	require.Equal(t, &SideError{Size: 61, Together: 101, Limit: limit, Enough: 404}, m.hold(large, 1))
	require.Equal(t, int64(limit), budget.Used())

	require.False(t, m.take(small, 1))
	require.Equal(t, int64(60), budget.Used(), "nothing must be held of an input that does not fit")
	require.False(t, m.take(small, 1), "later rows of an input that did not fit must not be kept")
	require.NoError(t, m.checkFits(large))
	err := m.checkFits(small)
	require.Equal(t, &SideError{Size: 42, Together: 102, Limit: limit, Largest: "large", LargestSize: 60, Enough: 408}, err)
	require.EqualError(t, err, "out of memory: it takes 42 B in this process, and all side inputs together 102 B (60 B of them the rows of large), "+
		"beyond the budget of 100 B; side inputs stay in memory whole: broadcast fewer rows, or give the job at least --memory 1KiB")

	require.NoError(t, m.hold(large, 40))
	large.leave()
	require.Zero(t, budget.Used())
	require.Equal(t, &SideError{Size: 42, Together: 142, Limit: limit, Largest: "large", LargestSize: 100, Enough: 568}, m.checkFits(small),
		"the size of large, which was released meanwhile, must be included")
	small.leave()
	require.Zero(t, m.held)
}

// TestFlagBytes requires that flagBytes rounds up, so that the advised memory suffices.
func TestFlagBytes(t *testing.T) {
	for n, want := range map[int64]string{1: "1KiB", 1 << 10: "1KiB", 1<<10 + 1: "2KiB", 1 << 20: "1024KiB", 1<<20 + 1: "2MiB", 5 << 30: "5120MiB"} {
		require.Equal(t, want, flagBytes(n))
	}
}

// TestDefaults requires that withDefaults completes the zero Env.
func TestDefaults(t *testing.T) {
	e := Env{}.withDefaults()
	require.NotNil(t, e.Allocator)
	require.NotNil(t, e.Logger)
	require.Positive(t, e.MemoryBudget)
	require.Equal(t, DefaultBatchRows, e.BatchRows)
	require.Positive(t, e.AbandonAfter)
}

// TestAccumulateInNodeOrder requires that the values of operators that accumulate under the same
// name are added in the order of their nodes, and not of their vertices.
func TestAccumulateInNodeOrder(t *testing.T) {
	value := func(n int) float64 { return []float64{0, 1e16, 1, -1e16, 3}[n] }
	h := hooks{operators: map[string]func() Operator{"user": func() Operator {
		return &funcOperator{end: func(c *Context, shard int, _ Output) error {
			if shard == 1 {
				c.Accumulate("sum", shard, value(int(c.Node.ID)))
			}
			return nil
		}}
	}}}
	g := parseGraph(4, `
		a = source rows=10
		b = user a/hash
		c = user a
		d = user a/hash
		e = user a`)
	sum := value(1)
	sum += value(2)
	sum += value(3)
	sum += value(4)
	for _, p := range []int{1, 2, 4} {
		got := g.run(t, context.Background(), p, Env{}, h)
		require.NoError(t, got.err)
		require.Equal(t, []Accumulator{{"sum", sum}}, got.report.Accumulators)
	}
}

// TestMemoryIsGivenBack requires that every budget is empty after a run, with and without
// spilling. The batches that exchanges pass on must have at most BatchRows rows.
func TestMemoryIsGivenBack(t *testing.T) {
	for _, budget := range []int64{1 << 14, 1 << 30} {
		for _, fail := range []error{nil, errBoom} {
			var mu sync.Mutex
			var slots []*Budget
			op := funcOperator{open: func(c *Context) error {
				mu.Lock()
				defer mu.Unlock()
				slots = append(slots, c.Memory)
				return nil
			}, process: func(c *Context, _, shard int, rows arrow.Record, out Output) error {
				if rows.NumRows() > int64(c.BatchRows) {
					t.Errorf("a batch of %d rows, want at most %d", rows.NumRows(), c.BatchRows)
				}
				if shard == 5 && fail != nil {
					return fail
				}
				return out.Emit(shard, arrowrows.Batch(rows))
			}}
			got := parseGraph(8, `
				a = source rows=2000
				b = source rows=30
				c = user a/hash b/side
				d = tap c/rebalance`).run(t, context.Background(), 2, Env{MemoryBudget: budget, BatchRows: 64}, with(op))
			require.ErrorIs(t, got.err, fail)
			for _, slot := range slots {
				require.Positive(t, slot.Peak())
				require.Zero(t, slot.Used())
				require.Zero(t, slot.parent.Used())
			}
		}
	}
}
