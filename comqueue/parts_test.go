package comqueue_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// partitioned is one worker's build of a job: the queue, bound to the nodes of the plan, and
// the sources in the order of their nodes.
type partitioned struct {
	sources []numbers
	queue   *comqueue.IterativeComQueue
}

func (p *partitioned) dataset(b *engine.Builder, n int, value func(i int) float64) *engine.Dataset {
	p.sources = append(p.sources, numbers{n, value})
	return dataset(b, n, value)
}

// buildPart builds a queue for one worker.
type buildPart func(b *engine.Builder, p *partitioned) *comqueue.IterativeComQueue

// compile builds the job as each worker does, and returns the plan and the bindings.
func (build buildPart) compile(t *testing.T, options ...engine.Option) (*plan.Plan, task.Bindings) {
	var part *partitioned
	job := engine.Anonymous(func(b *engine.Builder) error {
		part = &partitioned{}
		part.queue = build(b, part)
		engine.Collect(part.queue.Exec(), "rows")
		return nil
	})
	p, err := engine.Compile(job, struct{}{}, options...)
	require.NoError(t, err)
	bind := task.Bindings{Sources: map[plan.NodeID]func() task.Source{}, Operators: map[plan.NodeID]func() task.Operator{}}
	var stages []engine.NodeID
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.Op == "Numbers":
			source := part.sources[len(bind.Sources)]
			bind.Sources[n.ID] = func() task.Source { return source }
		case n.Op == "Collect":
			bind.Operators[n.ID] = func() task.Operator { return collecting{} }
		case n.Stage != plan.QueueInit && n.Stage != plan.Criterion && n.Stage != plan.QueueClose:
			stages = append(stages, n.ID)
		}
	}
	loops, err := comqueue.LoopsOf(part.queue, stages)
	require.NoError(t, err)
	bind.Loops = map[string]task.OpenLoops{p.Queues[0].Name: loops}
	return p, bind
}

type collecting struct{}

func (collecting) Open(*task.Context) error { return nil }
func (collecting) Process(c *task.Context, _, shard int, in engine.Batch, _ task.Output) error {
	rows := arrowrows.Record(in)
	return c.Collect(shard, arrowrows.Batch(rows))
}
func (collecting) EndShard(*task.Context, int, task.Output) error { return nil }
func (collecting) Finish(*task.Context, task.Output) error        { return nil }
func (collecting) Close() error                                   { return nil }

// rowBits collects the bits of rows by shard.
type rowBits struct {
	mu   sync.Mutex
	rows map[int][]uint64
}

func (c *rowBits) Collect(_ plan.NodeID, shard int, in engine.Batch) error {
	rec := arrowrows.Record(in)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range rec.Column(0).(*array.Float64).Float64Values() {
		c.rows[shard] = append(c.rows[shard], math.Float64bits(v))
	}
	return nil
}

// runParts runs a queue on several workers, each with its own build.
func runParts(t *testing.T, build buildPart, workers int, env task.Env, options ...engine.Option) (map[int][]uint64, *task.Report, error) {
	p, _ := build.compile(t, options...)
	slots := make([]sharding.Range, workers)
	for i := range slots {
		slots[i] = sharding.Split(p.Slots, workers, i)
	}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	got := &rowBits{rows: map[int][]uint64{}}
	env.Allocator, env.BatchRows, env.SpillDir, env.Collector = mem, 3, t.TempDir(), got
	defer overdue.Watch("a job of several workers to end")()
	report, err := task.RunParts(context.Background(), p, nil, slots, func(int) (task.Bindings, task.Env, error) {
		_, bind := build.compile(t, options...)
		return bind, env, nil
	})
	return got.rows, report, err
}

// spread returns values with magnitudes between 1e-8 and 1e16, so that the bits of sums depend
// on their order.
func spread(i int) float64 {
	r := sharding.NewRandom(5, "values", i, 0)
	return (r.Float64At(0) - 0.5) * math.Pow(10, math.Floor(r.Float64At(1)*24)-8)
}

