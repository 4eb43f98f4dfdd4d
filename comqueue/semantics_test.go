package comqueue_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/shared"
)

var data = comqueue.PartitionedRows("data")

// turns maps the name of a test to the number of jobs that the test has run so far and that
// could also run on workers.
var turns sync.Map

// myTurn reports whether a job of a test also runs on workers: the first job does, and then
// every everyRun-th.
func myTurn(t *testing.T) bool {
	n, known := turns.LoadOrStore(t.Name(), new(atomic.Int64))
	if !known {
		t.Cleanup(func() { turns.Delete(t.Name()) })
	}
	return n.(*atomic.Int64).Add(1)%everyRun == 1%everyRun
}

// run builds and runs a job around one queue and returns its rows. If myTurn returns true, it
// also runs the job on workers and requires the same result.
func run(t *testing.T, build func(b *engine.Builder) *engine.Dataset, options ...engine.Option) ([]row, *engine.Result, error) {
	t.Helper()
	rows, result, err := runOnce(t, build, options...)
	slots := 3 // used for a job that fails, whose slots are unknown
	if err == nil {
		slots = result.Plan.Slots
	}
	among := asWorkers(slots)
	if len(among) > 0 && !myTurn(t) {
		among = nil
	}
	for _, workers := range among {
		got, parts, failed := runOnce(t, build, append(slices.Clone(options), engine.Workers(workers))...)
		if err != nil {
			require.Error(t, failed, "%d workers", workers)
			continue
		}
		require.NoError(t, failed, "%d workers", workers)
		require.Equal(t, bitsOf(rows), bitsOf(got), "%d workers", workers)
		require.Len(t, parts.Report.Queues, len(result.Report.Queues))
		for i, q := range result.Report.Queues {
			requireSameReport(t, &q, &parts.Report.Queues[i])
		}
	}
	return rows, result, err
}

// runOnce runs a job without workers, unless the options set them.
func runOnce(t *testing.T, build func(b *engine.Builder) *engine.Dataset, options ...engine.Option) ([]row, *engine.Result, error) {
	t.Helper()
	job := engine.Anonymous(func(b *engine.Builder) error {
		if d := build(b); d != nil {
			engine.Collect(d, "rows")
		}
		return nil
	})
	defer overdue.Watch("a job to end")()
	result, err := engine.Run(context.Background(), job, struct{}{}, options...)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(result.Release)
	rows, err := engine.Rows[row](result, "rows")
	require.NoError(t, err)
	return rows, result, nil
}

// runs returns how often the function run runs the first job of a test if that job has the
// given number of slots.
func runs(slots int) int { return 1 + len(asWorkers(slots)) }

// bitsOf returns the bits of rows, so that NaNs can be compared.
func bitsOf(rows []row) []uint64 {
	values := make([]float64, len(rows))
	for i, r := range rows {
		values[i] = r.Value
	}
	return bits(values)
}

// requireSameReport requires that two reports of a queue are equal in everything that does not
// depend on the processes that ran its subtasks.
func requireSameReport(t *testing.T, want, got *task.QueueReport) {
	t.Helper()
	require.Equal(t, []any{want.Name, want.Supersteps, want.Stopped}, []any{got.Name, got.Supersteps, got.Stopped})
	require.Len(t, got.Series, len(want.Series))
	for i, s := range want.Series {
		require.Equal(t, s.Name, got.Series[i].Name)
		require.Equal(t, bits(s.Values), bits(got.Series[i].Values), s.Name)
	}
	require.Len(t, got.Stages, len(want.Stages))
	for i, s := range want.Stages {
		require.Equal(t, []any{s.Node, s.Name, s.Calls}, []any{got.Stages[i].Node, got.Stages[i].Name, got.Stages[i].Calls})
	}
}

// nothing is a close function that returns no rows.
func nothing(*comqueue.ComContext) ([]row, error) { return nil, nil }

// put returns a compute function that puts a buffer in the first superstep.
func put[T comqueue.Number](key shared.Key[[]T], buffer func(ctx *comqueue.ComContext) []T) func(*comqueue.ComContext) error {
	return func(ctx *comqueue.ComContext) error {
		if ctx.StepNo() == 1 {
			key.Put(ctx, buffer(ctx))
		}
		return nil
	}
}

