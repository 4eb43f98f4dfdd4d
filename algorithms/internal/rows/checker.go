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

// skippedRows is the counter of rows left out.
const skippedRows = "rows skipped"

// rowChecker is what the operator behind Check does on one subtask. The first source is
// that of the features.
type rowChecker struct {
	table   Table
	sources []source
	schema  *arrow.Schema

	found findings
	keep  []int32
}

// findings are what is wrong with the rows of a batch.
type findings struct {
	skip    []bool // by row; nil while there is none
	row     int    // the first row that is refused, -1 while there is none
	problem string
	cure    engine.Cure
}

// skipAdvice is what can be done about a row that could be left out.
const skipAdvice = "fill it in, or set Skip to train without such rows"

// error is that about the row that is refused; first is how many rows of the shard were before
// the batch.
func (f *findings) error(first int) error {
	e := &engine.RowError{Row: int64(first + f.row), Err: errors.New(f.problem), Cure: f.cure}
	if f.cure != engine.NoCure {
		e.Advice = skipAdvice
	}
	return e
}

// check returns the usable rows of a batch in the checked schema, owned; first is how many
// rows of the shard were before it.
func (o *rowChecker) check(c *engine.Context, first int, rows arrow.Record) (arrow.Record, error) {
	n := int(rows.NumRows())
	o.found = findings{row: -1}
	columns := make([]arrow.Array, 0, len(o.sources))
	defer func() {
		for _, column := range columns {
			column.Release()
		}
	}()
	for _, s := range o.sources {
		column := rows.Column(s.column)
		switch s.kind {
		case featuresSource:
			vectors := toFloat64(c.Allocator, column)
			columns = append(columns, vectors)
			o.checkVectors(vectors)
		case classSource:
			column.Retain()
			columns = append(columns, column)
			o.checkClasses(s, column)
		default:
			columns = append(columns, numbers(c.Allocator, column))
			o.checkNumbers(s, column)
		}
	}
	if o.found.row >= 0 {
		return nil, o.found.error(first)
	}
	all := array.NewRecord(o.schema, columns, rows.NumRows())
	if o.found.skip == nil {
		return all, nil
	}
	defer all.Release()
	o.keep = o.keep[:0]
	for i, skip := range o.found.skip {
		if !skip {
			o.keep = append(o.keep, int32(i))
		}
	}
	c.Count(skippedRows, int64(n-len(o.keep)))
	return batch.Take(c.Allocator, all, o.keep)
}

// report notes that something is wrong with a row of n. Of several rows that are refused
// the first is told, and of several things wrong with it the first found.
func (o *rowChecker) report(row, n int, skippable bool, problem string) {
	if skippable && o.table.columns.Skip {
		if o.found.skip == nil {
			o.found.skip = make([]bool, n)
		}
		o.found.skip[row] = true
		return
	}
	if o.found.row < 0 || row < o.found.row {
		o.found.row, o.found.problem, o.found.cure = row, problem, engine.NoCure
		if skippable {
			o.found.cure = engine.LeaveOut
		}
	}
}

// done says that a row of a column need not be looked at: an earlier one is refused.
func (o *rowChecker) done(row int) bool { return o.found.row >= 0 && row >= o.found.row }

// checkNumbers checks a number column.
func (o *rowChecker) checkNumbers(s source, column arrow.Array) {
	n := column.Len()
	for i := range n {
		if o.done(i) {
			return
		}
		if column.IsNull(i) {
			o.report(i, n, true, fmt.Sprintf("column %q: the %s is null", s.name, s.role()))
			continue
		}
		if problem, skippable := s.refuses(NumberAt(column, i)); problem != "" {
			o.report(i, n, skippable, fmt.Sprintf("column %q: the %s %s", s.name, s.role(), problem))
		}
	}
}

