package task

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// split distributes the slots of a plan over workers.
func split(p *plan.Plan, workers int) []sharding.Range {
	slots := make([]sharding.Range, workers)
	for i := range slots {
		slots[i] = sharding.Split(p.Slots, workers, i)
	}
	return slots
}

// runParts runs a graph on several workers, each with its own bindings. It verifies that
// neither memory nor files are left.
func (g *testGraph) runParts(t testing.TB, ctx context.Context, p, workers int, env Env, h func(worker int) hooks) result {
	t.Helper()
	compiled, err := plan.Compile(g.Graph, p)
	require.NoError(t, err)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	taps := &taps{}
	env.Allocator, env.Collector = mem, taps
	if env.SpillDir == "" {
		env.SpillDir = t.TempDir()
	}
	var r result
	defer overdue.Watch("a run of several workers to end")()
	r.report, r.err = RunParts(ctx, compiled, g.Graph, split(compiled, workers), func(worker int) (Bindings, Env, error) {
		return g.bindings(h(worker)), env, nil
	})
	r.taps = taps.rows
	left, err := os.ReadDir(env.SpillDir)
	require.NoError(t, err)
	require.Empty(t, left, "the spill directory must be empty after a run")
	return r
}

func noHooks(int) hooks { return hooks{} }

// sameReport requires that two reports are equal, except for what depends on time.
func sameReport(t require.TestingT, want, got *Report) {
	require.Equal(t, len(want.Accumulators), len(got.Accumulators))
	for i, a := range want.Accumulators {
		require.Equal(t, a.Name, got.Accumulators[i].Name)
		require.Equal(t, math.Float64bits(a.Value), math.Float64bits(got.Accumulators[i].Value), a.Name)
	}
	still := func(r *Report) []VertexReport {
		var all []VertexReport
		for _, v := range r.Vertices {
			var subtasks []SubtaskReport
			for _, s := range v.Subtasks {
				s.Busy, s.Waiting = 0, 0
				for i := range s.Operators {
					if len(s.Operators[i].Counters) == 0 {
						s.Operators[i].Counters = nil
					}
				}
				subtasks = append(subtasks, s)
			}
			v.Subtasks = subtasks
			all = append(all, v)
		}
		return all
	}
	require.Equal(t, still(want), still(got))
	require.Equal(t, len(want.Queues), len(got.Queues))
	for i, q := range want.Queues {
		o := got.Queues[i]
		require.Equal(t, []any{q.Name, q.Supersteps, q.Stopped, len(q.Series)}, []any{o.Name, o.Supersteps, o.Stopped, len(o.Series)})
		for k, s := range q.Series {
			require.Equal(t, s.Name, o.Series[k].Name)
			require.Equal(t, bitsOf(s.Values), bitsOf(o.Series[k].Values), s.Name)
		}
		require.Equal(t, len(q.Stages), len(o.Stages))
		for k, s := range q.Stages {
			require.Equal(t, []any{s.Node, s.Name, s.Calls}, []any{o.Stages[k].Node, o.Stages[k].Name, o.Stages[k].Calls})
		}
	}
}

func bitsOf(values []float64) []uint64 {
	bits := make([]uint64, len(values))
	for i, v := range values {
		bits[i] = math.Float64bits(v)
	}
	return bits
}

// TestPartsExchange requires that graphs with every partitioner, a broadcast, a single vertex and
// an accumulator give the same results on 1 to 5 workers as in one part, with and without
// spilling.
func TestPartsExchange(t *testing.T) {
	for _, how := range []string{"forward", "rebalance", "hash", "range", "custom"} {
		g := parseGraph(16, fmt.Sprintf(`
			a = source rows=300
			b = source rows=40
			c = union a/%[1]s b
			d = addside c b/side
			e = number d/%[1]s
			f = last e single=1
			g = tap e/%[1]s
			h = tap f`, how))
		want := g.reference()
		for _, p := range testsize.Raced([]int{1, 3, 5}, []int{3}) {
			local := g.run(t, context.Background(), p, Env{BatchRows: 7}, hooks{})
			require.NoError(t, local.err)
			require.Equal(t, want, local.taps)
			for workers := 1; workers <= p; workers++ {
				t.Run(fmt.Sprintf("%s/p%d/workers%d", how, p, workers), func(t *testing.T) {
					got := g.runParts(t, context.Background(), p, workers, Env{BatchRows: 7}, noHooks)
					require.NoError(t, got.err)
					require.Equal(t, want, got.taps)
					sameReport(t, local.report, got.report)
				})
			}
		}
	}
	g := parseGraph(16, "a = source rows=3000\nb = number a/hash\nc = tap b/rebalance")
	got := g.runParts(t, context.Background(), 4, 3, Env{MemoryBudget: 3 << 12}, noHooks)
	require.NoError(t, got.err)
	require.Equal(t, g.reference(), got.taps)
	require.Positive(t, got.report.Spilled)
}

