package comqueue_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
)

// instances returns a job with a queue whose first stage has instances, and which calls each after
// that in every superstep.
func instances(name string, factory func() comqueue.Compute, each func(ctx *comqueue.ComContext) error) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, name).AddNew(factory).Do(each).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(4).Exec()
	}
}

func newCounter() comqueue.Compute { return &counter{} }

// stateless has no fields.
type stateless struct{}

func (*stateless) Calc(*comqueue.ComContext) error { return nil }

func idleStage(*comqueue.ComContext) error { return nil }

// TestPlanSaysWhereQueuesContinue requires that the plan says of each queue where it continues, and
// because of which stage.
func TestPlanSaysWhereQueuesContinue(t *testing.T) {
	var restored atomic.Int32
	for _, test := range []struct {
		name    string
		factory func() comqueue.Compute
		want    plan.Resumes
		because string
		text    string
	}{
		{"fields", newCounter, plan.FromTheBeginning, "Compute", "begins at superstep 1 again, because Compute"},
		{"snapshots", func() comqueue.Compute { return silent{&restored} }, plan.AtItsParallelism, "Compute", "continues at parallelism 2 only, because of Compute"},
		{"no fields", func() comqueue.Compute { return &stateless{} }, plan.AtAnyParallelism, "", "continues at any parallelism"},
		{"functions", func() comqueue.Compute { return comqueue.ComputeFunc(idleStage) }, plan.AtAnyParallelism, "", "continues at any parallelism"},
	} {
		job := engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(instances("q", test.factory, idleStage)(b), "rows")
			return nil
		})
		p, err := engine.Compile(job, struct{}{}, engine.Parallelism(2))
		require.NoError(t, err, test.name)
		require.Len(t, p.Resumption, 1, test.name)
		require.Equal(t, "q", p.Resumption[0].Queue, test.name)
		require.Equal(t, test.want, p.Resumption[0].Resumes, test.name)
		require.Contains(t, p.Resumption[0].Because, test.because, test.name)
		require.Contains(t, p.Text(), "4 supersteps; "+test.text, test.name)
		data, err := p.JSON()
		require.NoError(t, err, test.name)
		back, err := plan.DecodePlan(data)
		require.NoError(t, err, test.name)
		require.Equal(t, p.Resumption, back.Resumption, test.name)
	}
}

// TestQueueThatIsNotKeptBeginsAgain requires that a queue whose instances have fields and no snapshot
// begins at superstep 1 in the next run, and that another queue of the run continues. The instances
// fail if they have not seen every superstep.
func TestQueueThatIsNotKeptBeginsAgain(t *testing.T) {
	for _, workers := range []int{0, 2} {
		var lost atomic.Bool
		var first atomic.Int64 // supersteps of the queue that is kept, on subtask 0
		job := engine.Anonymous(func(b *engine.Builder) error {
			kept := comqueue.New(b, "kept").Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 {
					first.Add(1)
				}
				return nil
			}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(5).Exec()
			unkept := comqueue.New(b, "unkept").InitWithBroadcastData(comqueue.BroadcastRows("after"), kept).
				AddNew(newCounter).
				Do(func(ctx *comqueue.ComContext) error {
					if ctx.StepNo() == 3 && !lost.Load() {
						return errLost
					}
					return nil
				}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(4).Exec()
			engine.Collect(unkept, "rows")
			return nil
		})
		options := []engine.Option{
			engine.Parallelism(2), engine.Shards(4), engine.Workers(workers), engine.Resume(true),
			engine.CheckpointDir(filepath.Join(t.TempDir(), "checkpoints")), engine.CheckpointSupersteps(1),
		}
		_, err := engine.Run(t.Context(), job, struct{}{}, options...)
		require.ErrorIs(t, err, errLost)
		before := first.Load()
		require.EqualValues(t, 5, before)
		lost.Store(true)
		result, err := engine.Run(t.Context(), job, struct{}{}, options...)
		require.NoError(t, err)
		result.Release()
		if workers == 0 { // several processes write the last state of a queue only with the next checkpoint
			require.Equal(t, before, first.Load(), "the queue that is kept must not run again")
		}
	}
}

// TestRequiredCheckpoints requires that a queue that cannot continue is refused before anything runs if
// the plan shows that, and fails after its first superstep if the state shows it.
func TestRequiredCheckpoints(t *testing.T) {
	var ran atomic.Int64
	each := func(ctx *comqueue.ComContext) error { ran.Add(1); return nil }
	options := func(workers int) []engine.Option {
		return []engine.Option{
			engine.Parallelism(2), engine.Shards(4), engine.Workers(workers), engine.RequireCheckpoints(true),
			engine.CheckpointDir(filepath.Join(t.TempDir(), "checkpoints")), engine.CheckpointEvery(time.Hour),
		}
	}
	for _, workers := range []int{0, 2} {
		_, _, err := runOnce(t, instances("q", newCounter, each), options(workers)...)
		require.ErrorContains(t, err, `--checkpoint require: queue "q" would begin at superstep 1 again: the instances of Compute`)
		require.ErrorContains(t, err, `(resumption_test.go:21), of type *comqueue_test.counter, have fields`)
		require.ErrorContains(t, err, "Implement comqueue.Snapshotter")
		require.Zero(t, ran.Load(), "nothing may run")
	}
	losing := shared.Replicated("losing", losingCodec{Codec: shared.Float64s()})
	for _, workers := range []int{0, 2} {
		ran.Store(0)
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "q").Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 {
					ran.Add(1)
				}
				losing.Put(ctx, []float64{1, 2})
				return nil
			}).SetCompareCriterionOfNode0(func(*comqueue.ComContext) (bool, error) { return false, nil }).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(9).Exec()
		}, options(workers)...)
		require.ErrorContains(t, err, `--checkpoint require: `)
		require.ErrorContains(t, err, `the replicated object "losing" cannot be restored`)
		require.ErrorContains(t, err, `queue "q" begins at superstep 1 again after a loss`)
		require.EqualValues(t, 1, ran.Load(), "the first superstep must be the last")
	}
	_, _, err := runOnce(t, instances("q", func() comqueue.Compute { return &stateless{} }, each), options(2)...)
	require.NoError(t, err)
}