func TestStagesRunInOrderOnEverySubtask(t *testing.T) {
	// With 16 shards, 5 subtasks and 3 rows, most subtasks have no rows, and yet they run.
	trace := make([]strings.Builder, 5)
	note := func(name string) func(*comqueue.ComContext) error {
		return func(ctx *comqueue.ComContext) error {
			require.Equal(t, 5, ctx.NumTask())
			fmt.Fprintf(&trace[ctx.TaskID()], "%s%d ", name, ctx.StepNo())
			return nil
		}
	}
	var criterion strings.Builder
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "order").
			InitWithPartitionedData(data, dataset(b, 3, func(i int) float64 { return float64(i) })).
			Do(note("a")).Do(note("b")).
			SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) {
				require.Equal(t, 0, ctx.TaskID())
				fmt.Fprintf(&criterion, "%d ", ctx.StepNo())
				return ctx.StepNo() == 3, nil
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(10).
			Exec()
	}
	_, result, err := run(t, build, engine.Shards(16), engine.Parallelism(5))
	require.NoError(t, err)
	for i := range trace {
		require.Equal(t, strings.Repeat("a1 b1 a2 b2 a3 b3 ", runs(5)), trace[i].String(), "subtask %d", i)
	}
	require.Equal(t, strings.Repeat("1 2 3 ", runs(5)), criterion.String())
	queue := result.Report.Queues[0]
	require.Equal(t, 3, queue.Supersteps)
	require.True(t, queue.Stopped)
}

func TestMaximumEndsTheQueue(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "max").
			InitWithPartitionedData(data, dataset(b, 3, func(int) float64 { return 0 })).
			Do(func(*comqueue.ComContext) error { return nil }).
			SetCompareCriterionOfNode0(func(*comqueue.ComContext) (bool, error) { return false, nil }).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				return []row{{float64(ctx.StepNo())}}, nil
			})).
			SetMaxIter(4).
			Exec()
	}
	rows, result, err := run(t, build, engine.Parallelism(3))
	require.NoError(t, err)
	require.Equal(t, []row{{4}}, rows)
	require.False(t, result.Report.Queues[0].Stopped)
}

func TestOperators(t *testing.T) {
	// Every subtask puts [rank+1, -rank-1]; the expected results are closed formulas.
	const p = 5
	buffer := shared.Scratch[[]int64]("buffer")
	first := comqueue.Operator("first", 0, func(dst, src []int64) {}) // not commutative: the result is the value of the lowest rank
	for _, c := range []struct {
		option comqueue.ReduceOption
		want   []row
	}{
		{comqueue.Sum, []row{{15}, {-15}}},
		{comqueue.Max, []row{{5}, {-1}}},
		{comqueue.Min, []row{{1}, {-5}}},
		{comqueue.Prod, []row{{120}, {-120}}},
		{first, []row{{1}, {-1}}},
	} {
		build := func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "op").
				InitWithPartitionedData(data, dataset(b, 0, nil)).
				Do(put(buffer, func(ctx *comqueue.ComContext) []int64 {
					return []int64{int64(ctx.TaskID()) + 1, -int64(ctx.TaskID()) - 1}
				})).
				Add(comqueue.AllReduce(buffer, c.option)).
				CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
					if shard%8 != 0 { // this leaves every subtask at least one shard
						return nil, nil
					}
					reduced := buffer.Get(ctx)
					return []row{{float64(reduced[0])}, {float64(reduced[1])}}, nil
				})).
				SetMaxIter(1).
				Exec()
		}
		rows, _, err := run(t, build, engine.Parallelism(p), engine.Shards(64))
		require.NoError(t, err)
		require.Equal(t, slices.Repeat(c.want, 8), rows, "every subtask must get the result")
	}
}

