package operators

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

type made struct {
	Of, K int64
	X     [2]float64
}

// makeRows emits rows for two of every three shards. Later shards have more rows.
func makeRows(shard, shards int, emit func(made)) error {
	if shard%3 == 1 {
		return nil
	}
	for k := range shard * shards {
		emit(made{int64(shard), int64(k), [2]float64{float64(k), 0.5}})
	}
	return nil
}

func TestFromShards(t *testing.T) {
	var want []string
	for shard := range testShards {
		for k := 0; k < shard*testShards && shard%3 != 1; k++ {
			want = append(want, line(shard, shard, k, fmt.Sprintf("[%d 0.5]", k)))
		}
	}
	requireRows(t, "of int64 | k int64 | x vector[2]", want, func(b *engine.Builder) *engine.Dataset {
		return FromShards(b, makeRows)
	})
	requireRows(t, "value int64", nil, func(b *engine.Builder) *engine.Dataset {
		return FromShards(b, func(int, int, func(int64)) error { return nil })
	})
}

func TestFromShardsFailures(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		// After emit has failed, only deferred functions of the function still run.
		var ended atomic.Bool
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return FromShards(b, func(shard, _ int, emit func([]byte)) error {
				emit(nil)
				if shard == 3 {
					return errBoom
				}
				return nil
			})
		}, opts...)
		require.ErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "operator FromShards (from_shards_test.go:")
		require.ErrorContains(t, err, "shard 3: boom")

		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return FromShards(b, func(shard, _ int, emit func(string)) error {
				emit("right")
				if shard == 3 {
					defer ended.Store(true)
					emit("\xff")
					t.Error("emit returned")
				}
				return nil
			})
		}, opts...)
		require.ErrorContains(t, err, `shard 3: row 1 of the shard: column "value" (string): `)
		require.True(t, ended.Load())

		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return FromShards(b, func(shard, _ int, emit func(int)) error {
				if emit(1); shard == 3 {
					panic("user code gave up")
				}
				return nil
			})
		}, opts...)
		require.ErrorContains(t, err, "shard 3: panic: user code gave up")
		var panicked *engine.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Contains(t, panicked.Frames[0], "from_shards_test.go:")
	})
	var kept func(int64)
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return FromShards(b, func(_, _ int, emit func(int64)) error {
			if kept != nil {
				kept(1)
			}
			kept = emit
			return nil
		})
	}, engine.Parallelism(1))
	require.ErrorContains(t, err, "a row was emitted outside the call that may emit it")
}

// TestFromShardsEndsWithTheRun requires that the call of a function that never returns ends
// when it emits the next row after the end of the run, even if the function recovers from
// panics.
func TestFromShardsEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var began, deferred, rows atomic.Int64
		endless := func(shard, _ int, emit func(int64)) error {
			began.Add(1)
			defer deferred.Add(1)
			for i := int64(0); ; i++ {
				if rows.Add(1) == 50_000 {
					cancel(errBoom)
				}
				emit(i)
			}
		}
		_, err := engine.Run(ctx, engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(Count(FromShards(b, endless)), "n")
			return nil
		}), struct{}{}, engine.Shards(8), engine.Parallelism(3), engine.BatchRows(7))
		require.ErrorIs(t, err, errBoom)
		require.Positive(t, began.Load())
		require.LessOrEqual(t, began.Load(), int64(3), "each of the 3 subtasks must call the function at most once")
		require.Equal(t, began.Load(), deferred.Load())

		// The run must also end if the function recovers from the panic of emit and continues.
		stubborn := func(shard, _ int, emit func(string)) error {
			func() {
				defer func() { _ = recover() }()
				emit("\xff")
			}()
			emit("right")
			t.Error("emit returned")
			return nil
		}
		_, err = engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(FromShards(b, stubborn), "n")
			return nil
		}), struct{}{}, engine.Shards(1))
		require.ErrorContains(t, err, "shard 0: row 0 of the shard")
	})
}

func TestFromShardsMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return FromShards[made](b, nil) }, "FromShards: the function is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return FromShards(nil, makeRows) }, "the builder is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FromShards(b, func(int, int, func(chan int)) error { return nil })
	}, "from_shards_test.go:", "FromShards: ", "chan int")
}

// TestFromShardsIsKnownByItsFunction requires that the graph's fingerprint depends on the
// linker symbol of the function.
func TestFromShardsIsKnownByItsFunction(t *testing.T) {
	of := func(f func(int, int, func(int64)) error) string {
		g, err := engine.BuildGraph(engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(FromShards(b, f), "out")
			return nil
		}), struct{}{})
		require.NoError(t, err)
		return g.Fingerprint()
	}
	one := func(int, int, func(int64)) error { return nil }
	require.Equal(t, of(one), of(one))
	require.NotEqual(t, of(one), of(func(int, int, func(int64)) error { return nil }))
}
