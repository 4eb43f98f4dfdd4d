package tests

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// joinable is a row with a slice. The engine reads the slice without copying it, so a function
// that changes the slice changes memory that other functions read too.
type joinable struct {
	Key    int64
	Vector []float64
}

// TestCheckNamesJoinsThatChangeRows requires that engine.Check finds functions of joins that
// change their rows. Rows of both inputs of a join are borrowed by other calls and operators
// too.
func TestCheckNamesJoinsThatChangeRows(t *testing.T) {
	for name, c := range map[string]struct {
		op    string
		build func(left, right *engine.Dataset) *engine.Dataset
	}{
		"left": {"Join", func(left, right *engine.Dataset) *engine.Dataset {
			return operators.Join(left, right, operators.On("key"), operators.Inner, func(l, _ *joinable) int64 { l.Vector[0]++; return 0 })
		}},
		"right": {"Join", func(left, right *engine.Dataset) *engine.Dataset {
			return operators.Join(left, right, operators.On("key"), operators.Full, func(_, r *joinable) int64 {
				if r != nil {
					r.Vector[0]++
				}
				return 0
			})
		}},
		"group": {"CoGroup", func(left, right *engine.Dataset) *engine.Dataset {
			return operators.CoGroup(left, right, operators.On("key"), func(_, right *operators.Group[joinable], _ func(int64)) error {
				for r := range right.Rows() {
					r.Vector[0]++
				}
				return nil
			})
		}},
		"table": {"MapLookup", func(left, right *engine.Dataset) *engine.Dataset {
			return operators.MapLookup(left, right, func(r joinable) int64 { return r.Key },
				func(l joinable, table *operators.Lookup[int64, joinable]) (int64, error) {
					if r, ok := table.Get(l.Key); ok {
						r.Vector[0]++
					}
					return 0, nil
				})
		}},
		"leak": {"Join", func(left, right *engine.Dataset) *engine.Dataset {
			n := int64(0)
			return operators.Join(left, right, operators.On("key"), operators.Left, func(_, _ *joinable) int64 { n++; return n })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			job := engine.Define("join", func(b *engine.Builder, _ struct{}) error {
				rows := func(n int64) *engine.Dataset {
					return operators.Generate(b, n, func(_ sharding.Random, i int64) joinable { return joinable{i % 50, []float64{float64(i)}} })
				}
				engine.Collect(c.build(rows(100), rows(70)), "out")
				return nil
			})
			err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
			require.ErrorContains(t, err, c.op+" (check_joins_test.go:")
			if name == "leak" {
				require.ErrorContains(t, err, "is not deterministic")
			} else {
				require.ErrorContains(t, err, "the function changed the rows it was given")
			}
		})
	}
}

// TestCheckPassesJoins requires that engine.Check accepts joins whose functions are correct.
func TestCheckPassesJoins(t *testing.T) {
	job := engine.Define("join", func(b *engine.Builder, _ struct{}) error {
		rows := func(n int64) *engine.Dataset {
			return operators.Generate(b, n, func(_ sharding.Random, i int64) joinable { return joinable{i % 50, []float64{float64(i)}} })
		}
		left, right := rows(100), rows(70)
		for kind := operators.Inner; kind <= operators.Full; kind++ {
			engine.Collect(operators.Join(left, right, operators.On("key"), kind, func(l, r *joinable) joinable {
				if l == nil {
					return *r
				}
				l.Vector = append([]float64{1}, l.Vector...) // a new slice, so the row is not changed
				return *l
			}), kind.String())
		}
		engine.Collect(operators.SemiJoin(left, right, operators.On("key")), "semi")
		engine.Collect(operators.AntiJoin(left, right, operators.On("key")), "anti")
		engine.Collect(operators.Distinct(left, "key"), "distinct")
		engine.Collect(operators.CoGroup(left, right, operators.On("key"),
			func(left, right *operators.Group[joinable], emit func(int64)) error {
				emit(left.Len() - right.Len())
				return nil
			}), "group")
		return nil
	})
	require.NoError(t, engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards)))
}
