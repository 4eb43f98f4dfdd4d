package comqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

var (
	walked = shared.Replicated("walked", shared.Float64s())
	drawn  = shared.PerShard("drawn", shared.Float64s())
	steps  = shared.Scratch[[]float64]("steps")
)

// walking returns a queue whose result depends on nearly everything that a queue has: rows and
// broadcast rows, replicated objects and objects of shards, random numbers of supersteps and of
// rounds of inner loops, the number of the superstep, reports of all kinds, and the criterion.
// It stops in superstep `until` or after the maximum of 6.
func walking(name string, rows *engine.Dataset, until int) *comqueue.IterativeComQueue {
	b := rows.Builder()
	walk := func(ctx *comqueue.ComContext, shard int, out []float64) error {
		own := drawn.Get(ctx, shard)
		for i, v := range data.Get(ctx, shard).Floats("value") {
			out[0] += float64(v*walked.Get(ctx)[0]) + ctx.Rand("walk", shard).Float64At(uint64(i))
		}
		own[0] += ctx.Rand("own", shard).Float64At(0)
		out[1] += own[0]
		return nil
	}
	return comqueue.New(b, name).
		InitWithPartitionedData(data, rows).
		InitWithBroadcastData(comqueue.BroadcastRows("side"), dataset(b, 3, func(i int) float64 { return float64(i) + 0.1 })).
		Begin(func(ctx *comqueue.ComContext) error {
			walked.Put(ctx, []float64{1, 0, 0})
			for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
				drawn.Put(ctx, shard, []float64{float64(shard)})
			}
			return nil
		}).
		Init(func(ctx *comqueue.ComContext) error { steps.Put(ctx, make([]float64, 2)); return nil }).
		Add(comqueue.Repeat(3, nil,
			comqueue.ForEachShard(steps, walk),
			comqueue.AllReduce(steps),
			do(func(ctx *comqueue.ComContext) {
				w, s := walked.Get(ctx), steps.Get(ctx)
				w[0], w[1], w[2] = float64(w[0]/3)+float64(s[0]/1e3), w[1]+s[1], w[2]+float64(ctx.StepNo())
			}))).
		Do(func(ctx *comqueue.ComContext) error {
			if ctx.StepNo()%2 == 0 {
				ctx.Report("even", walked.Get(ctx)[0])
			}
			return ctx.ForShards(func(shard int) error {
				ctx.ReportSum("sum", shard, drawn.Get(ctx, shard)[0])
				ctx.ReportMax("max", shard, drawn.Get(ctx, shard)[0])
				return nil
			})
		}).
		SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) { return ctx.StepNo() == until, nil }).
		CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
			if ctx.TaskID() == 0 {
				ctx.Report("closed", float64(ctx.StepNo()))
			}
			return []row{{drawn.Get(ctx, shard)[0]}, {walked.Get(ctx)[0]}, {walked.Get(ctx)[1]}, {float64(ctx.StepNo())}}, nil
		})).
		SetMaxIter(6)
}

// walks returns a function that adds one such queue, over n rows, to a job.
func walks(n, until int) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset { return walking("walk", dataset(b, n, spread), until).Exec() }
}

// requireSameSeries requires that the reports of queues have the same values, numbers of
// supersteps and reasons why the queues stopped.
func requireSameSeries(t *testing.T, want, got []task.QueueReport, msg ...any) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, []any{want[i].Name, want[i].Supersteps, want[i].Stopped}, []any{got[i].Name, got[i].Supersteps, got[i].Stopped}, msg...)
		require.Len(t, got[i].Series, len(want[i].Series), msg...)
		for k, s := range want[i].Series {
			require.Equal(t, s.Name, got[i].Series[k].Name, msg...)
			require.Equal(t, bits(s.Values), bits(got[i].Series[k].Values), msg...)
		}
		require.Len(t, got[i].Steps, got[i].Supersteps, msg...)
	}
}

// resumes returns the options that cut queues after the given supersteps and continue at the
// given parallelism.
func resumes(at map[int]int) (options []engine.Option) {
	for step, p := range at {
		options = append(options, engine.CheckResume(step, p))
	}
	return options
}

