package comqueue_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
)

var (
	estimates = shared.Replicated("estimates", shared.Float64s())
	visits    = shared.PerShard("visits", shared.Int())
	errorsOf  = shared.Scratch[[]float64]("errors")
)

// caller is an instance of a stage. The result of the queue depends on its field.
type caller struct{ calls int }

func (c *caller) Calc(ctx *comqueue.ComContext) error {
	c.calls++
	estimates.Get(ctx)[1] += float64(c.calls)
	return nil
}

// keptCaller is a caller with a snapshot.
type keptCaller struct{ caller }

func (c *keptCaller) AppendSnapshot(dst []byte) ([]byte, error) {
	return binary.AppendUvarint(dst, uint64(c.calls)), nil
}

func (c *keptCaller) Restore(src []byte) error {
	n, _ := binary.Uvarint(src)
	c.calls = int(n)
	return nil
}

// descending returns a function that builds a queue with its state under kept keys and with
// scratch made in Init, unless the parameters change that.
func descending(init, stage func(*comqueue.ComContext) error, count func() comqueue.Compute) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "q").
			InitWithPartitionedData(data, dataset(b, 50, func(i int) float64 { return float64(i) / 7 })).
			InitWithBroadcastData(comqueue.BroadcastRows("side"), dataset(b, 3, func(int) float64 { return 2 })).
			Begin(func(ctx *comqueue.ComContext) error {
				estimates.Put(ctx, []float64{float64(ctx.StepNo()), 0, 0})
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					visits.Put(ctx, shard, shard)
				}
				return nil
			})
		if init != nil {
			q.Init(init)
		}
		return q.Do(stage).
			Add(comqueue.ForEachShard(errorsOf, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				visits.Put(ctx, shard, visits.Get(ctx, shard)+1)
				for _, v := range data.Get(ctx, shard).Floats("value") {
					out[0] += (v - estimates.Get(ctx)[0]) / 60
				}
				out[1] += float64(visits.Get(ctx, shard))
				return nil
			})).
			Add(comqueue.AllReduce(errorsOf)).
			AddNew(count).
			Add(do(func(ctx *comqueue.ComContext) {
				e := estimates.Get(ctx)
				e[0] += errorsOf.Get(ctx)[0]
				e[2] = errorsOf.Get(ctx)[1]
			})).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) (rows []row, err error) {
				for _, v := range estimates.Get(ctx) {
					rows = append(rows, row{v})
				}
				return rows, nil
			})).
			SetMaxIter(5).
			Exec()
	}
}

func idle(*comqueue.ComContext) error { return nil }

func room(ctx *comqueue.ComContext) error { errorsOf.Put(ctx, make([]float64, 2)); return nil }

// TestQueuesFromKeptStateHaveTheSameBits requires that a queue that keeps all state on which
// its result depends gives the same bits with CheckState, at any parallelism and number of
// workers.
func TestQueuesFromKeptStateHaveTheSameBits(t *testing.T) {
	kept := func() comqueue.Compute { return &keptCaller{} }
	var want []row
	for _, p := range parallelisms {
		for _, check := range []bool{false, true} {
			rows, _, err := run(t, descending(room, idle, kept), engine.Parallelism(p), engine.Shards(8), engine.CheckState(check), engine.CheckBroadcasts(true))
			require.NoError(t, err)
			if want == nil {
				want = rows
			}
			require.Equal(t, want, rows, "parallelism %d, checked: %v", p, check)
		}
	}
	require.Equal(t, float64(1+2+3+4+5), want[1].Value, "the value must be the number of calls of the instance, summed over supersteps")
	require.Equal(t, float64(0+1+2+3+4+5+6+7+8*5), want[2].Value, "the value must be the number of visits of shards, summed over supersteps")
}

// TestForgottenStateShows requires that CheckState changes the result of a queue that depends
// on old scratch or on fields of instances without a snapshot, or makes it fail.
func TestForgottenStateShows(t *testing.T) {
	carried := shared.Scratch[int]("carried")
	kept := func() comqueue.Compute { return &keptCaller{} }
	first := func(ctx *comqueue.ComContext) error {
		if ctx.StepNo() == 1 {
			return room(ctx)
		}
		return nil
	}
	sums := func(ctx *comqueue.ComContext) error {
		n, _ := carried.Lookup(ctx)
		carried.Put(ctx, n+1)
		estimates.Get(ctx)[1] += float64(n)
		return nil
	}
	for name, c := range map[string]struct {
		build func(*engine.Builder) *engine.Dataset
		want  string // text of the error; if it is "", the result must differ
	}{
		"scratch made in the first superstep": {descending(nil, first, kept), `get of scratch key "errors" ([]float64) in session "q", subtask `},
		"scratch that counts":                 {descending(room, sums, kept), ""},
		"an instance without a snapshot":      {descending(room, idle, func() comqueue.Compute { return &caller{} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			options := []engine.Option{engine.Parallelism(2), engine.Shards(8)}
			want, _, err := run(t, c.build, options...)
			require.NoError(t, err)
			rows, _, err := run(t, c.build, append(options, engine.CheckState(true))...)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.NotEqual(t, want, rows)
		})
	}
}

// TestOpeningOrder requires that functions of Begin and Init run in the order in which they
// were added, and that those of Begin run once.
func TestOpeningOrder(t *testing.T) {
	var trace []string
	say := func(s string) func(*comqueue.ComContext) error {
		return func(ctx *comqueue.ComContext) error {
			trace = append(trace, fmt.Sprint(s, ctx.StepNo()))
			return nil
		}
	}
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "q").Init(say("a")).Begin(say("b")).Init(say("c")).Do(say("step")).
			CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(2).Exec()
	}
	_, result, err := runOnce(t, build, engine.Parallelism(1))
	require.NoError(t, err)
	require.Equal(t, "a0 b0 c0 step1 step2", strings.Join(trace, " "))
	require.Contains(t, result.Plan.Text(), "QueueInit")
	trace = nil
	_, _, err = runOnce(t, build, engine.Parallelism(1), engine.CheckState(true))
	require.NoError(t, err)
	require.Equal(t, "a0 b0 c0 step1 a0 c0 step2", strings.Join(trace, " "))
}

