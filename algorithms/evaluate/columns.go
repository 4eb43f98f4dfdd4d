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
)

// role is what a column is read as.
type role int

const (
	numberRole role = iota // finite numbers
	weightRole             // finite numbers of 0 or more
	labelRole              // values of any scalar type
	vectorRole             // finite vectors
)

// field is a column that an evaluation reads.
type field struct {
	what  string // of the option that names it, such as "LabelCol"
	name  string
	role  role
	index int
	kind  arrow.DataType
}

// table is what an evaluation reads of its rows, in a fixed order, and what becomes of
// rows in which something is missing.
type table struct {
	fields []field
	skip   bool
	again  bool // the rows were looked at before, and those left out counted

	// Of the batch that was cleaned last: the rows that are used, nil where all are, and by
	// field how many others lack it, each counted for the first field that it lacks.
	kept    []int32
	lacking []int64
}

// second returns the table for another look at the same rows.
func (t table) second() table {
	t.again = true
	return t
}

// Lacking begins the names of the counters of rows left out by the option that names the
// column which they lack, such as "rows without LabelCol".
const Lacking = "rows without "

// A badRow is an error about a row among those used of a batch.
type badRow struct {
	row int
	err error
}

func (e *badRow) Error() string { return e.err.Error() }
func (e *badRow) Unwrap() error { return e.err }

// place returns an error about a row of the batch that was cleaned last as one about its row of
// the shard; first is the number of the batch's first row there.
func (t *table) place(err error, first int) error {
	var bad *badRow
	if !errors.As(err, &bad) {
		return err
	}
	row := bad.row
	if t.kept != nil {
		row = int(t.kept[row])
	}
	return &engine.RowError{Row: int64(first + row), Err: bad.err}
}

// read adds a column and returns its place.
func (t *table) read(what, name string, r role) int {
	t.fields = append(t.fields, field{what: what, name: name, role: r})
	return len(t.fields) - 1
}

// readWeight adds a column of weights unless its name is empty: then it returns -1.
func (t *table) readWeight(name string) int {
	if name == "" {
		return -1
	}
	return t.read("WeightCol", name, weightRole)
}

// readNumbers adds a column of numbers, or of vectors if it is one in the rows.
func (t *table) readNumbers(what, name string, rows *engine.Dataset) (at int, vector bool) {
	if rows != nil && !rows.Poisoned() {
		i, err := batch.FindColumn(arrowrows.Arrow(rows.Schema()), name)
		vector = err == nil && batch.IsVector(arrowrows.Arrow(rows.Schema()).Field(i).Type)
	}
	if vector {
		return t.read(what, name, vectorRole), true
	}
	return t.read(what, name, numberRole), false
}

// bind finds the columns in a schema and checks their types.
func (t *table) bind(schema *arrow.Schema) error {
	for i := range t.fields {
		f := &t.fields[i]
		if f.name == "" {
			return fmt.Errorf("%s is empty: name the column", f.what)
		}
		index, err := batch.FindColumn(schema, f.name)
		if err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
		f.index, f.kind = index, schema.Field(index).Type
		switch {
		case f.role == vectorRole && !batch.IsVector(f.kind):
			return fmt.Errorf("%s: column %q is %s, not a vector: operators.Vectorize makes one of number columns", f.what, f.name, batch.TypeName(f.kind))
		case f.role == vectorRole && f.kind.ID() == arrow.STRUCT && batch.VectorDim(f.kind) == 0:
			return fmt.Errorf("%s: column %q is %s, which does not say the number of components: want sparse[n]", f.what, f.name, batch.TypeName(f.kind))
		case f.role == labelRole && batch.IsVector(f.kind):
			return fmt.Errorf("%s: column %q is %s: want numbers, text or another scalar type", f.what, f.name, batch.TypeName(f.kind))
		case (f.role == numberRole || f.role == weightRole) && !isNumber(f.kind):
			return fmt.Errorf("%s: column %q is %s, not a number", f.what, f.name, batch.TypeName(f.kind))
		}
	}
	return nil
}

func isNumber(dt arrow.DataType) bool { return arrow.IsInteger(dt.ID()) || isFloat(dt) }

func isFloat(dt arrow.DataType) bool {
	return dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32
}

// attrs are the names of the columns, for the plan.
func (t *table) attrs() []engine.Attr {
	var attrs []engine.Attr
	for _, f := range t.fields {
		attrs = append(attrs, engine.Attr{Key: f.what, Value: f.name})
	}
	return attrs
}

