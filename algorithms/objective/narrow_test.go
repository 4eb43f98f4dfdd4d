package objective_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// passes is the number of successive passes that compute loss and gradient.
const passes = 5

// pass runs the pass with number i, from 0 to passes−1, over a shard.
func pass(e optim.Evaluator, i, shard int, v, out []float64) error {
	switch i {
	case 0:
		return e.Evaluate(shard, v, out)
	case 1:
		return e.Margins.Start(shard, v, out)
	case 2:
		return e.Margins.Direction(shard, v, 0.5, out)
	case 3:
		return e.Margins.Gradient(shard, 0.25, out)
	}
	if err := e.Margins.Advance(shard, 0.25); err != nil {
		return err
	}
	return e.Margins.Gradient(shard, 0, out)
}

// narrowSums returns the sums of the passes over all rows. If folded is set, the evaluator adds
// up the sums of shards itself; otherwise it writes the sums of each shard to a separate
// buffer. If wide is set, the evaluator comes from OpenWide.
func narrowSums(t *testing.T, record arrow.Record, l objective.Linear, wide, folded bool, parallelism int, options ...engine.Option) []float64 {
	evaluator := shared.Scratch[optim.Evaluator]("evaluator")
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", arrowbridge.FromRecords(b, []arrow.Record{record}), rows.Columns{Vector: "features", Label: "label"}, l.Loss.Label())
		require.NoError(t, err)
		l.Table = checked
		each := func(ctx *comqueue.ComContext, shard int, out []float64) error {
			e := evaluator.Get(ctx)
			n := 1 + e.Dim
			for i := range passes {
				if err := pass(e, i, shard, parametersFor(e.Dim), out[i*n:(i+1)*n]); err != nil {
					return err
				}
			}
			return nil
		}
		fold := func(ctx *comqueue.ComContext, shards sharding.Range, out []float64) (bool, error) {
			e := evaluator.Get(ctx)
			n := 1 + e.Dim
			if !folded {
				return false, nil
			}
			require.NotNil(t, e.Fold)
			for i := range passes {
				err := ctx.ForShardsWithin(shards, func(shard int) error { return pass(e, i, shard, parametersFor(e.Dim), nil) })
				if err != nil {
					return true, err
				}
				if err := e.Fold(shards, out[i*n:(i+1)*n]); err != nil {
					return true, err
				}
			}
			return true, nil
		}
		engine.Collect(checked.Init(comqueue.New(b, "sum")).
			Do(func(ctx *comqueue.ComContext) error {
				e, err := l.Open(ctx)
				if wide {
					e, err = l.OpenWide(ctx)
				}
				if err != nil {
					return err
				}
				evaluator.Put(ctx, e)
				sums.Put(ctx, make([]float64, passes*(1+e.Dim)))
				return nil
			}).
			Add(comqueue.ForEachShard(sums, each, comqueue.FoldedBy(fold))).
			Add(comqueue.AllReduce(sums)).
			SetMaxIter(1).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return sums.Get(ctx), nil })).
			Exec(), "sums")
	}, append(options, engine.Parallelism(parallelism), engine.Shards(16), engine.CheckBroadcasts(false))...)
	got, err := engine.Rows[float64](r, "sums")
	require.NoError(t, err)
	return got
}

// bitsOf returns the bits of sums, which distinguish −0 from +0.
func bitsOf(values []float64) []uint64 {
	bits := make([]uint64, len(values))
	for i, v := range values {
		bits[i] = math.Float64bits(v)
	}
	return bits
}

// TestNarrowShardsGiveTheSameBits compares sums over narrow shards with sums over shards that
// have buffers for all features. It requires the same bits, whether the evaluator adds up the
// sums or not, at any parallelism.
func TestNarrowShardsGiveTheSameBits(t *testing.T) {
	record := wideRecord(500, 6000, 20, 12)
	for _, l := range []objective.Linear{
		{Loss: objective.Logistic{}},
		{Loss: objective.Softmax{}, NoIntercept: true},
		{Loss: objective.AFT{}},
	} {
		want := bitsOf(narrowSums(t, record, l, true, false, 1))
		for _, parallelism := range []int{1, 2, 3, 8} {
			if _, ok := l.Loss.(objective.Logistic); !ok && parallelism != 3 && !testsize.Soak {
				continue
			}
			require.Equal(t, want, bitsOf(narrowSums(t, record, l, false, true, parallelism)), "%v, parallelism %d", l.Loss, parallelism)
		}
		require.Equal(t, want, bitsOf(narrowSums(t, record, l, false, false, 2)), "%v, not folded", l.Loss)
	}
}

// TestTrainingOverNarrowShards requires that complete trainings over narrow shards have the
// same bits at any parallelism, and the same optimum as trainings over only the features that
// occur.
func TestTrainingOverNarrowShards(t *testing.T) {
	record := wideRecord(200, 5000, 10, 2)
	for _, s := range []optim.Settings{
		{Method: optim.LBFGS, L2: 1e-3, MaxIter: 4},
		{Method: optim.OWLQN, L1: 1e-3, MaxIter: 3},
		{Method: optim.SGD, L2: 1e-3, MaxIter: 1},
	} {
		var first fitted
		for _, parallelism := range []int{1, 3} {
			f, _ := fitOf(t, func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) },
				rows.Columns{Vector: "features", Label: "label"}, objective.Linear{Loss: objective.Logistic{}}, s,
				engine.Parallelism(parallelism), engine.Shards(32), engine.CheckBroadcasts(false))
			if parallelism == 1 {
				first = f
			}
			require.Equal(t, bitsOf(first.Weights), bitsOf(f.Weights))
			require.Equal(t, first.Loss, f.Loss)
		}
		require.Greater(t, len(first.Weights), 1500)
	}
	smooth := objective.Linear{Loss: objective.Smooth{Loss: objective.Hinge{}}}
	f, _ := fitOf(t, func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) },
		rows.Columns{Vector: "features", Label: "label"}, smooth, optim.Settings{L2: 0.1, GapTol: 0.01, MaxIter: 300}, engine.Shards(32), engine.CheckBroadcasts(false))
	require.Equal(t, string(optim.GapClosed), f.Reason)
}

// TestNarrowPassesAllocateNothing requires that passes over narrow shards, and adding up their
// sums, allocate nothing after the first time.
func TestNarrowPassesAllocateNothing(t *testing.T) {
	called := false
	record := wideRecord(200, 9000, 10, 1)
	trial.Run(t, func(b *engine.Builder) {
		l := objective.Linear{Loss: objective.Logistic{}}
		checked, err := rows.Check("test", arrowbridge.FromRecords(b, []arrow.Record{record}), rows.Columns{Vector: "features", Label: "label"}, l.Loss.Label())
		require.NoError(t, err)
		l.Table = checked
		engine.Collect(checked.Init(comqueue.New(b, "evaluate")).
			Do(func(ctx *comqueue.ComContext) error {
				e, err := l.Open(ctx)
				if err != nil {
					return err
				}
				v, out := parametersFor(e.Dim), make([]float64, 1+e.Dim)
				called = true
				require.Zero(t, allocations(func() {
					clear(out)
					for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
						_ = e.Margins.Start(shard, v, nil)
						_ = e.Margins.Direction(shard, v, 0.5, nil)
					}
					_ = e.Fold(ctx.Shards(), out)
				}))
				return nil
			}).
			SetMaxIter(1).
			CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]float64, error) { return nil, nil })).
			Exec(), "none")
	}, engine.Parallelism(1), engine.Shards(8))
	require.True(t, called)
}
