package model

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// EncodedRow is the row of a dataset that holds a model, as training queues output it.
type EncodedRow struct {
	Model string `column:"model"`
}

// Dataset makes a model a dataset of the job: one row with the file in Column, as training
// returns it. An error of Encode is reported as an error of the job.
func Dataset(b *engine.Builder, m Model) *engine.Dataset {
	const op = "model.Dataset"
	if m == nil {
		return Refuse(b, op, errors.New("the model is nil"))
	}
	text, err := m.Encode()
	if err != nil {
		return Refuse(b, op, err)
	}
	return operators.FromSlice(b, []EncodedRow{{unsafe.String(unsafe.SliceData(text), len(text))}}).Named(m.Kind() + " model")
}

// Encoded returns the file of the model that was collected under a name. The Decode of its kind
// reads it.
func Encoded(result *engine.Result, name string) ([]byte, error) {
	rows, err := engine.Rows[EncodedRow](result, name)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("result %q has %d rows: a model is one row, as training gives it", name, len(rows))
	}
	text := rows[0].Model // a copy, which the caller owns
	return unsafe.Slice(unsafe.StringData(text), len(text)), nil
}

// Collected reads the model that was collected under a name by the Decode of its kind.
func Collected[M any](result *engine.Result, name string, decode func(file []byte) (M, error)) (m M, err error) {
	file, err := Encoded(result, name)
	if err != nil {
		return m, err
	}
	if m, err = decode(file); err != nil {
		var none M
		return none, fmt.Errorf("result %q: %w", name, err)
	}
	return m, nil
}

// Side returns the file of the model that an operator received by broadcast at a port. It is
// for operators that are not added by Apply.
func Side(c *engine.Context, port int) ([]byte, error) { return FileIn(c.Side(port)...) }

// FileIn returns the file of the model in batches. They must have one row, as training returns
// it.
func FileIn(batches ...engine.Batch) ([]byte, error) {
	var file []byte
	for _, rows := range batches {
		i, err := batch.FindColumn(arrowrows.Arrow(rows.Schema()), Column)
		if err != nil {
			return nil, fmt.Errorf("the model: %w", err)
		}
		column, ok := arrowrows.Record(rows).Column(i).(*array.String)
		if !ok || column.NullN() > 0 {
			return nil, fmt.Errorf("the model's column %q is not text without nulls", Column)
		}
		for row := range column.Len() {
			if file != nil {
				return nil, fmt.Errorf("the model has more than one row")
			}
			file = []byte(column.Value(row))
		}
	}
	if file == nil {
		return nil, fmt.Errorf("the model has no row")
	}
	return file, nil
}

// BuilderOf returns the builder of a dataset. Where the dataset is nil there is no builder that
// could record the mistake: then the job's function ends by a panic that names the operator.
func BuilderOf(op string, d *engine.Dataset) *engine.Builder {
	if d == nil || d.Builder() == nil {
		panic(engine.Misuse{Err: fmt.Errorf("%s: the dataset is nil", op)})
	}
	d.Builder().MustBuild(op, "dataset")
	return d.Builder()
}

// Begin begins a training: it returns the builder of the rows. If training is impossible, it
// also returns the dataset that training must return then; otherwise refused is nil. A problem,
// such as one with the parameters, is reported under the name op.
func Begin(op string, rows *engine.Dataset, problem error) (b *engine.Builder, refused *engine.Dataset) {
	b = BuilderOf(op, rows)
	switch {
	case problem != nil:
		refused = Refuse(b, op, problem)
	case rows.Poisoned():
		refused = rows
	}
	return b, refused
}

// Refuse reports a problem under the name op, with the line of the caller. It returns the
// dataset of an operator that cannot be added.
func Refuse(b *engine.Builder, op string, problem error) *engine.Dataset {
	b.Errorf("%s: %w", op, problem)
	return b.Poisoned(op)
}

// withColumns returns the schema with columns appended. If replace is set, they take the places
// of columns of the same names. at has the index of each.
func withColumns(schema *arrow.Schema, columns []engine.Column, replace bool) (made *arrow.Schema, at []int, err error) {
	fields := append([]arrow.Field(nil), schema.Fields()...)
	for i, c := range columns {
		dt, err := batch.ParseType(c.Type)
		if err != nil {
			return nil, nil, fmt.Errorf("column %q, which is to be added: %w", c.Name, err)
		}
		f := arrow.Field{Name: c.Name, Type: dt, Nullable: c.Nullable}
		for _, other := range columns[:i] {
			if other.Name == f.Name {
				return nil, nil, fmt.Errorf("two of the columns to add are named %q", f.Name)
			}
		}
		found := schema.FieldIndices(f.Name)
		switch {
		case len(found) > 0 && !replace:
			return nil, nil, fmt.Errorf("column %q exists already: choose another name", f.Name)
		case len(found) > 0:
			fields[found[0]] = f
			at = append(at, found[0])
		default:
			at = append(at, len(fields))
			fields = append(fields, f)
		}
	}
	return arrow.NewSchema(fields, nil), at, nil
}
