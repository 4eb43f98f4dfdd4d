package tests

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

const capturedRows = 2000

type oneValue struct{ Value int64 }

type withVector struct {
	ID     int64
	Vector []float64
}

var (
	leakyRows  = comqueue.PartitionedRows("leaky rows")
	leakyCount = shared.PerShard("count", shared.Float64s())
	leakyTotal = shared.Replicated("total", shared.Float64s())
)

// capturing has jobs whose functions change captured variables. Each run begins with new
// variables. So without a special check for such functions, it would depend on timing whether
// two runs differ.
var capturing = map[string]struct {
	at    string // name and line that the error must contain
	build func(d *engine.Dataset) *engine.Dataset
}{
	"counter": {"Map (check_leaks_test.go:", func(d *engine.Dataset) *engine.Dataset {
		var n atomic.Int64
		return operators.Map(d, func(int64) oneValue { return oneValue{n.Add(1)} })
	}},
	"running maximum": {"Map (check_leaks_test.go:", func(d *engine.Dataset) *engine.Dataset {
		var most int64
		return operators.Map(d, func(v int64) oneValue { most = max(most, v); return oneValue{most} })
	}},
	"seeded draws": {"Map (check_leaks_test.go:", func(d *engine.Dataset) *engine.Dataset {
		draws := rand.New(rand.NewPCG(1, 2))
		return operators.Map(d, func(int64) oneValue { return oneValue{draws.Int64()} })
	}},
	"counter behind an exchange": {"Map (check_leaks_test.go:", func(d *engine.Dataset) *engine.Dataset {
		n := int64(0)
		return operators.Map(operators.Rebalance(d), func(int64) oneValue { n++; return oneValue{n} })
	}},
	"counter by shard in a queue": {`queue "q", QueueClose (check_leaks_test.go:`, func(d *engine.Dataset) *engine.Dataset {
		n := 0.0
		return comqueue.New(d.Builder(), "q").InitWithPartitionedData(leakyRows, d).
			Do(func(ctx *comqueue.ComContext) error {
				return ctx.ForShards(func(shard int) error { n++; leakyCount.Put(ctx, shard, []float64{n}); return nil })
			}).
			SetMaxIter(2).
			CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]measured, error) {
				return []measured{{0, leakyCount.Get(ctx, shard)[0]}}, nil
			})).Exec()
	}},
	"sum in place of AllReduce": {`queue "q"`, func(d *engine.Dataset) *engine.Dataset {
		total := 0.0
		return comqueue.New(d.Builder(), "q").InitWithPartitionedData(leakyRows, d).
			Do(func(ctx *comqueue.ComContext) error {
				return ctx.ForShards(func(shard int) error {
					for _, v := range leakyRows.Get(ctx, shard).Ints("value") {
						total += float64(v)
					}
					return nil
				})
			}).
			Add(comqueue.Barrier()).
			Do(func(ctx *comqueue.ComContext) error { leakyTotal.Put(ctx, []float64{total}); return nil }).
			SetMaxIter(3).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]measured, error) {
				return []measured{{0, leakyTotal.Get(ctx)[0]}}, nil
			})).Exec()
	}},
}

// TestCheckFindsCapturedVariables requires that engine.Check finds the fault of every job of
// capturing, however often it is called.
func TestCheckFindsCapturedVariables(t *testing.T) {
	for name, leak := range capturing {
		t.Run(name, func(t *testing.T) {
			job := engine.Define("leak", func(b *engine.Builder, _ struct{}) error {
				engine.Collect(leak.build(operators.Range(b, 0, capturedRows)), "out")
				return nil
			})
			for range 2 {
				require.ErrorContains(t, engine.Check(context.Background(), job, struct{}{}), leak.at)
			}
		})
	}
}

// TestCheckOfWorkers requires that the option Workers sets the number of workers of the second
// run of engine.Check.
func TestCheckOfWorkers(t *testing.T) {
	builds := 0
	job := engine.Define("builds", func(b *engine.Builder, _ struct{}) error {
		builds++
		engine.Collect(operators.Range(b, 0, capturedRows), "out")
		return nil
	})
	counted := func(workers int) int {
		builds = 0
		require.NoError(t, engine.Check(context.Background(), job, struct{}{}, engine.Workers(workers)))
		return builds
	}
	require.Equal(t, 3, counted(5)-counted(2))
}

// TestCheckNamesWhoChangesRows checks jobs with functions that change rows that other operators
// read too. It requires an error that names the operator that changed the rows, and the shard.
// This includes operators that are called when a shard is complete, and operators whose rows
// are read after an exchange.
func TestCheckNamesWhoChangesRows(t *testing.T) {
	change := func(v withVector) withVector { v.Vector[0] /= 2; return v }
	keep := func(v withVector) withVector { return withVector{v.ID + 1, v.Vector} }
	for name, of := range map[string]struct {
		op    string
		build func(points *engine.Dataset) *engine.Dataset
	}{
		"Map": {"Map", func(points *engine.Dataset) *engine.Dataset { return operators.Map(points, change) }},
		"behind a filter": {"Map", func(points *engine.Dataset) *engine.Dataset {
			return operators.Map(operators.Filter(points, func(withVector) bool { return true }), change)
		}},
		"behind an exchange": {"Map", func(points *engine.Dataset) *engine.Dataset {
			return operators.Map(operators.Rebalance(points), change)
		}},
		"MapPartition": {"MapPartition", func(points *engine.Dataset) *engine.Dataset {
			return operators.MapPartition(points, func(s *operators.Shard[withVector], emit func(withVector)) error {
				for v := range s.Rows() {
					emit(change(v))
				}
				return nil
			})
		}},
		"MapWith": {"MapWith", func(points *engine.Dataset) *engine.Dataset {
			rows := operators.Range(points.Builder(), 0, 20)
			return operators.MapWith(rows, points, func(v int64, side []withVector) (withVector, error) { return change(side[0]), nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			job := engine.Define("in place", func(b *engine.Builder, _ struct{}) error {
				points := operators.Generate(b, 100, func(_ sharding.Random, i int64) withVector { return withVector{i, []float64{float64(i + 1)}} })
				engine.Collect(operators.Map(operators.Rebalance(points), keep), "before")
				changed := of.build(points).Named("culprit")
				engine.Collect(operators.Map(changed, keep), "changed")
				engine.Collect(operators.Map(points, keep), "after")
				return nil
			})
			err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
			require.ErrorContains(t, err, "the function changed the rows it was given")
			require.ErrorContains(t, err, of.op+` "culprit"`)
			require.Regexp(t, `shard \d`, err.Error())
			require.ErrorContains(t, err, "check_leaks_test.go")
		})
	}
}
