package comqueue_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

var (
	weights  = shared.Replicated("weights", shared.Float64s())
	position = shared.Replicated("position", shared.Int())
)

// trained returns a function that builds a queue of 6 supersteps over replicated weights, with
// the given stages. criterion may be nil.
func trained(criterion func(*comqueue.ComContext) (bool, error), stages ...func(*comqueue.ComContext) error) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "q").
			InitWithPartitionedData(data, dataset(b, 8, func(int) float64 { return 1 })).
			InitWithBroadcastData(comqueue.BroadcastRows("side"), dataset(b, 3, func(int) float64 { return 2 })).
			Do(put(weights, func(*comqueue.ComContext) []float64 { return []float64{1, 2, 3} })).
			Do(func(ctx *comqueue.ComContext) error {
				position.Put(ctx, ctx.StepNo())
				weights.Get(ctx)[1] += 0.5
				return nil
			})
		for _, stage := range stages {
			q.Do(stage)
		}
		if criterion != nil {
			q.SetCompareCriterionOfNode0(criterion)
		}
		return q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(6).Exec()
	}
}

// at returns a stage that calls f on one subtask in one superstep.
func at(subtask, step int, f func(*comqueue.ComContext)) func(*comqueue.ComContext) error {
	return func(ctx *comqueue.ComContext) error {
		if ctx.TaskID() == subtask && ctx.StepNo() == step {
			f(ctx)
		}
		return nil
	}
}

func TestReplicasThatDifferAreNoticed(t *testing.T) {
	nudge := func(ctx *comqueue.ComContext) { w := weights.Get(ctx); w[2] = math.Nextafter(w[2], 0) }
	remove := func(ctx *comqueue.ComContext) { weights.Remove(ctx) }
	extra := func(name string) func(*comqueue.ComContext) {
		return func(ctx *comqueue.ComContext) { shared.Replicated(name, shared.Int()).Put(ctx, 7) }
	}
	for name, c := range map[string]struct {
		build func(b *engine.Builder) *engine.Dataset
		want  string
	}{
		"one bit": {
			trained(nil, at(2, 2, nudge)),
			`queue "q": the replicated object "weights" differs between subtask 0 and subtask 2 at the beginning of superstep 3; replicated objects must be the same on every subtask`,
		},
		"from the first superstep on": {
			trained(nil, at(3, 1, nudge)),
			`"weights" differs between subtask 0 and subtask 3 at the beginning of superstep 2;`,
		},
		"subtask 0 is the one": {
			trained(nil, at(0, 2, nudge)),
			`"weights" differs between subtask 0 and subtask 1 at the beginning of superstep 3;`,
		},
		"by the criterion, which runs on subtask 0": {
			trained(func(ctx *comqueue.ComContext) (bool, error) { return false, at(0, 4, nudge)(ctx) }),
			`"weights" differs between subtask 0 and subtask 1 at the beginning of superstep 5;`,
		},
		"the lowest subtask, then the first name": {
			trained(nil, at(3, 2, extra("a")), at(1, 2, extra("z")), at(1, 2, extra("x"))),
			`the replicated object "x" is on subtask 1 but not on subtask 0 at the beginning of superstep 3;`,
		},
		"the last name is on one alone": {
			trained(nil, at(2, 5, extra("z"))),
			`the replicated object "z" is on subtask 2 but not on subtask 0 at the beginning of superstep 6;`,
		},
		"on all but one": {
			trained(nil, func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() != 1 {
					extra("model")(ctx)
				}
				return nil
			}),
			`the replicated object "model" is on subtask 0 but not on subtask 1 at the beginning of superstep 2;`,
		},
		"removed": {
			trained(nil, at(3, 2, func(ctx *comqueue.ComContext) { position.Remove(ctx) })),
			`the replicated object "position" is on subtask 0 but not on subtask 3 at the beginning of superstep 3;`,
		},
		"missing where it is needed": { // the stage fails before the check runs
			trained(nil, at(3, 2, remove)),
			`get of replicated key "weights" ([]float64) in session "q", subtask 3: never put`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, c.build, engine.Parallelism(4), engine.Shards(8), engine.CheckBroadcasts(true))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, _, err := run(t, trained(nil, at(2, 2, nudge)), engine.Parallelism(4), engine.CheckBroadcasts(false))
	require.NoError(t, err, "without CheckBroadcasts, replicas are not compared")
	_, _, err = run(t, trained(nil, at(0, 2, nudge)), engine.Parallelism(1), engine.CheckBroadcasts(true))
	require.NoError(t, err, "with one subtask, no replica can differ")
}

