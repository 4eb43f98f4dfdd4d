package operators

import (
	"errors"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// ReadCSVAs is ReadCSV for files whose columns are known. It reads the columns that the fields
// of T name, with the types of the fields, and infers nothing. A column of whole numbers is
// float64 if the field is. A cell that does not fit is an error with file, line and column, and
// so is an empty cell, unless the field is a pointer. Without a header (or Names), the fields
// are all columns of the file, in order. o must not set Columns, Types, Others, Infer, OrBool
// or Select.
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