// TestCutQueuesHaveTheSameBits requires the same bits if other subtasks continue a queue, at
// any parallelism. The queue is cut after the first superstep, after a later superstep, after
// every superstep, or after the last superstep. It ends by the criterion or by the maximum.
func TestCutQueuesHaveTheSameBits(t *testing.T) {
	for _, n := range []int{0, 3, 200} { // rows, in 16 shards
		for _, until := range []int{4, 0} {
			shards := engine.Shards(16)
			want, whole, err := runOnce(t, walks(n, until), shards, engine.Parallelism(2))
			require.NoError(t, err)
			require.Len(t, want, 4*16)
			last := whole.Report.Queues[0].Supersteps
			cuts := []map[int]int{{1: 2, 2: 3, 3: 1, 4: 16, 5: 5, 6: 4}, {1: 3}, {2: 1}, {3: 16}, {last: 5}, {last: 1}, {last + 1: 7}}
			if n == 0 {
				cuts = cuts[:1]
			}
			for _, at := range cuts {
				for _, p := range []int{1, 3} {
					options := append(resumes(at), shards, engine.Parallelism(p), engine.CheckBroadcasts(true), engine.CheckState(p == 3))
					got, result, err := runOnce(t, walks(n, until), options...)
					require.NoError(t, err)
					require.Equal(t, bitsOf(want), bitsOf(got), "%d rows, until %d, p=%d, cut %v", n, until, p, at)
					requireSameSeries(t, whole.Report.Queues, result.Report.Queues, "%d rows, until %d, p=%d, cut %v", n, until, p, at)
				}
			}
		}
	}
}

// TestCutQueuesInARow requires the same bits if queues are cut after different supersteps:
// queues whose rows go to other queues, and queues that run at the same time.
func TestCutQueuesInARow(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		first := walking("first", dataset(b, 60, spread), 0).Exec().Named("value")
		second := walking("second", first, 3)
		engine.Collect(walking("beside", dataset(b, 7, spread), 5).Exec(), "beside")
		return second.Exec()
	}
	want, whole, err := runOnce(t, build, engine.Shards(8), engine.Parallelism(3))
	require.NoError(t, err)
	beside, err := engine.Rows[row](whole, "beside")
	require.NoError(t, err)
	for _, at := range []map[int]int{{2: 8}, {3: 1, 5: 2, 6: 7}} {
		got, result, err := runOnce(t, build, append(resumes(at), engine.Shards(8), engine.Parallelism(3))...)
		require.NoError(t, err)
		require.Equal(t, bitsOf(want), bitsOf(got))
		also, err := engine.Rows[row](result, "beside")
		require.NoError(t, err)
		require.Equal(t, bitsOf(beside), bitsOf(also))
		requireSameSeries(t, whole.Report.Queues, result.Report.Queues)
	}
}

// TestCutOrder requires that subtasks that continue a queue begin with the functions of Init,
// and call neither the functions of Begin nor those of past supersteps nor the criterion again.
func TestCutOrder(t *testing.T) {
	for _, c := range []struct {
		at   map[int]int
		want string
	}{
		{nil, "a0 b0 c0 step1 ask1 step2 ask2 step3 ask3 close3"},
		{map[int]int{1: 1}, "a0 b0 c0 step1 ask1 a0 c0 step2 ask2 step3 ask3 close3"},
		{map[int]int{2: 1, 1: 1}, "a0 b0 c0 step1 ask1 a0 c0 step2 ask2 a0 c0 step3 ask3 close3"},
		{map[int]int{3: 1}, "a0 b0 c0 step1 ask1 step2 ask2 step3 ask3 a0 c0 close3"},
		{map[int]int{4: 1}, "a0 b0 c0 step1 ask1 step2 ask2 step3 ask3 close3"},
	} {
		var trace []string
		say := func(s string) func(*comqueue.ComContext) error {
			return func(ctx *comqueue.ComContext) error {
				trace = append(trace, fmt.Sprint(s, ctx.StepNo()))
				return nil
			}
		}
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "q").Init(say("a")).Begin(say("b")).Init(say("c")).Do(say("step")).
				SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) { return ctx.StepNo() == 3, say("ask")(ctx) }).
				CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return nil, say("close")(ctx) })).
				SetMaxIter(9).Exec()
		}, append(resumes(c.at), engine.Parallelism(1))...)
		require.NoError(t, err)
		require.Equal(t, c.want, strings.Join(trace, " "), "cut %v", c.at)
	}
}

