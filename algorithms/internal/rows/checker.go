package rows

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Skipped is the name of the counter of rows that were left out.
const Skipped = "rows skipped"

// Checker checks the batches of a subtask. If several rows of a batch are refused, the error is
// about the first mistake found in the first of these rows.
type Checker struct {
	Columns []Column
	// Skip leaves out rows with a value that is null, NaN or infinite.
	Skip bool
	// Advice is the advice in the error about a row with such a value, if Skip is false.
	Advice string
	// Components[i] is the name of component i of the vector in messages. It may have fewer
	// elements than the vector has components.
	Components []string
	// If Also is not nil, Rows calls it after the columns were checked. It makes further
	// checks, and calls Refuse for rows with mistakes.
	Also func(c *Checker, columns []arrow.Array)
	// Again is set if the same rows were checked before. Rows that are left out were counted
	// then, and are not counted again.
	Again bool
	// Lacking[i] is the number of rows of the batch that are left out because of column i. A
	// row with unusable values in several columns is counted for the first of these columns.
	// Lacking is nil if no row is left out.
	Lacking []int64
	// Kept are the indices of the rows of the batch that Rows kept. It is nil if Rows kept all.
	Kept []int32

	schema  *arrow.Schema
	first   int // number of rows of the shard before the batch
	n       int
	skip    []bool // skip[i] is set if row i is left out; nil while no row is left out
	row     int    // the first row that is refused; −1 while no row is refused
	problem string
	cure    engine.Cure
	keep    []int32 // the memory of Kept, for reuse
}