func TestForEachShardStartsFromTheIdentity(t *testing.T) {
	// Zeroed buffers or empty shards would change the maximum of negative values.
	buffer := shared.Scratch[[]float64]("buffer")
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "identity").
			InitWithPartitionedData(data, dataset(b, 3, func(i int) float64 { return float64(-i - 1) })).
			Do(put(buffer, func(*comqueue.ComContext) []float64 { return make([]float64, 1) })).
			Add(comqueue.ForEachShard(buffer, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for _, v := range data.Get(ctx, shard).Floats("value") {
					out[0] = max(out[0], v)
				}
				return nil
			})).
			Add(comqueue.AllReduce(buffer, comqueue.Max)).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				return []row{{buffer.Get(ctx)[0]}}, nil
			})).
			SetMaxIter(2).
			Exec()
	}
	rows, _, err := run(t, build, engine.Parallelism(4))
	require.NoError(t, err)
	require.Equal(t, []row{{-1}}, rows)
}

func TestLengthReducesAPrefix(t *testing.T) {
	buffer, length := shared.Scratch[[]float64]("buffer"), shared.Scratch[int]("length")
	build := func(n int) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "length").
				InitWithPartitionedData(data, dataset(b, 9, func(int) float64 { return 1 })).
				Do(func(ctx *comqueue.ComContext) error {
					buffer.Put(ctx, []float64{1, 1, 1})
					length.Put(ctx, n)
					return nil
				}).
				Add(comqueue.AllReduce(buffer, comqueue.Length(length))).
				CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) (rows []row, err error) {
					for _, v := range buffer.Get(ctx) {
						rows = append(rows, row{v})
					}
					return rows, nil
				})).
				SetMaxIter(1).
				Exec()
		}
	}
	rows, _, err := run(t, build(2), engine.Parallelism(4))
	require.NoError(t, err)
	require.Equal(t, []row{{4}, {4}, {1}}, rows)
	_, _, err = run(t, build(4), engine.Parallelism(4))
	require.ErrorContains(t, err, `length "length" is 4, buffer "buffer" holds 3 elements`)
}

func TestRepeatIsALoopWithinTheSuperstep(t *testing.T) {
	// Inner rounds halve a value until it is below 1, at most 5 times.
	value := shared.Scratch[[]float64]("value")
	var rounds atomic.Int64
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "repeat").
			InitWithPartitionedData(data, dataset(b, 9, func(int) float64 { return 1 })).
			Do(func(ctx *comqueue.ComContext) error {
				value.Put(ctx, []float64{[]float64{0, 3, 1000}[ctx.StepNo()]})
				return nil
			}).
			Add(comqueue.Repeat(5,
				func(ctx *comqueue.ComContext) (bool, error) {
					rounds.Add(1)
					return value.Get(ctx)[0] < 1, nil
				},
				comqueue.Do(func(ctx *comqueue.ComContext) error { value.Get(ctx)[0] /= 2; return nil }),
				comqueue.AllReduce(value, comqueue.Max),
			)).
			Do(func(ctx *comqueue.ComContext) error {
				want := []float64{0, 0.75, 31.25}[ctx.StepNo()]
				if got := value.Get(ctx)[0]; got != want {
					return fmt.Errorf("superstep %d ends with %v, want %v", ctx.StepNo(), got, want)
				}
				return nil
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(2).
			Exec()
	}
	_, result, err := run(t, build, engine.Parallelism(3))
	require.NoError(t, err)
	require.Equal(t, int64(runs(3)*(2+5)), rounds.Load(), "the criterion must run on subtask 0 only")
	calls := map[string]int64{}
	for _, s := range result.Report.Queues[0].Stages {
		calls[s.Name] += s.Calls
	}
	require.Equal(t, int64(3*(2+5)), calls[`AllReduceSum "value"`], "%v", calls)
}

// counter counts its calls in a field.
type counter struct{ calls int }

func (c *counter) Calc(ctx *comqueue.ComContext) error {
	if c.calls++; c.calls != ctx.StepNo() {
		return fmt.Errorf("call %d in superstep %d", c.calls, ctx.StepNo())
	}
	return nil
}

