package tests

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// sideRow is a row of a side input, with a field that is not a column.
type sideRow struct {
	Key    int64
	Weight *float64
	Wide   []float64
	Note   string `column:"-"`
}

// wideRow is the row of the generated side input. The element type of its vector differs from
// the element type in sideRow, so reading it as a sideRow copies the vector.
type wideRow struct {
	Key    int64
	Weight *float64
	Wide   []float32
}

// TestCheckNamesWhoChangesSideRows requires that engine.Check finds functions that change a
// side input. All calls get the same slice of rows. Functions must not change its order, its
// elements, or anything that the elements point to.
func TestCheckNamesWhoChangesSideRows(t *testing.T) {
	for name, change := range map[string]func(v int64, side []sideRow){
		"order": func(_ int64, side []sideRow) {
			slices.SortFunc(side, func(a, b sideRow) int { return cmp.Compare(b.Key, a.Key) })
		},
		"element":   func(v int64, side []sideRow) { side[0].Key += v },
		"pointer":   func(_ int64, side []sideRow) { *side[1].Weight++ },
		"widened":   func(_ int64, side []sideRow) { side[2].Wide[1]++ },
		"no column": func(_ int64, side []sideRow) { side[3].Note = "seen" },
	} {
		t.Run(name, func(t *testing.T) {
			var at string
			job := engine.Define("side", func(b *engine.Builder, _ struct{}) error {
				side := operators.Generate(b, 9, func(_ sharding.Random, i int64) wideRow {
					w := float64(i)
					return wideRow{i, &w, []float32{1, float32(i)}}
				})
				f := func(v int64, side []sideRow) (int64, error) { change(v, side); return v, nil }
				changed := operators.MapWith(operators.Range(b, 1, 90), side, f)
				at = before()
				engine.Collect(changed, "out")
				return nil
			})
			err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
			require.ErrorContains(t, err, "operator MapWith ("+at+")")
			require.ErrorContains(t, err, "the function changed the rows it was given")
			require.ErrorContains(t, err, "slices.Clone")
		})
	}
}

// TestBatchesOfASideInputKeepTheirOrder requires that each call gets the batches of a side
// input in a new slice, whose order the function may change.
func TestBatchesOfASideInputKeepTheirOrder(t *testing.T) {
	job := engine.Define("side", func(b *engine.Builder, _ struct{}) error {
		reverse := func(_ *engine.Context, rows engine.Batch, side []engine.Batch) (engine.Batch, error) {
			for i, s := range side {
				if v, err := columnar.Get[[]int64](s, s.Schema().Column(0).Name); err != nil || v[0] != int64(i) {
					return engine.Batch{}, fmt.Errorf("batch %d is not at its index", i)
				}
			}
			slices.Reverse(side)
			side[0] = engine.Batch{}
			rows.Retain()
			return rows, nil
		}
		engine.Collect(operators.MapBatchWith(operators.Range(b, 0, 90), operators.Range(b, 0, checkShards), engine.Schema{}, reverse), "out")
		return nil
	})
	require.NoError(t, engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards)))
}

// TestCheckNamesPartitionersThatChangeRows requires that engine.Check finds a partition
// function that changes rows.
func TestCheckNamesPartitionersThatChangeRows(t *testing.T) {
	var at string
	job := engine.Define("placed", func(b *engine.Builder, _ struct{}) error {
		points := operators.Generate(b, 100, func(_ sharding.Random, i int64) withVector { return withVector{i, []float64{float64(i + 1)}} })
		place := func(v withVector, shards int) int { v.Vector[0] += 100; return int(v.ID) % shards }
		placed := operators.PartitionByCustom(points, place)
		at = before()
		engine.Collect(placed, "placed")
		engine.Collect(operators.Map(points, func(v withVector) withVector { return withVector{v.ID, []float64{v.Vector[0]}} }), "sibling")
		return nil
	})
	err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
	require.ErrorContains(t, err, "operator PartitionByCustom ("+at+")")
	require.ErrorContains(t, err, "the function changed the rows it was given")
}

// releasing is a faulty operator that releases a batch that it only borrowed.
type releasing struct{}

func (releasing) Open(*engine.Context) error                         { return nil }
func (releasing) EndShard(*engine.Context, int, engine.Output) error { return nil }
func (releasing) Finish(*engine.Context, engine.Output) error        { return nil }
func (releasing) Close() error                                       { return nil }
func (o releasing) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if err := out.Emit(shard, arrowrows.Batch(rows)); err != nil {
		return err
	}
	rows.Release()
	return nil
}

// TestCheckNamesWhoReleasesRows requires that engine.Check finds an operator that releases a
// batch that it only borrowed.
func TestCheckNamesWhoReleasesRows(t *testing.T) {
	job := engine.Define("released", func(b *engine.Builder, _ struct{}) error {
		rows := operators.Range(b, 0, 100)
		engine.Collect(b.Add(engine.Spec{Op: "Culprit", Schema: rows.Schema(), Inputs: []engine.Port{{From: rows}}, Operator: func() engine.Operator { return releasing{} }}), "out")
		engine.Collect(operators.Count(rows), "count")
		return nil
	})
	err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
	require.ErrorContains(t, err, "operator Culprit (check_rows_test.go:")
	require.ErrorContains(t, err, "released a batch that it had borrowed")
}
