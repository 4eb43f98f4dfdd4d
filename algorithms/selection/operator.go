package selection

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// noop has the methods of operators that need only Process.
type noop struct{}

func (noop) Open(*engine.Context) error                         { return nil }
func (noop) EndShard(*engine.Context, int, engine.Output) error { return nil }
func (noop) Finish(*engine.Context, engine.Output) error        { return nil }
func (noop) Close() error                                       { return nil }

// builderOf returns the builder of a dataset. Where the dataset is nil, no builder is there
// to record the error, so builderOf panics, which ends the job's function.
func builderOf(op string, d *engine.Dataset) *engine.Builder {
	if d == nil || d.Builder() == nil {
		panic(engine.Misuse{Err: fmt.Errorf("%s: the dataset is nil", op)})
	}
	d.Builder().MustBuild(op, "dataset")
	return d.Builder()
}

// schemaOf returns the columns of T.
func schemaOf[T any]() *arrow.Schema {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		panic(err) // T is a type of this package
	}
	return codec.Schema()
}

// emitRows emits values as one batch.
func emitRows[T any](c *engine.Context, shard int, out engine.Output, rows ...T) error {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return err
	}
	rec, err := codec.Record(c.Allocator, rows)
	if err != nil {
		return err
	}
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// readRows returns the rows of batches as values that share nothing with them.
func readRows[T any](recs []arrow.Record) ([]T, error) {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	var rows []T
	for _, rec := range recs {
		more, err := codec.Rows(rec)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}