// TestCutMovesRows requires that rows are neither copied nor read again: the new owners of the
// shards get the same frames.
func TestCutMovesRows(t *testing.T) {
	side := comqueue.BroadcastRows("side")
	var mu sync.Mutex
	frames, broadcast := map[int]map[*comqueue.Frame]bool{}, map[*comqueue.Frame]bool{}
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").
			InitWithPartitionedData(data, dataset(b, 50, spread)).
			InitWithBroadcastData(side, dataset(b, 5, spread)).
			Do(func(ctx *comqueue.ComContext) error {
				mu.Lock()
				defer mu.Unlock()
				broadcast[side.Get(ctx)] = true
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					if frames[shard] == nil {
						frames[shard] = map[*comqueue.Frame]bool{}
					}
					frames[shard][data.Get(ctx, shard)] = true
				}
				return nil
			}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(4).Exec()
	}
	_, _, err := runOnce(t, build, engine.Parallelism(3), engine.Shards(8), engine.CheckResume(1, 8), engine.CheckResume(2, 1), engine.CheckResume(3, 5), engine.CheckBroadcasts(true))
	require.NoError(t, err)
	require.Len(t, broadcast, 1)
	require.Len(t, frames, 8)
	for shard, of := range frames {
		require.Len(t, of, 1, "shard %d", shard)
	}
}

// TestCutInstances requires that instances with a snapshot continue at the same parallelism and
// refuse any other parallelism, and that instances without a snapshot are created again at any
// parallelism.
func TestCutInstances(t *testing.T) {
	kept := func() comqueue.Compute { return &keptCaller{} }
	want, _, err := runOnce(t, descending(room, idle, kept), engine.Parallelism(2), engine.Shards(8))
	require.NoError(t, err)
	for step := 1; step <= 5; step++ {
		got, _, err := runOnce(t, descending(room, idle, kept), engine.Parallelism(2), engine.Shards(8), engine.CheckResume(step, 2))
		require.NoError(t, err)
		require.Equal(t, bitsOf(want), bitsOf(got), "cut after superstep %d", step)
		_, _, err = runOnce(t, descending(room, idle, kept), engine.Parallelism(2), engine.Shards(8), engine.CheckResume(step, 3))
		require.ErrorContains(t, err, `queue "q" cannot continue with 3 subtasks in place of 2: stages added by AddNew keep snapshots, each of which belongs to one subtask`)
		require.ErrorContains(t, err, "(opening_test.go:")
	}
	none := func() comqueue.Compute { return comqueue.ComputeFunc(idle) }
	want, _, err = runOnce(t, descending(room, idle, none), engine.Parallelism(2), engine.Shards(8))
	require.NoError(t, err)
	got, _, err := runOnce(t, descending(room, idle, none), engine.Parallelism(2), engine.Shards(8), engine.CheckResume(2, 5))
	require.NoError(t, err)
	require.Equal(t, bitsOf(want), bitsOf(got))
}

// silent is a keptCaller with an empty snapshot.
type silent struct{ restored *atomic.Int32 }

func (silent) Calc(*comqueue.ComContext) error           { return nil }
func (silent) AppendSnapshot(dst []byte) ([]byte, error) { return dst, nil }
func (s silent) Restore(src []byte) error                { s.restored.Add(int32(1 + len(src))); return nil }

// TestCutWithEmptySnapshots requires that an empty snapshot counts as a snapshot.
func TestCutWithEmptySnapshots(t *testing.T) {
	var restored atomic.Int32
	_, _, err := runOnce(t, descending(room, idle, func() comqueue.Compute { return silent{&restored} }),
		engine.Parallelism(3), engine.Shards(8), engine.CheckResume(2, 3))
	require.NoError(t, err)
	require.EqualValues(t, 2*3, restored.Load(), "each snapshot must be restored twice, once as a check")
}