func TestAddNewMakesOneInstancePerSubtask(t *testing.T) {
	var made, built atomic.Int64 // AddNew calls the factory once itself
	build := func(b *engine.Builder) *engine.Dataset {
		built.Add(1)
		return comqueue.New(b, "instances").
			InitWithPartitionedData(data, dataset(b, 9, func(int) float64 { return 1 })).
			AddNew(func() comqueue.Compute { made.Add(1); return &counter{} }).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(5).
			Exec()
	}
	_, _, err := run(t, build, engine.Parallelism(4))
	require.NoError(t, err)
	require.Equal(t, int64(runs(4)*4)+built.Load(), made.Load())
}

func TestCloseWithGivesRowsInShardOrder(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "shards").
			InitWithPartitionedData(data, dataset(b, 0, nil)).
			Do(func(*comqueue.ComContext) error { return nil }).
			CloseWith(comqueue.ShardOutput(func(_ *comqueue.ComContext, shard int) ([]row, error) {
				return slices.Repeat([]row{{float64(shard)}}, shard%3), nil
			})).
			SetMaxIter(1).
			Exec()
	}
	rows, _, err := run(t, build, engine.Parallelism(3), engine.Shards(8))
	require.NoError(t, err)
	require.Equal(t, []row{{1}, {2}, {2}, {4}, {5}, {5}, {7}}, rows)
}

func TestExecDoesNotChangeTheQueue(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "twice").
			InitWithPartitionedData(data, dataset(b, 0, nil)).
			Do(func(*comqueue.ComContext) error { return nil }).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return []row{{float64(ctx.StepNo())}}, nil })).
			SetMaxIter(1)
		first := q.Exec()
		second := q.SetMaxIter(2).Exec()
		engine.Collect(second, "second")
		return first
	}
	rows, result, err := run(t, build)
	require.NoError(t, err)
	require.Equal(t, []row{{1}}, rows)
	second, err := engine.Rows[row](result, "second")
	require.NoError(t, err)
	require.Equal(t, []row{{2}}, second)
	require.Equal(t, "twice", result.Report.Queues[0].Name)
	require.Equal(t, "twice-2", result.Report.Queues[1].Name)
}

func TestReportsFoldOverShards(t *testing.T) {
	// The values have many magnitudes, so that a sum in another order has other bits.
	value := func(i int) float64 { return math.Ldexp(float64(i%7)-3, (i*37)%100-50) }
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "reports").
			InitWithPartitionedData(data, dataset(b, 500, value)).
			Do(func(ctx *comqueue.ComContext) error {
				ctx.Report("rank", float64(ctx.TaskID()))
				return ctx.ForShards(func(shard int) error {
					sum, top := 0.0, math.Inf(-1)
					for _, v := range data.Get(ctx, shard).Floats("value") {
						sum, top = sum+v*float64(ctx.StepNo()), max(top, v)
					}
					ctx.ReportSum("sum", shard, sum)
					ctx.ReportMax("max", shard, top)
					return nil
				})
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(20).
			Exec()
	}
	want := map[string][]float64{}
	for _, p := range []int{1, 2, 3, 8} {
		_, result, err := run(t, build, engine.Parallelism(p), engine.Shards(32))
		require.NoError(t, err)
		for _, s := range result.Report.Queues[0].Series {
			require.Len(t, s.Values, 20)
			if p == 1 {
				want[s.Name] = s.Values
			}
			require.Equal(t, want[s.Name], s.Values, "%s at parallelism %d", s.Name, p)
		}
	}
	require.Len(t, want, 3)
	require.Equal(t, 0.0, want["rank"][0])
	top := math.Inf(-1)
	for i := range 500 {
		top = max(top, value(i))
	}
	require.Equal(t, top, want["max"][19])
}