// checkClasses checks the labels of a classifier.
func (o *rowChecker) checkClasses(s source, column arrow.Array) {
	n := column.Len()
	floats := arrow.IsFloating(column.DataType().ID())
	text, _ := column.(*array.String)
	if column.NullN() == 0 && !floats && text == nil {
		return
	}
	for i := range n {
		if o.done(i) {
			return
		}
		if column.IsNull(i) {
			o.report(i, n, true, fmt.Sprintf("column %q: the label is null", s.name))
		} else if text != nil {
			if !utf8.ValidString(text.Value(i)) { // a model's file could not name the class
				o.report(i, n, true, fmt.Sprintf("column %q: the label %q is not UTF-8", s.name, text.Value(i)))
			}
		} else if floats {
			if v := NumberAt(column, i); math.IsNaN(v) || math.IsInf(v, 0) {
				o.report(i, n, true, fmt.Sprintf("column %q: the label is %s", s.name, numberText(v)))
			}
		}
	}
}

// checkVectors checks the features.
func (o *rowChecker) checkVectors(vectors arrow.Array) {
	n := vectors.Len()
	if vectors.NullN() > 0 {
		for i := range n {
			if vectors.IsNull(i) {
				o.report(i, n, true, fmt.Sprintf("column %q is null", o.sources[0].name))
			}
		}
	}
	for from := 0; from < n; {
		rest := array.NewSlice(vectors, int64(from), int64(n))
		row, component, bad := batch.FirstNonFinite(rest)
		rest.Release()
		if !bad || o.done(from+row) {
			break
		}
		row += from
		name := fmt.Sprintf("column %q: component %d", o.sources[0].name, component)
		if component < len(o.table.names) {
			name = o.table.names[component]
		}
		o.report(row, n, true, name+" is "+numberText(componentOf(vectors, row, component)))
		from = row + 1
	}
	if structs, ok := vectors.(*array.Struct); ok {
		o.checkIndices(structs)
	}
}

// checkIndices checks that the indices of sparse rows ascend within the declared size:
// what comes from files was checked when it was read, batches of a program were not.
func (o *rowChecker) checkIndices(vectors *array.Struct) {
	n := vectors.Len()
	csr, whole := batch.SparseView(vectors)
	for i := range n {
		if o.done(i) {
			return
		}
		var indices []int32
		if whole {
			indices, _ = csr.Row(i)
		} else if !vectors.IsNull(i) { // some rows are null, which the view does not take
			one := array.NewSlice(vectors, int64(i), int64(i+1))
			if csr, ok := batch.SparseView(one); ok {
				indices, _ = csr.Row(0)
			}
			one.Release()
		}
		if problem := badIndex(indices, o.table.dim); problem != "" {
			o.report(i, n, false, fmt.Sprintf("column %q: %s", o.sources[0].name, problem))
		}
	}
}

// badIndex says what is wrong with the indices of a sparse row of a size, which is 0
// where it is not known; "" where nothing is.
func badIndex(indices []int32, size int) string {
	last := int32(-1)
	for _, index := range indices {
		switch {
		case index < 0:
			return fmt.Sprintf("index %d is negative", index)
		case size > 0 && int(index) >= size:
			return fmt.Sprintf("index %d is not below the size, %d", index, size)
		case index == last:
			return fmt.Sprintf("index %d stands twice", index)
		case index < last:
			return fmt.Sprintf("index %d follows %d; indices ascend", index, last)
		}
		last = index
	}
	return ""
}

// componentOf returns a component of a vector, at an index for sparse ones.
func componentOf(vectors arrow.Array, row, component int) float64 {
	one := array.NewSlice(vectors, int64(row), int64(row+1))
	defer one.Release()
	if csr, ok := batch.SparseView(one); ok {
		indices, values := csr.Row(0)
		for p, index := range indices {
			if int(index) == component {
				return values[p]
			}
		}
		return 0
	}
	if data, _, ok := batch.DenseView(one); ok {
		return data[component]
	}
	indptr, values, _ := batch.RaggedView(one)
	return values[int(indptr[0])+component]
}