func TestOpeningMisuse(t *testing.T) {
	scratch := shared.Scratch[int]("room")
	for name, c := range map[string]struct {
		begin, init func(*comqueue.ComContext) error
		want        string
	}{
		"state in Init":    {idle, func(ctx *comqueue.ComContext) error { visits.Put(ctx, ctx.Shards().Lo, 1); return nil }, `put of per-shard key "visits" (int) in session "q", subtask 0, shard 0: not now: Init runs whenever a subtask joins`},
		"scratch in Begin": {func(ctx *comqueue.ComContext) error { scratch.Put(ctx, 1); return nil }, idle, `put of scratch key "room" (int) in session "q", subtask 0: not now: Begin runs once`},
		"an error":         {idle, func(*comqueue.ComContext) error { return fmt.Errorf("no room") }, "no room"},
		"a panic":          {func(*comqueue.ComContext) error { panic("no state") }, idle, "no state"},
		"a report":         {idle, func(ctx *comqueue.ComContext) error { ctx.ReportSum("loss", ctx.Shards().Lo, 1); return nil }, "values of shards are reported from the stages of a superstep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, func(b *engine.Builder) *engine.Dataset {
				return comqueue.New(b, "q").Begin(c.begin).Init(c.init).Do(idle).
					CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(2).Exec()
			}, engine.Parallelism(1))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "operator QueueInit (opening_test.go:")
		})
	}
	for _, add := range []func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue{
		func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue { return q.Begin(nil) },
		func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue { return q.Init(nil) },
	} {
		_, _, err := run(t, func(b *engine.Builder) *engine.Dataset { return add(comqueue.New(b, "q")).SetMaxIter(1).Exec() })
		require.ErrorContains(t, err, "the function is nil")
	}
}

// opener has a method that serves as a function of Init.
type opener struct{}

func (*opener) makeRoom(ctx *comqueue.ComContext) error { return room(ctx) }

// TestOpeningIsInThePlan requires that functions of Begin and Init are in the plan and in the
// fingerprint on which client and worker must agree.
func TestOpeningIsInThePlan(t *testing.T) {
	_, result, err := run(t, descending(room, idle, func() comqueue.Compute { return &keptCaller{} }), engine.Parallelism(1), engine.Shards(8))
	require.NoError(t, err)
	i := slices.IndexFunc(result.Plan.Nodes, func(n plan.Node) bool { return n.Op == "QueueInit" })
	require.Equal(t, "begin", result.Plan.Nodes[i].Attrs[0].Key)
	require.Equal(t, engine.Attr{Key: "init", Value: "room"}, result.Plan.Nodes[i].Attrs[1])
	require.Contains(t, result.Plan.Nodes[i].Func, "room")

	// The plan must name a method without its type.
	_, result, err = run(t, descending((&opener{}).makeRoom, idle, func() comqueue.Compute { return &keptCaller{} }), engine.Parallelism(1), engine.Shards(8))
	require.NoError(t, err)
	require.Equal(t, engine.Attr{Key: "init", Value: "makeRoom"}, result.Plan.Nodes[i].Attrs[1])
}

// TestCheckOfOpenings requires that engine.Check finds functions of Begin and Init that change
// captured variables, whatever the timing.
func TestCheckOfOpenings(t *testing.T) {
	for _, begins := range []bool{true, false} {
		job := engine.Define("leak", func(b *engine.Builder, _ struct{}) error {
			var calls atomic.Int64 // atomic because several workers of the check run in this process
			count := func(ctx *comqueue.ComContext) error {
				n := int(calls.Add(1))
				if begins {
					visits.Put(ctx, ctx.Shards().Lo, n)
				}
				return nil
			}
			q := comqueue.New(b, "q")
			if begins {
				q.Begin(count)
			} else {
				q.Init(count).Do(func(ctx *comqueue.ComContext) error {
					visits.Put(ctx, ctx.Shards().Lo, int(calls.Load()))
					return nil
				})
			}
			engine.Collect(q.CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				n, _ := visits.Lookup(ctx, shard)
				return []row{{float64(n)}}, nil
			})).SetMaxIter(1).Exec(), "rows")
			return nil
		})
		require.ErrorContains(t, engine.Check(t.Context(), job, struct{}{}, engine.Shards(8)), "is not deterministic", "Begin: %v", begins)
	}
}
