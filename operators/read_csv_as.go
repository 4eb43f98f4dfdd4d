package operators

import (
	"errors"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// ReadCSVAs is ReadCSV for files whose columns a program knows: it reads those that the fields of
// T name, with their types, so that nothing is inferred. A column of whole numbers is float64
// where the field is, a cell that does not fit is an error with file, line and column, and so is
// an empty one, unless the field is a pointer. Without a header (or Names), the fields stand for
// all columns of the file, in their order. o says the rest, and nothing of types: neither Columns
// nor Types, Others, Infer, OrBool or Select.
func ReadCSVAs[T any](b *engine.Builder, path string, o CSVOptions) *engine.Dataset {
	const op = "ReadCSVAs"
	needBuilder(op, b)
	codec, ok := outputRows[T](op, b)
	if !ok {
		return b.Poisoned(op)
	}
	if o.Columns != nil || o.Types != nil || o.Others != "" || o.Infer != nil || o.OrBool != nil || o.Select != nil {
		b.Errorf("%s: %w", op, errors.New("the fields of the row say which columns there are; leave out Columns, Types, Others, Infer, OrBool and Select, or use ReadCSV"))
		return b.Poisoned(op)
	}
	o.Columns = arrowrows.Schema(codec.Schema()).Columns()
	return ReadCSV(b, path, o)
}
