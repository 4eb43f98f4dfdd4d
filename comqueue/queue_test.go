package comqueue_test

import (
	"context"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

var schema = arrow.NewSchema([]arrow.Field{{Name: "value", Type: arrow.PrimitiveTypes.Float64}}, nil)

// numbers is a source that distributes n values to the shards.
type numbers struct {
	n     int
	value func(i int) float64
}

func (s numbers) Open(*engine.Context) error { return nil }
func (s numbers) Close() error               { return nil }

func (s numbers) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	builder := array.NewRecordBuilder(c.Allocator, schema)
	defer builder.Release()
	flush := func() error {
		rows := builder.NewRecord()
		defer rows.Release()
		return out.Emit(shard, arrowrows.Batch(rows))
	}
	own := sharding.Split(s.n, c.Shards, shard)
	for i := own.Lo; i < own.Hi; i++ {
		builder.Field(0).(*array.Float64Builder).Append(s.value(i))
		if (i-own.Lo+1)%c.BatchRows == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// dataset adds a source of n values.
func dataset(b *engine.Builder, n int, value func(i int) float64) *engine.Dataset {
	return b.Add(engine.Spec{Op: "Numbers", Schema: arrowrows.Schema(schema), Source: func() engine.Source { return numbers{n, value} }})
}

type row struct{ Value float64 }

func TestSumOverShards(t *testing.T) {
	data := comqueue.PartitionedRows("data")
	sum := shared.Scratch[[]float64]("sum")
	job := engine.Define("sum", func(b *engine.Builder, n int) error {
		rows := comqueue.New(b, "sum").
			InitWithPartitionedData(data, dataset(b, n, func(i int) float64 { return float64(i) })).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.StepNo() == 1 {
					sum.Put(ctx, make([]float64, 1))
				}
				return nil
			}).
			Add(comqueue.ForEachShard(sum, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for _, v := range data.Get(ctx, shard).Floats("value") {
					out[0] += v
				}
				return nil
			})).
			Add(comqueue.AllReduce(sum)).
			SetMaxIter(3).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
				return []row{{sum.Get(ctx)[0]}}, nil
			})).
			Exec()
		engine.Collect(rows, "sum")
		return nil
	})
	for _, n := range []int{0, 1, 7, 1000} {
		for _, p := range []int{1, 2, 3, 8} {
			for _, workers := range append([]int{0}, asWorkers(p)...) {
				result, err := engine.Run(context.Background(), job, n, engine.Parallelism(p), engine.Workers(workers))
				require.NoError(t, err)
				rows, err := engine.Rows[row](result, "sum")
				require.NoError(t, err)
				require.Equal(t, []row{{float64(n*(n-1)) / 2}}, rows)
				result.Release()
			}
		}
	}
}