// TestPartsOfRandomGraphs compares the results of random graphs, run by several workers, with the
// reference.
func TestPartsOfRandomGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := parseGraph(rapid.SampledFrom([]int{4, 16}).Draw(rt, "shards"), randomGraph(rt))
		p := rapid.IntRange(1, min(g.Shards, 5)).Draw(rt, "p")
		compiled, err := plan.Compile(g.Graph, p)
		require.NoError(rt, err)
		workers := rapid.IntRange(1, compiled.Slots).Draw(rt, "workers")
		env := Env{BatchRows: rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "batch")}
		local := g.run(t, context.Background(), p, env, hooks{})
		require.NoError(rt, local.err)
		got := g.runParts(t, context.Background(), p, workers, env, noHooks)
		require.NoError(rt, got.err)
		require.Equal(rt, g.reference(), orEmpty(got.taps))
		sameReport(rt, local.report, got.report)
	})
}

// TestPartsSumShards requires that the bits of an accumulator do not depend on the workers of
// the shards. Within a shard it is summed in the order of operators, then along the tree over
// shards. The last operator is single: of several workers, worker 0 owns all of its shards, but
// only some shards of the earlier operators.
func TestPartsSumShards(t *testing.T) {
	h := hooks{operators: map[string]func() Operator{"user": func() Operator {
		at, n := -1, 0
		return &funcOperator{process: func(c *Context, _, shard int, rows arrow.Record, _ Output) error {
			if shard != at {
				at, n = shard, 0
			}
			for range rows.NumRows() {
				r := c.Random(c.Node.Name, shard, n)
				c.Accumulate("sum", shard, (r.Float64At(0)-0.5)*math.Pow(10, math.Floor(r.Float64At(1)*24)-8))
				n++
			}
			return nil
		}}
	}}}
	g := parseGraph(16, "a = source rows=500\nb = user a\nc = user a/rebalance\nd = user a/hash single=1")
	local := g.run(t, context.Background(), 5, Env{BatchRows: 7}, h)
	require.NoError(t, local.err)
	for workers := 1; workers <= 5; workers++ {
		got := g.runParts(t, context.Background(), 5, workers, Env{BatchRows: 7}, func(int) hooks { return h })
		require.NoError(t, got.err)
		sameReport(t, local.report, got.report)
	}
	// The comparison can fail: the sum differs if the values are folded in another order.
	part := outcome{Sums: []sumPart{{Name: "x", Shards: []int{0, 1, 2}, Values: []float64{1e16, 1, 1}}}}
	fold := func(all ...*outcome) float64 { return mergeSums(&plan.Plan{Shards: 4}, all)[0].Value }
	other := outcome{Sums: []sumPart{{Name: "x", Shards: []int{1, 2}, Values: []float64{1, 1}}}}
	require.Equal(t, fold(&part), fold(&other, &outcome{Sums: []sumPart{{Name: "x", Shards: []int{0}, Values: []float64{1e16}}}}))
	require.NotEqual(t, fold(&part), 1e16+2.0)
	// A shard without a value is not added as 0, which would change the sign of -0.
	require.True(t, math.Signbit(fold(&outcome{Sums: []sumPart{{Name: "x", Shards: []int{2}, Values: []float64{math.Copysign(0, -1)}}}})))
}

// queueOfWorkers returns a graph with a queue that has an inner loop, and a function that returns
// the hooks of each worker. inner counts the calls of the inner stage.
func queueOfWorkers(most int, criterion bool) (*testGraph, func(inner *atomic.Int64) func(int) hooks) {
	g := queueGraph(8, most, criterion, plan.Compute, plan.RepeatBegin, plan.Compute, plan.RepeatEnd)
	g.Nodes[4].Inputs = append(g.Nodes[4].Inputs, plan.Input{From: 6, Role: plan.Feedback})
	return g, func(inner *atomic.Int64) func(int) hooks {
		return func(int) hooks {
			return queueHooks(&testGang{loop: func(subtask int) *testLoop {
				rounds := 0
				return &testLoop{
					stop: func(step int) (bool, error) {
						if subtask != 0 {
							panic("the criterion must run on subtask 0 only")
						}
						return step == 5, nil
					},
					stages: func(b *testLoop) []Stage {
						return []Stage{
							{Node: 3, Run: func() error { return b.comm.Barrier(b.context) }, Program: func() string { return "meeting" }},
							{Node: 4, Repeat: &Repeat{Max: 7, Stages: []Stage{{Node: 5, Run: b.count(inner)}}, Until: func() (bool, error) {
								rounds++
								return rounds%3 == 0, nil
							}}},
						}
					},
				}
			}})
		}
	}
}