// Rows returns the usable rows of the batch rows, with the columns of Schema. The caller owns
// the result. first is the number of rows of the shard before the batch.
func (k *Checker) Rows(c *engine.Context, first int, rows arrow.Record) (arrow.Record, error) {
	n := int(rows.NumRows())
	k.Begin(first, n)
	columns := make([]arrow.Array, 0, len(k.Columns))
	defer func() {
		for _, column := range columns {
			column.Release()
		}
	}()
	for i := range k.Columns {
		column := rows.Column(k.Columns[i].At)
		columns = append(columns, converted(c.Allocator, column, k.Columns[i].As.Type))
		k.Check(i, column, columns[i])
	}
	if k.Also != nil {
		k.Also(k, columns)
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	all := array.NewRecord(k.Schema(), columns, rows.NumRows())
	if k.skip == nil {
		return all, nil
	}
	defer all.Release()
	if k.keep == nil {
		k.keep = make([]int32, 0, n)
	}
	k.Kept = k.keep[:0]
	for i, skip := range k.skip {
		if !skip {
			k.Kept = append(k.Kept, int32(i))
		}
	}
	k.keep = k.Kept
	if !k.Again {
		c.Count(Skipped, int64(n-len(k.Kept)))
	}
	return batch.Take(c.Allocator, all, k.Kept)
}

// Schema returns the schema of the checked rows: the field As of each column.
func (k *Checker) Schema() *arrow.Schema {
	if k.schema == nil {
		fields := make([]arrow.Field, len(k.Columns))
		for i := range fields {
			fields[i] = k.Columns[i].As
		}
		k.schema = arrow.NewSchema(fields, nil)
	}
	return k.schema
}

// Begin begins a batch of n rows. first is the number of rows of the shard before the batch.
func (k *Checker) Begin(first, n int) {
	k.first, k.n, k.skip, k.row, k.Lacking, k.Kept = first, n, nil, -1, nil, nil
}

// Err returns the error about the first row of the batch that is refused, or nil if no row is
// refused.
func (k *Checker) Err() error {
	if k.row < 0 {
		return nil
	}
	e := &engine.RowError{Row: int64(k.first + k.row), Err: errors.New(k.problem), Cure: k.cure}
	if k.cure != engine.NoCure {
		e.Advice = k.Advice
	}
	return e
}

// LeftOut reports for each row of the batch whether it is left out. It returns nil if no row is
// left out.
func (k *Checker) LeftOut() []bool { return k.skip }

// Done reports whether row need not be checked, because row or an earlier row of the batch was
// refused.
func (k *Checker) Done(row int) bool { return k.row >= 0 && row >= k.row }

// Refuse refuses a row of the batch because of a mistake. It refuses the row even if Skip is
// set.
func (k *Checker) Refuse(row int, format string, args ...any) {
	if !k.Done(row) {
		k.row, k.problem, k.cure = row, fmt.Sprintf(format, args...), engine.NoCure
	}
}

// lack records that a row has no usable value in a column: the row is left out if Skip is set
// and the column is not Required; otherwise it is refused. problem returns the message about
// the value.
func (k *Checker) lack(row, column int, problem func() string) {
	switch c := &k.Columns[column]; {
	case c.Required:
		k.Refuse(row, "%s", problem())
	case k.Skip:
		if k.skip == nil {
			k.skip, k.Lacking = make([]bool, k.n), make([]int64, len(k.Columns))
		}
		if !k.skip[row] {
			k.skip[row] = true
			k.Lacking[column]++
		}
	case !k.Done(row):
		k.row, k.problem, k.cure = row, problem(), engine.LeaveOut
	}
}

// Check checks a column of the batch, which is described by Columns[at]. made is the column
// after its conversion to the type in which it will be used; it is column itself if no
// conversion is needed.
func (k *Checker) Check(at int, column, made arrow.Array) {
	switch c := &k.Columns[at]; c.Use {
	case Number:
		k.numbers(at, c, column)
	case Vector:
		k.vectors(at, c, column, made)
	default:
		k.values(at, c, column)
	}
}

// null records that a value of a row is null, unless the column allows missing values.
func (k *Checker) null(at int, c *Column, row int) {
	if !c.Missing {
		k.lack(row, at, func() string { return c.says("is null") })
	}
}

// numbers checks a number column.
func (k *Checker) numbers(at int, c *Column, column arrow.Array) {
	nulls := column.NullN() > 0
	if !nulls && !isFloat(column.DataType()) && c.Least <= -math.MaxFloat64 && c.Most >= math.MaxFloat64 && !c.Whole {
		return
	}
	for i := range column.Len() {
		if k.Done(i) {
			return
		}
		if nulls && column.IsNull(i) {
			k.null(at, c, i)
		} else if v := NumberAt(column, i); !c.Has(v) {
			k.number(at, c, i, v)
		}
	}
}

// number records a number v that is outside the range of its column.
func (k *Checker) number(at int, c *Column, row int, v float64) {
	switch {
	case v != v && c.Missing:
	case v-v != 0 && !c.Required:
		k.lack(row, at, func() string { return c.says(fmt.Sprintf("is %v", v)) })
	case c.Want != "":
		k.Refuse(row, "%s; %s", c.says(fmt.Sprintf("is %v", v)), c.Want)
	default:
		k.Refuse(row, "%s", c.says(fmt.Sprintf("is %v", v)))
	}
}

// values checks a column whose values are not used as numbers.
func (k *Checker) values(at int, c *Column, column arrow.Array) {
	nulls, floats := column.NullN() > 0, isFloat(column.DataType())
	text, _ := column.(*array.String)
	if c.Use == Scalar {
		text = nil
	}
	if !nulls && !floats && text == nil {
		return
	}
	for i := range column.Len() {
		switch {
		case k.Done(i):
			return
		case nulls && column.IsNull(i):
			k.null(at, c, i)
		case text != nil:
			if v := text.Value(i); !utf8.ValidString(v) { // a model's file can hold only UTF-8
				k.lack(i, at, func() string { return c.says(fmt.Sprintf("%q is not UTF-8", v)) })
			}
		case floats:
			if v := NumberAt(column, i); !c.Has(v) {
				k.number(at, c, i, v)
			}
		}
	}
}

// vectors checks a vector column.
func (k *Checker) vectors(at int, c *Column, column, made arrow.Array) {
	if column.NullN() > 0 {
		for i := range column.Len() {
			if column.IsNull(i) {
				k.null(at, c, i)
			}
		}
	}
	for from := 0; c.Most <= math.MaxFloat64; {
		row, component, bad := batch.FirstNonFinite(made, from)
		if !bad || k.Done(row) {
			break
		}
		k.lack(row, at, func() string {
			name := fmt.Sprintf("column %q: component %d", c.Name, component)
			if component < len(k.Components) {
				name = k.Components[component]
			}
			v := batch.VectorsOf(column).Component(row, component)
			if v-v == 0 {
				return fmt.Sprintf("%s is %v, beyond the range of float32", name, v)
			}
			return fmt.Sprintf("%s is %v", name, v)
		})
		from = row + 1
	}
	if column.DataType().ID() == arrow.STRUCT {
		k.indices(c, column)
	}
}

// indices checks that the indices of each sparse row ascend and are below the declared size.
// Readers of files check this too, but batches that a program made have not been checked.
func (k *Checker) indices(c *Column, column arrow.Array) {
	vectors, size := batch.VectorsOf(column), batch.VectorDim(column.DataType())
	for i := range column.Len() {
		if k.Done(i) {
			return
		}
		if vectors.Null(i) {
			continue
		}
		indices, values := vectors.Sparse(i)
		if problem := badIndices(indices, len(values), size); problem != "" {
			k.Refuse(i, "column %q: %s", c.Name, problem)
		}
	}
}

// badIndices returns a description of the first error in the indices of a sparse row, or "" if
// there is no error. values is the number of values of the row. size is the declared size, or 0
// if no size is declared.
func badIndices(indices []int32, values, size int) string {
	if len(indices) != values {
		return fmt.Sprintf("there are %d indices and %d values", len(indices), values)
	}
	last := int32(-1)
	for _, index := range indices {
		switch {
		case index < 0:
			return fmt.Sprintf("index %d is negative", index)
		case size > 0 && int(index) >= size:
			return fmt.Sprintf("index %d is not below the size, %d", index, size)
		case index == math.MaxInt32:
			return fmt.Sprintf("index %d is too large", index)
		case index == last:
			return fmt.Sprintf("index %d occurs twice", index)
		case index < last:
			return fmt.Sprintf("index %d follows %d; indices ascend", index, last)
		}
		last = index
	}
	return ""
}