func TestModifiedBroadcastIsNoticed(t *testing.T) {
	side := comqueue.BroadcastRows("side")
	build := func(modify bool) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "broadcast").
				InitWithPartitionedData(data, dataset(b, 8, func(int) float64 { return 1 })).
				InitWithBroadcastData(side, dataset(b, 5, func(i int) float64 { return float64(i) })).
				Do(func(ctx *comqueue.ComContext) error {
					rows := side.Get(ctx).Floats("value")
					if !modify && !slices.Equal(rows, []float64{0, 1, 2, 3, 4}) {
						return fmt.Errorf("subtask %d sees %v", ctx.TaskID(), rows)
					}
					if modify && ctx.StepNo() == 2 && ctx.TaskID() == ctx.NumTask()-1 {
						rows[3]++
					}
					return nil
				}).
				CloseOnNode0(comqueue.Output(nothing)).
				SetMaxIter(5).
				Exec()
		}
	}
	_, _, err := run(t, build(false), engine.Parallelism(3), engine.CheckBroadcasts(true))
	require.NoError(t, err)
	for _, p := range []int{1, 2, 5} { // the error must name the superstep at every parallelism
		_, _, err = run(t, build(true), engine.Parallelism(p), engine.CheckBroadcasts(true))
		require.ErrorContains(t, err, `broadcast object "side" was modified in superstep 2`)
	}
}

func TestModifiedRowsAreNoticed(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "rows").
			InitWithPartitionedData(data, dataset(b, 8, func(int) float64 { return 1 })).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.StepNo() == 2 && ctx.TaskID() == 0 {
					data.Get(ctx, ctx.Shards().Lo).Floats("value")[0]++
				}
				return nil
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(5).
			Exec()
	}
	_, _, err := run(t, build, engine.Parallelism(1), engine.Shards(4), engine.CheckBroadcasts(true))
	require.ErrorContains(t, err, `rows of "data" were modified in superstep 2`)
}

func TestSeriesComeByName(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "series").
			InitWithPartitionedData(data, dataset(b, 8, func(int) float64 { return 1 })).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.Shards().Contains(5) {
					ctx.ReportSum("x", 5, 1)
				}
				return nil
			}).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.Shards().Contains(0) {
					ctx.ReportSum("w", 0, 1)
				}
				return nil
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(1).
			Exec()
	}
	for _, p := range []int{1, 2, 8} {
		_, result, err := run(t, build, engine.Parallelism(p), engine.Shards(8))
		require.NoError(t, err)
		series := result.Report.Queues[0].Series
		require.Len(t, series, 2)
		require.Equal(t, []string{"w", "x"}, []string{series[0].Name, series[1].Name}, "parallelism %d", p)
	}
}

func TestWhatRanIsWhatThePlanShows(t *testing.T) {
	sum, whole := shared.Scratch[[]float64]("sum"), shared.Scratch[[]float64]("whole")
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "stages").
			InitWithPartitionedData(data, dataset(b, 64, func(int) float64 { return 1 })).
			Do(func(ctx *comqueue.ComContext) error {
				sum.Put(ctx, make([]float64, 3))
				whole.Put(ctx, make([]float64, 2))
				return nil
			}).
			Add(comqueue.ForEachShard(sum, func(*comqueue.ComContext, int, []float64) error { return nil })).
			Add(comqueue.AllReduce(sum)).
			Add(comqueue.AllReduce(whole, comqueue.Min)).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(7).
			Exec()
	}
	_, result, err := run(t, build, engine.Parallelism(4), engine.Shards(16))
	require.NoError(t, err)
	text := result.Plan.Text()
	require.Equal(t, 1, strings.Count(text, "depends on parallelism"), "%s", text)
	// Every stage of the plan must have run in every superstep on every subtask, and no other
	// stage.
	shown := map[string]int64{}
	for _, v := range result.Plan.Vertices {
		for _, c := range v.Chain {
			if n := result.Graph.Nodes[c.Node]; v.Queue != "" && strings.HasPrefix(n.Op, "AllReduce") {
				shown[fmt.Sprintf("%s %q", n.Op, n.Name)] += 7 * 4
			}
		}
	}
	require.Len(t, shown, 6)
	ran := map[string]int64{}
	for _, s := range result.Report.Queues[0].Stages {
		if strings.HasPrefix(s.Name, "AllReduce") {
			ran[s.Name] += s.Calls
			require.Equal(t, "direct over shared memory, 4 ranks, by one subtask for all", s.Program)
		}
	}
	require.Equal(t, shown, ran)
}
