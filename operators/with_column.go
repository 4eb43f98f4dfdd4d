package operators

import (
	"fmt"
	"reflect"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// WithColumn adds a column with the values that f computes from each row, and keeps all other
// columns. If d already has a column of that name, the new column replaces it at the same
// index. T is a number, bool, string, []byte, time.Time, a vector, or a pointer to one of
// these; a pointer makes the column nullable.
//
// f borrows the row for the call, as in Map.
func WithColumn[In, T any](d *engine.Dataset, name string, f func(In) T) *engine.Dataset {
	const op = "WithColumn"
	b := builderOf(op, d)
	in, ok := inputRows[In](op, d)
	value, okValue := valueColumn[T](op, b)
	if name == "" {
		b.Errorf("%s: the new column has no name", op)
		ok = false
	}
	if !ok || !okValue || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	field := value.Schema().Field(0)
	field.Name = name
	schema, at := withField(arrowrows.Arrow(d.Schema()), field)
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "column", Value: name}},
		Schema:   arrowrows.Schema(schema),
		Inputs:   []engine.Port{{From: d, Use: replacing(keeps(d, reads(in.Schema()).Reads...), at)}},
		RowByRow: true,
		Func:     f,
		Operator: func() engine.Operator {
			return &columnAdder[In, T]{f: f, schema: schema, at: at, in: rowReader[In]{codec: in}, codec: value}
		},
	})
}

// valueColumn returns the codec of a single column with values of T. If T cannot be the type of
// a column, it records a misuse and returns false.
func valueColumn[T any](op string, b *engine.Builder) (*batch.Codec[T], bool) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() && t != reflect.TypeFor[batch.SparseVector]() {
		b.Errorf("%s: %v has fields and is not one column; use Map for several columns", op, t)
		return nil, false
	}
	return outputRows[T](op, b)
}

// columnAdder is the operator behind WithColumn.
type columnAdder[In, T any] struct {
	engine.BaseOperator
	f      func(In) T
	schema *arrow.Schema
	at     int // index of the new column
	in     rowReader[In]
	codec  *batch.Codec[T]

	app   *batch.Appender[T]
	value T             // value of the current row; a field, as a local variable would escape to the heap
	cols  []arrow.Array // working space
}

func (o *columnAdder[In, T]) Open(c *engine.Context) error {
	o.app = o.codec.Appender(c.Allocator)
	return nil
}

func (o *columnAdder[In, T]) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.in.reset(rows); err != nil {
		return err
	}
	for i := range o.in.len() {
		row, err := o.in.read(i)
		if err != nil {
			return err
		}
		o.value = o.f(*row)
		if err := o.app.AppendFrom(&o.value); err != nil {
			return o.in.fail(i, fmt.Errorf("the new column %q: %w", o.schema.Field(o.at).Name, err))
		}
	}
	made := o.app.NewRecord()
	defer made.Release()
	o.cols = append(o.cols[:0], rows.Columns()...)
	if o.at == len(o.cols) {
		o.cols = append(o.cols, nil)
	}
	o.cols[o.at] = made.Column(0)
	return emitColumns(shard, o.schema, o.cols, rows.NumRows(), out)
}

func (o *columnAdder[In, T]) EndShard(*engine.Context, int, engine.Output) error {
	o.in.endShard()
	return nil
}

func (o *columnAdder[In, T]) Close() error {
	if o.app != nil {
		o.app.Release()
	}
	return nil
}
