package comqueue

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Closer makes the rows of a queue from its state, after the last superstep, on subtask 0.
// Output and OutputBatches return Closers.
type Closer interface{ closer() (closer, error) }

// ShardCloser makes rows per shard, after the last superstep, on the subtask that owns the
// shard. ShardOutput and ShardOutputBatches return ShardClosers.
type ShardCloser interface{ shardCloser() (closer, error) }

// closer is the content of a Closer or ShardCloser whose arguments have been checked.
type closer struct {
	schema   *arrow.Schema
	function any
	perShard bool
	// start returns, for one subtask, the function that emits the rows of a shard.
	start func(t *engine.Context) (emit func(ctx *ComContext, shard int, out func(arrow.Record) error) error, release func())
}

// Output returns a Closer that makes rows from the structs that f returns. The fields of the
// structs are columns.
func Output[T any](f func(ctx *ComContext) ([]T, error)) Closer {
	return structOutput[T]{function: f, rows: func(ctx *ComContext, _ int) ([]T, error) { return f(ctx) }, isNil: f == nil}
}

// ShardOutput returns a ShardCloser that makes the rows of a shard from the structs that f
// returns. The fields of the structs are columns.
func ShardOutput[T any](f func(ctx *ComContext, shard int) ([]T, error)) ShardCloser {
	return structOutput[T]{function: f, rows: f, isNil: f == nil}
}

type structOutput[T any] struct {
	function any
	rows     func(ctx *ComContext, shard int) ([]T, error)
	isNil    bool
}

func (o structOutput[T]) closer() (closer, error) {
	if o.isNil {
		return closer{}, fmt.Errorf("the function that gives the queue's rows is nil")
	}
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return closer{}, err
	}
	start := func(t *engine.Context) (func(*ComContext, int, func(arrow.Record) error) error, func()) {
		appender := codec.Appender(t.Allocator)
		emit := func(ctx *ComContext, shard int, out func(arrow.Record) error) error {
			rows, err := o.rows(ctx, shard)
			if err != nil {
				return err
			}
			for i, row := range rows {
				if err := appender.Append(row); err != nil {
					return fmt.Errorf("row %d that the queue gives: %w", i, err)
				}
				if appender.Len() == t.BatchRows || i == len(rows)-1 {
					if err := emitOwned(appender.NewRecord(), out); err != nil {
						return err
					}
				}
			}
			return nil
		}
		return emit, appender.Release
	}
	return closer{schema: codec.Schema(), function: o.function, start: start}, nil
}

func (o structOutput[T]) shardCloser() (closer, error) { return o.closer() }

// emitOwned calls out with rows and then releases them.
func emitOwned(rows arrow.Record, out func(arrow.Record) error) error {
	defer rows.Release()
	return out(rows)
}

// OutputBatches returns a Closer that makes rows from batches that have the given schema. f
// calls emit for each batch. emit does not take ownership: f must release the batch. If emit
// returns an error, the job fails, whatever f returns.
func OutputBatches(schema engine.Schema, f func(ctx *ComContext, emit func(engine.Batch) error) error) Closer {
	return batchOutput{schema: schema, function: f, isNil: f == nil,
		rows: func(ctx *ComContext, _ int, emit func(engine.Batch) error) error { return f(ctx, emit) }}
}

// ShardOutputBatches returns a ShardCloser that makes the rows of a shard from batches that
// have the given schema. See OutputBatches.
func ShardOutputBatches(schema engine.Schema, f func(ctx *ComContext, shard int, emit func(engine.Batch) error) error) ShardCloser {
	return batchOutput{schema: schema, function: f, isNil: f == nil, rows: f}
}

type batchOutput struct {
	schema   engine.Schema
	function any
	isNil    bool
	rows     func(ctx *ComContext, shard int, emit func(engine.Batch) error) error
}

func (o batchOutput) closer() (closer, error) {
	if o.isNil || o.schema.IsZero() {
		return closer{}, fmt.Errorf("the schema or the function that gives the queue's rows is missing")
	}
	start := func(*engine.Context) (func(*ComContext, int, func(arrow.Record) error) error, func()) {
		emit := func(ctx *ComContext, shard int, out func(arrow.Record) error) (err error) {
			var emitErr error // the first error of emit, which the function may ignore
			returned := false
			defer func() {
				switch {
				case emitErr == nil:
				case returned:
					err = withCause(emitErr, err)
				default:
					panic(emitErr) // replaces the current panic, which came later
				}
			}()
			err = o.rows(ctx, shard, func(given engine.Batch) error {
				if emitErr == nil {
					emitErr = o.emit(given, out)
				}
				return emitErr
			})
			returned = true
			return err
		}
		return emit, func() {}
	}
	return closer{schema: arrowrows.Arrow(o.schema), function: o.function, start: start}, nil
}

// emit calls out with the rows of a batch that has the declared schema.
func (o batchOutput) emit(given engine.Batch, out func(arrow.Record) error) error {
	if given.IsZero() {
		return errors.New("the queue gives a zero Batch, which has no schema")
	}
	if !given.Schema().Equal(o.schema) {
		return fmt.Errorf("the queue gives rows of schema %v, declared was %v", given.Schema(), o.schema)
	}
	rows := arrowrows.Record(given)
	if err := batch.ValidateText(rows); err != nil {
		return fmt.Errorf("the queue gives a batch with an error: %w", err)
	}
	return out(rows)
}

func (o batchOutput) shardCloser() (closer, error) { return o.closer() }
