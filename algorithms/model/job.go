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

// EncodedRow is the row type of a dataset that holds a model. Training operators output such
// rows.
type EncodedRow struct {
	Model string `column:"model"`
}

// Dataset adds a dataset to the job that contains the model m: one row with the model's file in
// Column, like the dataset that training returns. An error of Encode becomes an error of the
// job.
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

// Encoded returns the file of the model that was collected under a name. The function Decode of
// the model's kind decodes it.
func Encoded(result *engine.Result, name string) ([]byte, error) {
	rows, err := engine.Rows[EncodedRow](result, name)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("result %q has %d rows: a model is one row, as training gives it", name, len(rows))
	}
	text := rows[0].Model // engine.Rows copied the text, so the caller owns it
	return unsafe.Slice(unsafe.StringData(text), len(text)), nil
}

// Collected returns the model that was collected under a name. decode is the function Decode of
// the model's kind.
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
// for operators that are not added by Apply or ApplyRows.
func Side(c *engine.Context, port int) ([]byte, error) { return FileIn(c.Side(port)...) }

// FileIn returns the file of the model in batches. The batches together must have exactly one
// row, like the dataset that training returns.
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

// BuilderOf returns the builder of a dataset. If the dataset is nil, there is no builder that
// could record the error; BuilderOf then panics with an engine.Misuse that names op.
func BuilderOf(op string, d *engine.Dataset) *engine.Builder {
	if d == nil || d.Builder() == nil {
		panic(engine.Misuse{Err: fmt.Errorf("%s: the dataset is nil", op)})
	}
	d.Builder().MustBuild(op, "dataset")
	return d.Builder()
}

// Begin begins the Fit of an estimator. It returns the builder of rows. problem is an error in
// the estimator's parameters, which Begin reports under the name op. If problem is not nil, or
// rows are poisoned, nothing can be trained; refused is then the dataset that Fit must return.
// Otherwise refused is nil.
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

// Refuse reports a problem under the name op, with the source line of the caller. It returns a
// poisoned dataset, which replaces the output of the operator that cannot be added.
func Refuse(b *engine.Builder, op string, problem error) *engine.Dataset {
	b.Errorf("%s: %w", op, problem)
	return b.Poisoned(op)
}

// withColumns returns the schema with columns appended. If replace is set, they replace
// existing columns of the same names. at has the index of each column in the result.
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