// TestCutRefusesWhatDependsOnParallelism requires that a queue whose result depends on
// parallelism, as the plan says, refuses another parallelism with an error that names the
// stage.
func TestCutRefusesWhatDependsOnParallelism(t *testing.T) {
	whole := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").
			Init(func(ctx *comqueue.ComContext) error { steps.Put(ctx, make([]float64, 1)); return nil }).
			Do(idle).Add(comqueue.AllReduce(steps)).
			CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3).Exec()
	}
	ring := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").InitWithPartitionedData(data, dataset(b, 9, spread)).
			Init(func(ctx *comqueue.ComContext) error { steps.Put(ctx, make([]float64, 1)); return nil }).
			Add(comqueue.ForEachShard(steps, func(*comqueue.ComContext, int, []float64) error { return nil })).
			Add(comqueue.AllReduce(steps, comqueue.Algorithm("ring"))).
			CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3).Exec()
	}
	for _, build := range []func(*engine.Builder) *engine.Dataset{whole, ring} {
		_, _, err := runOnce(t, build, engine.Parallelism(2), engine.Shards(8), engine.CheckResume(2, 2))
		require.NoError(t, err)
		_, _, err = runOnce(t, build, engine.Parallelism(2), engine.Shards(8), engine.CheckResume(2, 4))
		require.ErrorContains(t, err, `queue "q" cannot continue with 4 subtasks in place of 2: the result of the AllReduce of "steps" depends on parallelism, as the plan says`)
	}
}

// TestCutFindsWhatIsNotKept requires that scratch is lost when other subtasks continue, so that
// a queue that relies on scratch fails or gives another result.
func TestCutFindsWhatIsNotKept(t *testing.T) {
	kept := func() comqueue.Compute { return comqueue.ComputeFunc(idle) }
	first := func(ctx *comqueue.ComContext) error {
		if ctx.StepNo() == 1 {
			return room(ctx)
		}
		return nil
	}
	_, _, err := runOnce(t, descending(nil, first, kept), engine.Parallelism(2), engine.Shards(8), engine.CheckResume(1, 3))
	require.ErrorContains(t, err, `get of scratch key "errors" ([]float64) in session "q", subtask `)
	last := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").Do(func(ctx *comqueue.ComContext) error { steps.Put(ctx, []float64{1}); return nil }).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return []row{{steps.Get(ctx)[0]}}, nil })).
			SetMaxIter(1).Exec()
	}
	_, _, err = runOnce(t, last, engine.Parallelism(2), engine.CheckResume(1, 1))
	require.ErrorContains(t, err, `operator QueueClose`)
	require.ErrorContains(t, err, `get of scratch key "steps" ([]float64) in session "q", subtask 0: never put`)
}

// TestCutKeepsWhatWasReported requires that misuse of reports in the close function is found
// even if other subtasks close the queue.
func TestCutKeepsWhatWasReported(t *testing.T) {
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").Do(func(ctx *comqueue.ComContext) error {
			ctx.ReportSum("loss", ctx.Shards().Lo, 1)
			return nil
		}).CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
			ctx.Report("loss", 2)
			return nil, nil
		})).SetMaxIter(2).Exec()
	}
	for _, options := range [][]engine.Option{nil, {engine.CheckResume(2, 1)}} {
		_, _, err := runOnce(t, build, append(options, engine.Parallelism(2))...)
		require.ErrorContains(t, err, `report "loss": both Report and ReportSum are used under this name in superstep 2`)
	}
}

// TestCheckOfCutQueues runs engine.Check with cuts: in each gang its subtasks take turns.
func TestCheckOfCutQueues(t *testing.T) {
	job := engine.Define("walks", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(walks(40, 0)(b), "rows")
		return nil
	})
	require.NoError(t, engine.Check(t.Context(), job, struct{}{}, engine.Shards(16), engine.CheckResume(1, 2), engine.CheckResume(3, 11), engine.CheckResume(6, 1)))
}

