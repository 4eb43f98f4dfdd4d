package operators

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// emitting is a source that emits, for each shard, the batch that first returns and then the
// batch that make returns. emittingOperator is an operator that does the same.
type emitting struct {
	first, make func(c *engine.Context, shard int) engine.Batch
}

func (e emitting) emit(c *engine.Context, shard int, out engine.Output) error {
	if err := out.Emit(shard, e.first(c, shard)); err != nil {
		return err
	}
	return out.Emit(shard, e.make(c, shard))
}

func (emitting) Open(*engine.Context) error { return nil }
func (emitting) Close() error               { return nil }
func (e emitting) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	return e.emit(c, shard, out)
}

type emittingOperator struct {
	engine.BaseOperator
	emitting
}

func (emittingOperator) Open(*engine.Context) error { return nil }
func (emittingOperator) Close() error               { return nil }
func (e emittingOperator) Process(c *engine.Context, _, shard int, _ engine.Batch, out engine.Output) error {
	return e.emit(c, shard, out)
}

// TestWhatIsEmittedIsWhatWasDeclared requires an error if a user-defined source or operator
// emits batches that do not fit its Spec, whatever reads the batches.
func TestWhatIsEmittedIsWhatWasDeclared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	x, y := engine.Column{Name: "x", Type: "float64"}, engine.Column{Name: "y", Type: "float64"}
	declared := columnar.MustSchema(x, y)
	of := func(schema engine.Schema, values ...any) func(c *engine.Context, shard int) engine.Batch {
		return func(c *engine.Context, _ int) engine.Batch {
			rows, err := columnar.NewBatch(c.Allocator, schema, values...)
			require.NoError(t, err)
			return rows
		}
	}
	null := func(*engine.Context, int) engine.Batch {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrowrows.Arrow(declared))
		defer b.Release()
		b.Field(0).(*array.Float64Builder).AppendValues([]float64{1, 2}, nil)
		b.Field(1).(*array.Float64Builder).AppendValues([]float64{1, 2}, []bool{true, false})
		return arrowrows.Batch(b.NewRecord())
	}
	fine := of(declared, []float64{1, 2}, []float64{3, 4})
	for want, make := range map[string]func(c *engine.Context, shard int) engine.Batch{
		"": fine,
		`the batch emitted has a null in column "y", which is declared without`: null,
		"the batch emitted was released already: whoever keeps a batch calls Retain on it": func(c *engine.Context, shard int) engine.Batch {
			rows := fine(c, shard)
			rows.Release()
			return rows
		},
		`column 1 is "y float64" instead of "x float64"`: of(columnar.MustSchema(y, x), []float64{1, 2}, []float64{3, 4}),
		`column 2 is "y int64" instead of "y float64"`:   of(columnar.MustSchema(x, engine.Column{Name: "y", Type: "int64"}), []float64{1, 2}, []int64{3, 4}),
		"there are 1 columns instead of 2":               of(columnar.MustSchema(x), []float64{1, 2}),
		"column 2 is \"y float64 null\" instead of":      of(columnar.MustSchema(x, engine.Column{Name: "y", Type: "float64", Nullable: true}), []float64{1, 2}, []float64{3, 4}),
	} {
		for _, inOperator := range []bool{false, true} {
			for name, read := range map[string]func(d *engine.Dataset){
				"collect": func(d *engine.Dataset) { engine.Collect(d, "rows") },
				"csv":     func(d *engine.Dataset) { WriteCSV(d, path, CSVWriteOptions{}) },
				"group": func(d *engine.Dataset) {
					engine.Collect(PartitionByHash(d, "x"), "rows")
				},
			} {
				job := engine.Anonymous(func(b *engine.Builder) error {
					source := emitting{fine, fine}
					if !inOperator {
						source.make = make
					}
					d := b.Add(engine.Spec{Op: "Mine", Schema: declared, Source: func() engine.Source { return source }})
					if inOperator {
						d = b.Add(engine.Spec{Op: "Mine", Schema: declared, Inputs: []engine.Port{{From: d}}, Operator: func() engine.Operator { return emittingOperator{emitting: emitting{fine, make}} }})
					}
					read(d)
					return nil
				})
				result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(2), engine.Shards(2), engine.IfExists(engine.Replace))
				if want == "" {
					require.NoError(t, err, name)
					result.Release()
					continue
				}
				require.ErrorContains(t, err, want, name)
				require.ErrorContains(t, err, "operator Mine (emitted_test.go:", name)
			}
		}
	}
}

// releasing is an operator that releases batches that it borrows before it emits them. It
// begins with the batch of the given number.
type releasing struct {
	engine.BaseOperator
	from, seen int
}

func (o *releasing) Process(_ *engine.Context, _, shard int, rows engine.Batch, out engine.Output) error {
	if o.seen++; o.seen >= o.from {
		rows.Release()
	}
	return out.Emit(shard, rows)
}

// TestBatchesThatAreReleasedAndHandedOn requires an error that names the operator that emits a
// released batch, whichever batch it is and whatever reads it.
func TestBatchesThatAreReleasedAndHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	declared := columnar.MustSchema(engine.Column{Name: "x", Type: "float64"})
	fine := func(c *engine.Context, _ int) engine.Batch {
		rows, err := columnar.NewBatch(c.Allocator, declared, []float64{1, 2})
		require.NoError(t, err)
		return rows
	}
	for _, from := range []int{1, 2} {
		for name, read := range map[string]func(d *engine.Dataset){
			"collect": func(d *engine.Dataset) { engine.Collect(d, "rows") },
			"csv":     func(d *engine.Dataset) { WriteCSV(d, path, CSVWriteOptions{}) },
			"group":   func(d *engine.Dataset) { engine.Collect(PartitionByHash(d, "x"), "rows") },
		} {
			job := engine.Anonymous(func(b *engine.Builder) error {
				d := b.Add(engine.Spec{Op: "Source", Schema: declared, Source: func() engine.Source { return emitting{fine, fine} }})
				read(b.Add(engine.Spec{Op: "Mine", Schema: declared, Inputs: []engine.Port{{From: d}}, Operator: func() engine.Operator { return &releasing{from: from} }}))
				return nil
			})
			_, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1), engine.Shards(2), engine.IfExists(engine.Replace))
			require.ErrorContains(t, err, "the batch emitted was released already", name)
			require.ErrorContains(t, err, "operator Mine (emitted_test.go:", name)
		}
	}
}