// clean returns a batch of the table's columns alone, with the rows in which nothing is
// missing; owned. first is the number of the batch's first row within its shard. Without
// skip a row that lacks something is an error. Rows left out are counted, once for all looks
// at them.
func (t *table) clean(c *engine.Context, rows arrow.Record, first int) (arrow.Record, error) {
	used, err := t.use(c, rows, first)
	if err == nil && used.NumRows() < rows.NumRows() && !t.again {
		c.Count("rows skipped", rows.NumRows()-used.NumRows())
		for i, n := range t.lacking {
			if n > 0 {
				c.Count(Lacking+t.fields[i].what, n)
			}
		}
	}
	return used, err
}

// use is clean without the counting, for rows that are looked at again.
func (t *table) use(c *engine.Context, rows arrow.Record, first int) (arrow.Record, error) {
	n := int(rows.NumRows())
	var missing []bool
	t.kept, t.lacking = nil, nil
	for k, f := range t.fields {
		column := rows.Column(f.index)
		for at := 0; at < n; {
			row, problem := firstProblem(column, f, at)
			if problem == "" {
				break
			}
			if negative := problem[0] == '-' && f.role == weightRole; negative || !t.skip {
				return nil, refusal(first+row, f.name, problem, negative)
			}
			if missing == nil {
				missing, t.lacking = make([]bool, n), make([]int64, len(t.fields))
			}
			if !missing[row] {
				t.lacking[k]++
			}
			missing[row] = true
			at = row + 1
		}
	}
	columns, fields := make([]arrow.Array, len(t.fields)), make([]arrow.Field, len(t.fields))
	for i, f := range t.fields {
		columns[i] = rows.Column(f.index)
		fields[i] = arrow.Field{Name: fmt.Sprint(i), Type: f.kind, Nullable: true}
	}
	all := array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(n))
	if missing == nil {
		return all, nil
	}
	defer all.Release()
	keep := make([]int32, 0, n)
	for i, bad := range missing {
		if !bad {
			keep = append(keep, int32(i))
		}
	}
	t.kept = keep
	return batch.Take(c.Allocator, all, keep)
}

// refusal is the error about a row with a value that cannot be used.
func refusal(row int, column, problem string, negative bool) error {
	e := &engine.RowError{Row: int64(row), Err: fmt.Errorf("column %q is %s", column, problem), Cure: engine.LeaveOut, Advice: "set Skip to leave such rows out"}
	if negative {
		e.Err, e.Cure, e.Advice = fmt.Errorf("%w: want a weight of 0 or more", e.Err), engine.NoCure, ""
	}
	return e
}

// firstProblem finds the first row from at on whose value cannot be used, and says what
// is wrong with it; "" where there is none.
func firstProblem(column arrow.Array, f field, at int) (int, string) {
	nulls := column.NullN() > 0
	if f.role == vectorRole {
		return firstVectorProblem(column, at)
	}
	floats := isFloat(f.kind)
	if !nulls && !floats && f.role != weightRole {
		return 0, ""
	}
	for i := at; i < column.Len(); i++ {
		if nulls && column.IsNull(i) {
			return i, "null"
		}
		if !floats && f.role != weightRole {
			continue
		}
		v := rows.NumberAt(column, i)
		if v-v != 0 && (f.role != labelRole || math.IsNaN(v)) {
			return i, fmt.Sprint(v)
		}
		if f.role == weightRole && v < 0 {
			return i, fmt.Sprint(v)
		}
	}
	return 0, ""
}

func firstVectorProblem(column arrow.Array, at int) (int, string) {
	rest := array.NewSlice(column, int64(at), int64(column.Len()))
	defer rest.Release()
	row, component, bad := batch.FirstNonFinite(rest)
	end := rest.Len()
	if bad {
		end = row
	}
	if rest.NullN() > 0 {
		for i := range end {
			if rest.IsNull(i) {
				return at + i, "null"
			}
		}
	}
	if bad {
		return at + row, fmt.Sprintf("not finite in component %d", component)
	}
	return 0, ""
}

// numbers returns a number column without nulls as float64, in dst if it must be
// converted.
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

// weightOf returns the weight of row i: 1 where there are no weights.
func weightOf(w []float64, i int) float64 {
	if w == nil {
		return 1
	}
	return w[i]
}

// checkSlices checks what functions on slices are given: equal lengths, and the same as
// the operators check of columns.
func checkSlices(n int, columns map[string][]float64, weight []float64) error {
	for _, name := range sortedKeys(columns) {
		v := columns[name]
		if len(v) != n {
			return fmt.Errorf("there are %d values of %s, want %d", len(v), name, n)
		}
		for i, x := range v {
			if x-x != 0 {
				return fmt.Errorf("%s %d is %v: want a finite number", name, i, x)
			}
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

// invalid is an error that begins with the name of an option.
func invalid(format string, a ...any) error { return fmt.Errorf(format, a...) }