// manyThings returns a function that builds a queue in which subtasks communicate in most ways:
// sums and objects of shards, a broadcast, an inner loop, reports by shard that are sometimes
// missing, and rows by shard.
func manyThings(criterion, perShard bool) buildPart {
	return func(b *engine.Builder, p *partitioned) *comqueue.IterativeComQueue {
		sum := shared.Replicated("sum", shared.Float64s())
		all, mine := shared.Replicated("all", shared.Float64s()), shared.Scratch[[]float64]("mine")
		seen, total := shared.PerShard("seen", shared.Float64()), shared.Replicated("total", shared.Float64())
		side := comqueue.BroadcastRows("side")
		rounds := 0
		q := comqueue.New(b, "everything").
			InitWithPartitionedData(data, p.dataset(b, 60, spread)).
			InitWithBroadcastData(side, p.dataset(b, 3, func(i int) float64 { return float64(i) + 0.25 })).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.StepNo() == 1 {
					sum.Put(ctx, make([]float64, 2))
				}
				mine.Put(ctx, nil)
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					seen.Put(ctx, shard, spread(shard*ctx.StepNo()))
					mine.Put(ctx, append(mine.Get(ctx), spread(shard+ctx.StepNo())))
				}
				if ctx.StepNo()%2 == 1 {
					ctx.Report("odd", float64(ctx.StepNo()))
				}
				if ctx.StepNo() == 5 { // this series begins in a later superstep
					ctx.Report("fifth", 5)
				}
				return nil
			}).
			Add(comqueue.ForEachShard(sum, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for _, v := range data.Get(ctx, shard).Floats("value") {
					out[0] += v * float64(ctx.StepNo())
					out[1] += v + side.Get(ctx).Floats("value")[1]
				}
				if (shard+ctx.StepNo())%3 != 0 {
					ctx.ReportSum("sums", shard, out[0])
				}
				if ctx.StepNo() > 2 && shard == 9 {
					ctx.ReportMax("later", shard, out[1])
				}
				return nil
			})).
			Add(comqueue.AllReduce(sum)).
			Add(comqueue.AllGather(mine, all)).
			Add(comqueue.AllReduceShardObjects(seen, total, func(l, r float64) float64 { return l + r })).
			Add(comqueue.Repeat(5, func(*comqueue.ComContext) (bool, error) { rounds++; return rounds%3 == 0, nil },
				comqueue.Broadcast(sum))).
			SetMaxIter(9)
		if criterion {
			q.SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) {
				ctx.Report("decided", sum.Get(ctx)[0])
				return ctx.StepNo() == 6, nil
			})
		}
		rows := func(ctx *comqueue.ComContext) []row {
			out := []row{{sum.Get(ctx)[0]}, {sum.Get(ctx)[1]}, {total.Get(ctx)}}
			for _, v := range all.Get(ctx) {
				out = append(out, row{v})
			}
			return out
		}
		if perShard {
			return q.CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				return append(rows(ctx), row{seen.Get(ctx, shard)}), nil
			}))
		}
		return q.CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return rows(ctx), nil }))
	}
}

// TestPartsGiveTheSameBits requires that rows and reports do not depend on the number of
// processes that run the subtasks.
func TestPartsGiveTheSameBits(t *testing.T) {
	for _, criterion := range []bool{true, false} {
		for _, perShard := range []bool{true, false} {
			build := manyThings(criterion, perShard)
			options := []engine.Option{engine.Parallelism(5), engine.Shards(16), engine.CheckBroadcasts(perShard)}
			want, local, err := runParts(t, build, 1, task.Env{}, options...)
			require.NoError(t, err)
			require.Len(t, local.Queues[0].Series, map[bool]int{true: 5, false: 4}[criterion])
			for workers := 2; workers <= 5; workers++ {
				t.Run(fmt.Sprintf("criterion=%t/perShard=%t/workers%d", criterion, perShard, workers), func(t *testing.T) {
					got, report, err := runParts(t, build, workers, task.Env{}, options...)
					require.NoError(t, err)
					require.Equal(t, want, got)
					w, q := local.Queues[0], report.Queues[0]
					require.Equal(t, []any{w.Supersteps, w.Stopped}, []any{q.Supersteps, q.Stopped})
					require.Equal(t, len(w.Series), len(q.Series))
					for i, s := range w.Series {
						require.Equal(t, s.Name, q.Series[i].Name)
						require.Equal(t, len(s.Values), len(q.Series[i].Values))
						for k, v := range s.Values {
							require.Equal(t, math.Float64bits(v), math.Float64bits(q.Series[i].Values[k]), "%s in superstep %d", s.Name, k+1)
						}
					}
					for i, s := range w.Stages {
						require.Equal(t, []any{s.Node, s.Calls}, []any{q.Stages[i].Node, q.Stages[i].Calls})
					}
				})
			}
		}
	}
}

