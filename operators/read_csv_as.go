package operators

import (
	"errors"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// ReadCSVAs does the same as ReadCSV for files whose columns are known. It reads a column for
// each field of T, with the type of the field, and infers nothing: a column of whole numbers is
// read as float64 if the field is a float64. A cell that does not fit the type is an error that
// names file, line and column. So is an empty cell, unless the field is a pointer. If there is
// neither a header nor Names, T must have a field for every column of the file, in order. o
// must not set Columns, Types, Others, Infer, OrBool or Select.
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
