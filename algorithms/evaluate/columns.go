package evaluate

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// table lists the columns that an evaluation reads, in a fixed order. It also says what happens
// to rows with missing values.
type table struct{ rows.Checker }

func newTable(skip bool) table {
	return table{rows.Checker{Skip: skip, Advice: "set Skip to leave such rows out"}}
}

// second returns the table for a further pass over the same rows.
func (t table) second() table {
	t.Again = true
	return t
}

// Lacking is the prefix of the names of the counters for skipped rows. It is followed by the
// option that names the column with the missing value, as in "rows without LabelCol".
const Lacking = "rows without "

// badRow is an error about a row of a cleaned batch.
type badRow struct {
	row int
	err error
}

func (e *badRow) Error() string { return e.err.Error() }
func (e *badRow) Unwrap() error { return e.err }

// place returns err with the number of the row in the shard, if err is a badRow of the latest
// batch that validRows returned. first is the number of the batch's first row in the shard.
func (t *table) place(err error, first int) error {
	var bad *badRow
	if !errors.As(err, &bad) {
		return err
	}
	row := bad.row
	if t.Kept != nil {
		row = int(t.Kept[row])
	}
	return &engine.RowError{Row: int64(first + row), Err: bad.err}
}

// read adds a column and returns its position.
func (t *table) read(c rows.Column) int {
	t.Columns = append(t.Columns, c)
	return len(t.Columns) - 1
}

// readLabels adds a column of values of any scalar type.
func (t *table) readLabels(option, name string) int {
	return t.read(rows.Column{Option: option, Name: name, Use: rows.Scalar, Range: rows.Any})
}

// readVectors adds a column of vectors of finite numbers.
func (t *table) readVectors(option, name string) int {
	return t.read(rows.Column{Option: option, Name: name, Use: rows.Vector, Range: rows.Finite, Help: "operators.Vectorize makes one of number columns"})
}

// readNumber adds a column of finite numbers.
func (t *table) readNumber(option, name string) int {
	return t.read(rows.Column{Option: option, Name: name, Range: rows.Finite})
}

// readWeight adds a column of weights and returns its position. If name is empty, it returns
// -1.
func (t *table) readWeight(name string) int {
	if name == "" {
		return -1
	}
	c := rows.Weights(name)
	c.Option, c.As.Type = "WeightCol", nil
	return t.read(c)
}

// readNumbers adds a column with readVectors if d has vectors in that column, and with
// readNumber otherwise. It returns the position of the column, and whether it has vectors.
func (t *table) readNumbers(option, name string, d *engine.Dataset) (at int, vector bool) {
	if d != nil && !d.Poisoned() {
		i, err := batch.FindColumn(arrowrows.Arrow(d.Schema()), name)
		vector = err == nil && batch.IsVector(arrowrows.Arrow(d.Schema()).Field(i).Type)
	}
	if vector {
		return t.readVectors(option, name), true
	}
	return t.readNumber(option, name), false
}

// bind finds the columns in a schema and checks their types.
func (t *table) bind(schema *arrow.Schema) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Name == "" {
			return fmt.Errorf("%s is empty: name the column", c.Option)
		}
		if err := c.Bind(schema); err != nil {
			return err
		}
		dt := schema.Field(c.At).Type
		if rows.LayoutOf(dt) == rows.SparseRows && c.Use == rows.Vector && batch.VectorDim(dt) == 0 {
			return fmt.Errorf("%s: column %q is %s, which does not say the number of components: want sparse[n]", c.Option, c.Name, batch.TypeName(dt))
		}
		c.As = arrow.Field{Name: fmt.Sprint(i), Type: dt, Nullable: true}
	}
	return nil
}

// ordered reports whether values of type dt are ordered by value rather than by their text.
func ordered(dt arrow.DataType) bool { return batch.IsNumber(dt) && dt.ID() != arrow.BOOL }

// attrs returns the names of the columns for the displayed plan.
func (t *table) attrs() []engine.Attr {
	var attrs []engine.Attr
	for _, c := range t.Columns {
		attrs = append(attrs, engine.Attr{Key: c.Option, Value: c.Name})
	}
	return attrs
}

// validRows returns a batch that has only the table's columns and only the rows without missing
// values. The caller must release it. first is the number of the batch's first row in its
// shard. Without Skip, a missing value is an error. Skipped rows are counted in the first pass
// only.
func (t *table) validRows(c *engine.Context, rows arrow.Record, first int) (arrow.Record, error) {
	used, err := t.Rows(c, first, rows)
	if err == nil && !t.Again {
		for i, n := range t.Lacking {
			if n > 0 {
				c.Count(Lacking+t.Columns[i].Option, n)
			}
		}
	}
	return used, err
}

// numbers returns a number column without nulls as float64. If the values must be converted, it
// writes them to dst.
func numbers(column arrow.Array, dst []float64) []float64 {
	if f, ok := column.(*array.Float64); ok {
		return f.Float64Values()
	}
	dst = dst[:0]
	for i := range column.Len() {
		dst = append(dst, rows.NumberAt(column, i))
	}
	return dst
}

// weightOf returns the weight of row i, which is 1 if w is nil.
func weightOf(w []float64, i int) float64 {
	if w == nil {
		return 1
	}
	return w[i]
}

// checkSlices returns an error unless weight, if not nil, and all columns have n values, all
// values are finite, and no weight is negative.
func checkSlices(n int, columns map[string][]float64, weight []float64) error {
	for _, name := range sortedKeys(columns) {
		v := columns[name]
		if len(v) != n {
			return fmt.Errorf("there are %d values of %s, want %d", len(v), name, n)
		}
		if i := kernel.NonFinite(v); i >= 0 {
			return fmt.Errorf("%s %d is %v: want a finite number", name, i, v[i])
		}
	}
	if weight != nil && len(weight) != n {
		return fmt.Errorf("there are %d weights, want %d, or none", len(weight), n)
	}
	for i, w := range weight {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return fmt.Errorf("weight %d is %v: want a finite number of 0 or more", i, w)
		}
	}
	return nil
}

// invalid returns an error whose message begins with the name of an option.
func invalid(format string, a ...any) error { return fmt.Errorf(format, a...) }