// TestOnlyReplicasAreCompared requires that the check accepts scratch objects, objects of
// shards and values outside of the session that differ between subtasks.
func TestOnlyReplicasAreCompared(t *testing.T) {
	work, counts := shared.Scratch[[]int]("work"), shared.PerShard("counts", shared.Int())
	mine := func(ctx *comqueue.ComContext) error {
		work.Put(ctx, []int{ctx.TaskID()})
		counts.Put(ctx, ctx.Shards().Lo, ctx.StepNo())
		return nil
	}
	for _, p := range []int{1, 2, 3, 8} {
		_, _, err := run(t, trained(nil, mine), engine.Parallelism(p), engine.Shards(8), engine.CheckBroadcasts(true))
		require.NoError(t, err, "parallelism %d", p)
	}
}

func TestReplicasThatCannotBeEncodedAreNamed(t *testing.T) {
	label := shared.Replicated("label", shared.String())
	build := trained(nil, func(ctx *comqueue.ComContext) error { label.Put(ctx, "\xff"); return nil })
	_, _, err := run(t, build, engine.Parallelism(2), engine.CheckBroadcasts(true))
	require.ErrorContains(t, err, `replicated key "label": shared: encode string`)
}

// TestReplicasAreComparedSuperstepBySuperstep requires that the comparison on subtask 0 reads
// only the fingerprints of its superstep, even if other subtasks are already in the next
// superstep. The race detector also checks this.
func TestReplicasAreComparedSuperstepBySuperstep(t *testing.T) {
	last := 0
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "steps").
			Do(func(ctx *comqueue.ComContext) error {
				position.Put(ctx, ctx.StepNo())
				shared.Replicated(fmt.Sprint("key", ctx.StepNo()%3), shared.Int()).Put(ctx, ctx.StepNo())
				if ctx.TaskID() == 0 {
					last = ctx.StepNo()
				}
				return nil
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(300).
			Exec()
	}
	_, _, err := run(t, build, engine.Parallelism(8), engine.Shards(8), engine.CheckBroadcasts(true))
	require.NoError(t, err)
	require.Equal(t, 300, last)
}

// TestRowsModifiedAtTheEndAreNoticed requires that the check also finds rows that the close
// function of the queue modifies.
func TestRowsModifiedAtTheEndAreNoticed(t *testing.T) {
	side := comqueue.BroadcastRows("side")
	for want, modify := range map[string]func(ctx *comqueue.ComContext){
		`rows of "data" were modified when the queue closed`:             func(ctx *comqueue.ComContext) { data.Get(ctx, ctx.Shards().Lo).Floats("value")[0]++ },
		`the broadcast object "side" was modified when the queue closed`: func(ctx *comqueue.ComContext) { side.Get(ctx).Floats("value")[0]++ },
	} {
		build := func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "q").
				InitWithPartitionedData(data, dataset(b, 8, func(int) float64 { return 1 })).
				InitWithBroadcastData(side, dataset(b, 3, func(int) float64 { return 2 })).
				Do(func(*comqueue.ComContext) error { return nil }).SetMaxIter(2).
				CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { modify(ctx); return nil, nil })).Exec()
		}
		_, _, err := run(t, build, engine.Parallelism(1), engine.Shards(4), engine.CheckBroadcasts(true))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "operator QueueClose")
		_, _, err = run(t, build, engine.Parallelism(1), engine.Shards(4))
		require.NoError(t, err)
	}
}