// failingCodec is a codec of floats that can fail or first call a function.
type failingCodec struct {
	shared.Codec[[]float64]
	append, decode func() error
}

func (c failingCodec) Append(dst []byte, v []float64) ([]byte, error) {
	if err := c.append(); err != nil {
		return dst, err
	}
	return c.Codec.Append(dst, v)
}

func (c failingCodec) Decode(src []byte) ([]float64, error) {
	if err := c.decode(); err != nil {
		return nil, err
	}
	return c.Codec.Decode(src)
}

// runHeld runs a queue with a new session store and a new allocator, and requires that both are
// empty afterwards.
func runHeld(t *testing.T, ctx context.Context, build buildPart, regroup func(queue string, step int) int, env task.Env, options ...engine.Option) (map[int][]uint64, *task.Report, error) {
	t.Helper()
	p, bind := build.compile(t, options...)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	got := &rowBits{rows: map[int][]uint64{}}
	env.Allocator, env.BatchRows, env.SpillDir, env.Collector = mem, 3, t.TempDir(), got
	env.Sessions, env.Regroup = shared.NewStore(), regroup
	defer overdue.Watch("a job with a cut to end")()
	report, err := task.Run(ctx, p, nil, bind, env)
	mem.AssertSize(t, 0)
	require.Zero(t, env.Sessions.Len())
	require.Nil(t, env.Sessions.Find(p.Job, p.Queues[0].Name))
	return got.rows, report, err
}

// TestFailuresAtACut requires that after any failure at a cut, or a cancellation, the run ends
// with the cause, and that no session and no memory remains.
func TestFailuresAtACut(t *testing.T) {
	boom := errors.New("boom")
	quiet := func() error { return nil }
	for name, c := range map[string]struct {
		append, decode func(cancel func()) func() error
		want           string
	}{
		"nothing":            {},
		"an object of one":   {append: func(func()) func() error { return func() error { return boom } }, want: "boom"},
		"a panic":            {append: func(func()) func() error { return func() error { panic(boom) } }, want: "boom"},
		"restored":           {decode: func(func()) func() error { return func() error { return boom } }, want: "boom"},
		"restored, a panic":  {decode: func(func()) func() error { return func() error { panic(boom) } }, want: "boom"},
		"cancelled":          {append: func(cancel func()) func() error { return func() error { cancel(); return nil } }, want: context.Canceled.Error()},
		"cancelled, further": {decode: func(cancel func()) func() error { return func() error { cancel(); return nil } }, want: context.Canceled.Error()},
	} {
		// If the run is cancelled after one subtask has handed over its state, no subtask
		// continues.
		for _, at := range []struct{ p, after int }{{3, 1}, {3, 3}, {1, 2}} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				codec := failingCodec{shared.Float64s(), quiet, quiet}
				if c.append != nil {
					codec.append = c.append(cancel)
				}
				if c.decode != nil {
					codec.decode = c.decode(cancel)
				}
				held := shared.PerShard("held", codec)
				build := func(b *engine.Builder, p *partitioned) *comqueue.IterativeComQueue {
					return comqueue.New(b, "q").InitWithPartitionedData(data, p.dataset(b, 20, spread)).
						Begin(func(ctx *comqueue.ComContext) error {
							for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
								held.Put(ctx, shard, []float64{1})
							}
							return nil
						}).
						Do(func(ctx *comqueue.ComContext) error { held.Get(ctx, ctx.Shards().Lo)[0]++; return nil }).
						CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
							return []row{{held.Get(ctx, shard)[0]}}, nil
						})).SetMaxIter(3)
				}
				rows, _, err := runHeld(t, ctx, build, func(_ string, step int) int {
					if step == at.after {
						return 5
					}
					return 0
				}, task.Env{}, engine.Parallelism(at.p), engine.Shards(8))
				if c.want != "" {
					require.ErrorContains(t, err, c.want)
					return
				}
				require.NoError(t, err)
				require.Len(t, rows, 8)
			})
		}
	}
}

