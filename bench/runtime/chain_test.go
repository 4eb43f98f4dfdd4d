package runtime

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// scale returns what every operator of the chains computes for a row.
func scale(r row) row { return row{r.Key, r.X*0.5 + r.Y, r.Y} }

// scaleBatch returns scale of every row of a batch. It makes a new column x and shares the two
// other columns with the input.
func scaleBatch(c *engine.Context, rows engine.Batch) (engine.Batch, error) {
	return arrowrows.Batch(scaled(c.Allocator, arrowrows.Record(rows))), nil
}

func scaled(mem memory.Allocator, rows arrow.Record) arrow.Record {
	x, y := rows.Column(1).(*array.Float64).Float64Values(), rows.Column(2).(*array.Float64).Float64Values()
	buffer := memory.NewResizableBuffer(mem)
	defer buffer.Release()
	buffer.Resize(arrow.Float64Traits.BytesRequired(len(x)))
	out := arrow.Float64Traits.CastFromBytes(buffer.Bytes())
	for i := range out {
		out[i] = x[i]*0.5 + y[i]
	}
	data := array.NewData(arrow.PrimitiveTypes.Float64, len(x), []*memory.Buffer{nil, buffer}, nil, 0, 0)
	defer data.Release()
	column := array.NewFloat64Data(data)
	defer column.Release()
	return array.NewRecord(rows.Schema(), []arrow.Array{rows.Column(0), column, rows.Column(2)}, rows.NumRows())
}

// BenchmarkChain moves rows through chains of operators at parallelism 1. There are three kinds
// of operators: operators that compute nothing, operators that compute a column for each batch,
// and operators that compute row by row. The yardstick is a loop that computes the same from
// the same rows. It processes slices for the operators on batches, and structs for the
// operators on rows.
func BenchmarkChain(b *testing.B) {
	rec, rows := someRows()
	kinds := []struct {
		name    string
		batches int // number of batches per shard
		add     func(d *engine.Dataset) *engine.Dataset
		plain   func(operators int) // runs the yardstick for one batch
	}{
		{"pass", 800, func(d *engine.Dataset) *engine.Dataset {
			return d.Builder().Add(engine.Spec{Op: "Pass", Schema: d.Schema(), Inputs: []engine.Port{{From: d}},
				Operator: func() engine.Operator { return pass{} }})
		}, plainPass(rec)},
		{"MapBatch", 80, func(d *engine.Dataset) *engine.Dataset { return operators.MapBatch(d, engine.Schema{}, scaleBatch) }, plainBatch(rec)},
		{"Map", 8, func(d *engine.Dataset) *engine.Dataset { return operators.Map(d, scale) }, plainRows(rows)},
	}
	for _, kind := range kinds {
		for _, length := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/operators=%d", kind.name, length), func(b *testing.B) {
				total := int64(shardCount * kind.batches * batchRows)
				var p pairs
				for b.Loop() {
					took := measureRun(b, total, func(eb *engine.Builder) {
						d := ready(eb, rec, kind.batches, 0)
						for range length {
							d = kind.add(d)
						}
						drop(d)
					}, engine.Parallelism(1))
					p.add(took, since(func() {
						for range shardCount * kind.batches {
							kind.plain(length)
						}
					}))
				}
				p.report(b, total, "loop")
				b.ReportMetric(float64(median(p.took))/float64(total)/float64(length), "ns/row·operator")
			})
		}
	}
}

// plainPass returns the yardstick for operators that compute nothing. It calls one function
// value for each operator.
func plainPass(rec arrow.Record) func(operators int) {
	var sum int64
	step := func(rows arrow.Record) arrow.Record {
		sum += rows.NumRows()
		return rows
	}
	return func(operators int) {
		rows := rec
		for range operators {
			rows = step(rows)
		}
		sink.Store(uint64(sum))
	}
}

// plainBatch returns the yardstick for operators on batches. It makes one new slice for each
// operator.
func plainBatch(rec arrow.Record) func(operators int) {
	x0, y := rec.Column(1).(*array.Float64).Float64Values(), rec.Column(2).(*array.Float64).Float64Values()
	return func(operators int) {
		x := x0
		for range operators {
			out := make([]float64, len(x))
			for i := range out {
				out[i] = x[i]*0.5 + y[i]
			}
			x = out
		}
		sink.Store(uint64(x[len(x)-1]))
	}
}

// plainRows returns the yardstick for operators on rows. It calls one function value for each
// operator and row.
func plainRows(rows []row) func(operators int) {
	out := make([]row, len(rows))
	step := scale
	return func(operators int) {
		for i, r := range rows {
			for range operators {
				r = step(r)
			}
			out[i] = r
		}
		sink.Store(uint64(out[len(out)-1].Key))
	}
}
