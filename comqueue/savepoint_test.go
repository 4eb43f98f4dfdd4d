package comqueue_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// savedRun runs a queue in which key counts the supersteps until it is lost in superstep 4, and returns the
// place with its checkpoints.
func savedRun(t *testing.T, key shared.Key[int]) (place string) {
	place = filepath.Join(t.TempDir(), "savepoint")
	build := func(b *engine.Builder) *engine.Dataset {
		return counting(b, func(ctx *comqueue.ComContext) error { return nil }, key, comqueue.Named("count", comqueue.Do(func(ctx *comqueue.ComContext) error {
			if ctx.StepNo() == 4 {
				return errLost
			}
			key.Put(ctx, key.Get(ctx)+1)
			return nil
		})))
	}
	_, _, err := runOnce(t, build, engine.CheckpointDir(place), engine.CheckpointSupersteps(1))
	require.ErrorIs(t, err, errLost)
	return place
}

// counting adds a queue of six supersteps that calls first and then the stage count, and whose row is what is
// under key.
func counting(b *engine.Builder, first func(ctx *comqueue.ComContext) error, key shared.Key[int], count comqueue.Stage) *engine.Dataset {
	return comqueue.New(b, "counts").
		Begin(func(ctx *comqueue.ComContext) error { key.Put(ctx, 0); return nil }).
		Do(first).Add(count).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return []row{{float64(key.Get(ctx))}}, nil })).
		SetMaxIter(6).Exec()
}

// TestSavepointOfAChangedProgram requires that a queue continues from a savepoint if functions without names of
// their own were renamed, and that an error says which named stage differs.
func TestSavepointOfAChangedProgram(t *testing.T) {
	rate := shared.Replicated("rate", shared.Int())
	place := savedRun(t, rate)
	count := comqueue.Do(func(ctx *comqueue.ComContext) error { rate.Put(ctx, rate.Get(ctx)+1); return nil })
	for want, build := range map[string]func(b *engine.Builder) *engine.Dataset{
		"": func(b *engine.Builder) *engine.Dataset { return counting(b, renamed, rate, count) },
		`queue "counts" has other stages: stage 3 was Compute "count", and is Compute "tally" now`: func(b *engine.Builder) *engine.Dataset {
			return counting(b, renamed, rate, comqueue.Named("tally", count))
		},
		`stage 3 was Compute "count", and is Barrier now; Compute "count" is stage 4 now`: func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "counts").Do(renamed).Add(comqueue.Barrier()).Add(comqueue.Named("count", count)).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(6).Exec()
		},
	} {
		got, _, err := runOnce(t, build, engine.FromSavepoint(place))
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []row{{6}}, got)
	}
}

func renamed(*comqueue.ComContext) error { return nil }

// TestSavepointWithoutAKey requires that the error about a key that the savepoint does not have names the object
// that no key has used, and that a stage can put an object under the new key.
func TestSavepointWithoutAKey(t *testing.T) {
	rate, pace := shared.Replicated("rate", shared.Int()), shared.Replicated("pace", shared.Int())
	place := savedRun(t, rate)
	count := comqueue.Do(func(ctx *comqueue.ComContext) error { pace.Put(ctx, pace.Get(ctx)+1); return nil })
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset { return counting(b, renamed, pace, count) }, engine.FromSavepoint(place))
	require.ErrorContains(t, err, `get of replicated key "pace"`)
	require.ErrorContains(t, err, `never put; the state from which the queue continues has "rate", which no key has used so far`)
	added := func(ctx *comqueue.ComContext) error {
		if !pace.Has(ctx) {
			pace.Put(ctx, 100*rate.Get(ctx))
		}
		return nil
	}
	got, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset { return counting(b, added, pace, count) }, engine.FromSavepoint(place))
	require.NoError(t, err)
	require.Equal(t, []row{{303}}, got)
}