// TestPartsFindWhatIsWrong requires that subtasks in several processes find the same misuses as
// subtasks in one process.
func TestPartsFindWhatIsWrong(t *testing.T) {
	queue := func(stages ...func(*comqueue.ComContext) error) buildPart {
		return func(b *engine.Builder, p *partitioned) *comqueue.IterativeComQueue {
			q := comqueue.New(b, "q").
				InitWithPartitionedData(data, p.dataset(b, 8, func(int) float64 { return 1 })).
				InitWithBroadcastData(comqueue.BroadcastRows("side"), p.dataset(b, 3, func(int) float64 { return 2 })).
				Do(put(weights, func(*comqueue.ComContext) []float64 { return []float64{1, 2, 3} }))
			for _, s := range stages {
				q.Do(s)
			}
			return q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(6)
		}
	}
	nudge := func(ctx *comqueue.ComContext) { w := weights.Get(ctx); w[2] = math.Nextafter(w[2], 0) }
	for name, c := range map[string]struct {
		build buildPart
		want  string
	}{
		"replicas in another process": {queue(at(3, 2, nudge)),
			`queue "q": the replicated object "weights" differs between subtask 0 and subtask 3 at the beginning of superstep 3;`},
		"replicas at home": {queue(at(0, 2, nudge)),
			`"weights" differs between subtask 0 and subtask 1 at the beginning of superstep 3;`},
		"rows in another process": {queue(at(2, 2, func(ctx *comqueue.ComContext) {
			comqueue.BroadcastRows("side").Get(ctx).Floats("value")[0] = 7
		})), `the broadcast object "side" was modified in superstep 2;`},
		"two folds": {queue(at(0, 2, func(ctx *comqueue.ComContext) { ctx.ReportSum("loss", 0, 1) }),
			at(3, 2, func(ctx *comqueue.ComContext) { ctx.ReportMax("loss", 7, 1) })),
			`report "loss": both ReportSum and ReportMax are used under this name`},
		"of the subtask and of shards elsewhere": {queue(at(0, 2, func(ctx *comqueue.ComContext) { ctx.Report("loss", 1) }),
			at(3, 2, func(ctx *comqueue.ComContext) { ctx.ReportMax("loss", 7, 1) })),
			`report "loss": both Report and ReportMax are used under this name in superstep 2`},
		"a shard of another": {queue(at(3, 2, func(ctx *comqueue.ComContext) { ctx.ReportSum("loss", 0, 1) })),
			`report "loss" of shard 0: subtask 3 owns shards 6 to 7`},
	} {
		for _, workers := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s/workers%d", name, workers), func(t *testing.T) {
				_, _, err := runParts(t, c.build, workers, task.Env{}, engine.Parallelism(4), engine.Shards(8), engine.CheckBroadcasts(true))
				require.ErrorContains(t, err, c.want)
				require.False(t, task.FollowsPeer(err))
			})
		}
	}
}

// TestReportsArriveLate requires that values of shards arrive in later rounds if supersteps are
// fast, and at once if they are slow, and that no value is lost.
func TestReportsArriveLate(t *testing.T) {
	for each, want := range map[time.Duration][]int{
		time.Second:     {1, 2, 3, 4, 5},
		time.Nanosecond: {1, 65, 129, 193, 257, 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			build := buildPart(func(b *engine.Builder, p *partitioned) *comqueue.IterativeComQueue {
				return comqueue.New(b, "q").
					InitWithPartitionedData(data, p.dataset(b, 8, func(int) float64 { return 1 })).
					Do(func(ctx *comqueue.ComContext) error {
						for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
							ctx.ReportSum("n", shard, float64(ctx.StepNo()))
						}
						time.Sleep(each) // on synctest's clock
						return nil
					}).
					CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(want[len(want)-1])
			})
			var shown []int
			env := task.Env{Progress: func(e task.Progress) {
				if len(e.Values) > 0 {
					require.Equal(t, task.Value{Name: "n", Value: float64(8 * e.Step)}, e.Values[0])
					shown = append(shown, e.Step)
				}
			}}
			_, report, err := runParts(t, build, 2, env, engine.Parallelism(2), engine.Shards(8))
			require.NoError(t, err)
			require.Equal(t, want, shown)
			for i, v := range report.Queues[0].Series[0].Values {
				require.Equal(t, float64(8*(i+1)), v)
			}
		})
	}
}