// TestResumeRefuses requires that the state of a cut is checked: a queue does not continue from
// a state that none of its gangs can have handed over, and its session is then closed.
func TestResumeRefuses(t *testing.T) {
	five := []byte{5, 0, 0, 0, 0, 0, 0, 0}
	part := func(objects ...shared.Encoded) []engine.CutPart {
		return []engine.CutPart{{Objects: objects}, {}, {}}
	}
	for want, parts := range map[string][]engine.CutPart{
		`queue "q" cannot continue with 2 subtasks in place of 3: stages added by AddNew keep snapshots`:                {{}, {Own: []byte{}}, {}},
		`continue after superstep 2: shared: restore "x" in session "q-2", subtask 0: scratch objects are not restored`: part(shared.Encoded{Name: "x", Kind: shared.KindScratch, Shard: -1}),
		`restore "x" in session "q-2": no subtask owns shard 8`:                                                         part(shared.Encoded{Name: "x", Kind: shared.KindPerShard, Shard: 8, Data: five}),
		`restore "x" in session "q-2", subtask 1: it comes twice`: part(
			shared.Encoded{Name: "x", Kind: shared.KindPerShard, Shard: 7, Data: five},
			shared.Encoded{Name: "x", Kind: shared.KindPerShard, Shard: 7, Data: five}),
		`continue after superstep 2: reports: `: part(shared.Encoded{Kind: shared.KindReplicated, Shard: -1, Data: []byte{0xc1}}),
	} {
		var open engine.OpenLoops
		_, err := engine.Compile(engine.Anonymous(func(b *engine.Builder) (err error) {
			q := comqueue.New(b, "q").Do(idle).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3)
			open, err = comqueue.LoopsOf(q, []engine.NodeID{1})
			engine.Collect(q.Exec(), "rows")
			return err
		}), struct{}{}, engine.Shards(8))
		require.NoError(t, err)
		for _, kept := range []bool{true, false} {
			spec := engine.GangSpec{
				Job: "job", Queue: "q-2", Sessions: shared.NewStore(), Subtasks: 2, Here: sharding.Range{Hi: 2},
				From: &engine.Cut{Step: 2, Parts: slices.Clone(parts)}, RowsKept: kept,
			}
			if kept {
				_, err = open(spec)
				require.ErrorContains(t, err, "the rows that it continues with are not in this process")
				_, err = spec.Sessions.Open("job", "q-2", 3)
				require.NoError(t, err)
			}
			_, err = open(spec)
			require.ErrorContains(t, err, want)
			require.Nil(t, spec.Sessions.Find("job", "q-2"))
		}
	}
}

// TestRowsLeaveTheBudget requires that rows count in the budget until their queue ends, even if
// other subtasks continue it. In a chain of queues, only the rows of one queue and the input of
// the next queue count at a time.
func TestRowsLeaveTheBudget(t *testing.T) {
	const n, queues = 1 << 17, 5
	pass := func(d *engine.Dataset) *engine.Dataset {
		return comqueue.New(d.Builder(), "pass").InitWithPartitionedData(data, d).Do(idle).SetMaxIter(2).
			CloseWith(comqueue.ShardOutputBatches(arrowrows.Schema(schema), func(ctx *comqueue.ComContext, shard int, emit func(engine.Batch) error) error {
				return emit(arrowrows.Batch(arrowrows.Record(data.Get(ctx, shard).Batch())))
			})).Exec()
	}
	build := func(b *engine.Builder) *engine.Dataset {
		d := dataset(b, n, spread)
		for range queues {
			d = pass(d)
		}
		return d
	}
	for _, options := range [][]engine.Option{nil, {engine.CheckResume(1, 3)}} {
		_, result, err := runOnce(t, build, append(options, engine.Parallelism(1), engine.Shards(16))...)
		require.NoError(t, err)
		require.Greater(t, result.Report.PeakMemory, int64(8*n))
		require.Less(t, result.Report.PeakMemory, int64(4*8*n), "the rows of %d queues must not all count at the same time", queues)
	}
}