// TestPartsOfQueues requires that a queue with an inner loop gives the same rows and report on
// several workers as in one part, with and without a criterion.
func TestPartsOfQueues(t *testing.T) {
	for _, criterion := range []bool{true, false} {
		g, bind := queueOfWorkers(9, criterion)
		steps := map[bool]int64{true: 5, false: 9}[criterion]
		for _, p := range []int{1, 2, 5} {
			var calls atomic.Int64
			local := g.run(t, context.Background(), p, Env{}, bind(&calls)(0))
			require.NoError(t, local.err)
			for workers := 1; workers <= p; workers++ {
				t.Run(fmt.Sprintf("criterion=%t/p%d/workers%d", criterion, p, workers), func(t *testing.T) {
					calls.Store(0)
					var shown []int
					env := Env{Progress: func(e Progress) {
						if e.Queue != "" {
							shown = append(shown, e.Step) // only subtask 0's goroutine appends to it
						}
					}}
					got := g.runParts(t, context.Background(), p, workers, env, bind(&calls))
					require.NoError(t, got.err)
					require.Equal(t, local.taps, got.taps)
					sameReport(t, local.report, got.report)
					require.Equal(t, int64(p)*3*steps, calls.Load())
					require.Len(t, shown, int(steps))
				})
			}
		}
	}
}

// TestPartsFail requires that all workers end if an operator fails in any worker, and that its
// failure is the error of the run. synctest fails a test that hangs.
func TestPartsFail(t *testing.T) {
	for _, at := range []int{0, 5, 7, 15} {
		synctest.Test(t, func(t *testing.T) {
			op := funcOperator{process: func(_ *Context, _, s int, rows arrow.Record, out Output) error {
				if s >= at {
					return errBoom
				}
				return out.Emit(s, arrowrows.Batch(rows))
			}}
			got := parseGraph(16, pipeline).runParts(t, context.Background(), 5, 3, Env{BatchRows: 7}, func(int) hooks { return with(op) })
			require.ErrorIs(t, got.err, errBoom)
			require.False(t, FollowsPeer(got.err))
			require.ErrorContains(t, got.err, `operator user "c" (test.txt:3), subtask`)
		})
	}
}

// TestPartsOfQueuesFail requires that all workers end if a subtask of a queue fails, and that the
// error of the run names this subtask.
func TestPartsOfQueuesFail(t *testing.T) {
	for _, criterion := range []bool{true, false} {
		for subtask := range 4 {
			synctest.Test(t, func(t *testing.T) {
				g := queueGraph(8, 9, criterion, plan.Compute)
				h := func(int) hooks {
					gang := &testGang{}
					gang.loop = func(i int) *testLoop {
						return &testLoop{stages: func(b *testLoop) []Stage {
							return []Stage{{Node: 3, Run: func() error {
								if i == subtask && b.steps == 3 {
									return errBoom
								}
								return b.comm.Barrier(b.context)
							}}}
						}}
					}
					return queueHooks(gang)
				}
				got := g.runParts(t, context.Background(), 4, 3, Env{}, h)
				require.EqualError(t, got.err, fmt.Sprintf("operator compute (test.txt:4), subtask %d of 4: boom", subtask))
			})
		}
	}
}

// TestPartsCancel requires that all workers end when the context ends, whatever they are waiting
// for.
func TestPartsCancel(t *testing.T) {
	for _, criterion := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			h := func(int) hooks {
				return queueHooks(&testGang{loop: func(subtask int) *testLoop {
					return &testLoop{stages: func(b *testLoop) []Stage {
						return []Stage{{Node: 3, Run: func() error {
							if subtask == 1 && b.steps == 2 {
								<-b.context.Done()
							}
							return nil
						}}}
					}}
				}})
			}
			go func() { synctest.Wait(); cancel() }()
			got := queueGraph(8, 9, criterion, plan.Compute).runParts(t, ctx, 3, 2, Env{}, h)
			require.ErrorIs(t, got.err, context.Canceled)
		})
	}
}
