package bins

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// The counters of rows left out, of those that train and of evaluation sets.
const (
	skippedRows    = "rows skipped"
	skippedSetRows = "rows of evaluation sets skipped"
)

// checker is the operator that checks the rows of one subtask and packs them, a shard at a
// time: a shard's batches are kept until its end, so that columns can be made at their length.
type checker struct {
	plan *plan

	rows    int            // of the shard at hand, seen so far
	batches []arrow.Record // of the shard, retained
	skip    [][]bool       // by batch, then row; nil where none is left out
	skipped int64

	width   int // of the shard's ragged vectors, −1 before the first
	found   int // the first row of the batch that is refused, −1 while there is none
	problem string
	cure    engine.Cure
}

func (o *checker) Open(*engine.Context) error                  { return nil }
func (o *checker) Finish(*engine.Context, engine.Output) error { return nil }

func (o *checker) Close() error {
	o.drop()
	return nil
}

// drop begins a shard.
func (o *checker) drop() {
	for i, b := range o.batches {
		b.Release()
		o.batches[i] = nil
	}
	o.batches, o.skip = o.batches[:0], o.skip[:0]
	o.rows, o.skipped, o.width = 0, 0, -1
}

func (o *checker) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if o.rows == 0 {
		o.drop()
	}
	n := int(rows.NumRows())
	if n == 0 {
		return nil
	}
	if o.rows > math.MaxInt32-n {
		return fmt.Errorf("a shard has more than 2^31 rows: cut the data into more shards")
	}
	rows.Retain()
	o.batches = append(o.batches, rows)
	o.skip = append(o.skip, nil)
	o.found = -1
	o.checkScalars(rows)
	if o.plan.kind == separate {
		o.checkColumns(rows)
	} else {
		o.checkVectors(rows.Column(o.plan.vector))
	}
	if o.found >= 0 {
		return &engine.RowError{Row: int64(o.rows + o.found), Err: errors.New(o.problem), Cure: o.cure, Advice: advice(o.cure)}
	}
	o.rows += n
	return nil
}

// EndShard packs the shard's rows.
func (o *checker) EndShard(c *engine.Context, shard int, out engine.Output) error {
	defer o.drop()
	if o.skipped > 0 {
		counter := skippedRows
		if o.plan.lenient {
			counter = skippedSetRows
		}
		c.Count(counter, o.skipped)
	}
	if o.rows == 0 || o.skipped == int64(o.rows) {
		return nil
	}
	rec, err := o.pack(c.RowAllocator)
	if err != nil {
		return err
	}
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// refuse notes that something is wrong with a row of the batch at hand. Of several rows the
// first is told, and of several things wrong with it the first found.
func (o *checker) refuse(row int, skippable bool, format string, args ...any) {
	last := len(o.skip) - 1
	if skippable && o.plan.columns.Skip {
		if o.skip[last] == nil {
			o.skip[last] = make([]bool, o.batches[last].NumRows())
		}
		if !o.skip[last][row] {
			o.skip[last][row] = true
			o.skipped++
		}
		return
	}
	if o.found < 0 || row < o.found {
		o.found, o.problem, o.cure = row, fmt.Sprintf(format, args...), engine.NoCure
		if skippable {
			o.cure = engine.LeaveOut
		}
	}
}

// advice says what can be done about a row.
func advice(c engine.Cure) string {
	if c == engine.NoCure {
		return ""
	}
	return "fill it in, or set Skip to train without such rows"
}

// done says that a row need not be looked at: an earlier one is refused.
func (o *checker) done(row int) bool { return o.found >= 0 && row >= o.found }

// checkScalars checks labels, weights, margins and groups.
func (o *checker) checkScalars(rows arrow.Record) {
	p := o.plan
	if p.labelAt >= 0 {
		if p.label == ClassLabel {
			o.checkClasses("label", p.columns.Label, rows.Column(p.labelAt))
		} else {
			o.checkNumbers("label", p.columns.Label, rows.Column(p.labelAt), func(v float64) string {
				if math.IsInf(v, 0) && !(p.upperAt >= 0 && v < 0) {
					return "is " + numberText(v)
				}
				return ""
			})
		}
	}
	if p.labelAt >= 0 && p.label == NumberLabel && p.upperAt < 0 && p.columns.Skip && p.columns.CheckLabel != nil {
		o.checkLabels(rows.Column(p.labelAt))
	}
	if p.upperAt >= 0 {
		o.checkNumbers("upper end of the label", p.columns.LabelUpper, rows.Column(p.upperAt), func(v float64) string {
			if math.IsInf(v, -1) {
				return "is -Inf"
			}
			return ""
		})
		o.checkIntervals(rows.Column(p.labelAt), rows.Column(p.upperAt))
	}
	if p.weightAt >= 0 {
		o.checkNumbers("weight", p.columns.Weight, rows.Column(p.weightAt), func(v float64) string {
			switch {
			case math.IsInf(v, 0):
				return "is " + numberText(v)
			case v < 0:
				return fmt.Sprintf("is %v; a weight is 0 or more", v)
			}
			return ""
		})
	}
	for i, at := range p.marginsAt {
		o.checkNumbers("margin", p.columns.Margins[i], rows.Column(at), func(v float64) string {
			if math.IsInf(v, 0) {
				return "is " + numberText(v)
			}
			return ""
		})
	}
	if p.groupAt >= 0 {
		o.checkClasses("group", p.columns.Group, rows.Column(p.groupAt))
	}
}

// checkNumbers checks a number column, of which no value may be missing. refuses says why a
// number will not do.
func (o *checker) checkNumbers(role, name string, column arrow.Array, refuses func(v float64) string) {
	for i := range column.Len() {
		if o.done(i) {
			return
		}
		v := numberAt(column, i)
		switch {
		case column.IsNull(i):
			o.refuse(i, true, "column %q: the %s is null", name, role)
		case math.IsNaN(v):
			o.refuse(i, true, "column %q: the %s is NaN", name, role)
		default:
			if problem := refuses(v); problem != "" {
				o.refuse(i, math.IsInf(v, 0), "column %q: the %s %s", name, role, problem)
			}
		}
	}
}

// checkLabels checks labels for what they are used as.
func (o *checker) checkLabels(column arrow.Array) {
	for i := range column.Len() {
		if o.done(i) {
			return
		}
		v := numberAt(column, i)
		if column.IsNull(i) || math.IsNaN(v) {
			continue // which is left out
		}
		if err := o.plan.columns.CheckLabel(v); err != nil {
			o.refuse(i, false, "column %q: %v", o.plan.columns.Label, err)
		}
	}
}

// checkIntervals checks that labels that are intervals do not end below where they begin.
func (o *checker) checkIntervals(lower, upper arrow.Array) {
	for i := range lower.Len() {
		if o.done(i) {
			return
		}
		if a, b := numberAt(lower, i), numberAt(upper, i); a > b {
			o.refuse(i, false, "columns %q and %q: the label ends at %v, below where it begins, %v", o.plan.columns.Label, o.plan.columns.LabelUpper, b, a)
		}
	}
}

// checkClasses checks values of which only the identity matters.
func (o *checker) checkClasses(role, name string, column arrow.Array) {
	floats := arrow.IsFloating(column.DataType().ID())
	text, _ := column.(*array.String)
	if column.NullN() == 0 && !floats && text == nil {
		return
	}
	for i := range column.Len() {
		switch {
		case o.done(i):
			return
		case column.IsNull(i):
			o.refuse(i, true, "column %q: the %s is null", name, role)
		case text != nil:
			if !utf8.ValidString(text.Value(i)) { // a model's file could not name the class
				o.refuse(i, true, "column %q: the %s %q is not UTF-8", name, role, text.Value(i))
			}
		case floats:
			if v := numberAt(column, i); math.IsNaN(v) || math.IsInf(v, 0) {
				o.refuse(i, true, "column %q: the %s is %s", name, role, numberText(v))
			}
		}
	}
}

// checkColumns checks features that are columns each: those that are codes or text.
func (o *checker) checkColumns(rows arrow.Record) {
	p := o.plan
	for j, at := range p.features {
		column := rows.Column(at)
		if text, ok := column.(*array.String); ok {
			for i := range column.Len() {
				if o.done(i) {
					break
				}
				if !column.IsNull(i) && !utf8.ValidString(text.Value(i)) {
					o.refuse(i, false, "column %q: the category %q is not UTF-8", p.columns.Features[j], text.Value(i))
				}
			}
			continue
		}
		for i := 0; p.coded[j] && i < column.Len() && !o.done(i); i++ {
			o.checkCode(i, j, numberAt(column, i))
		}
	}
}

// checkCode checks the code of a category.
func (o *checker) checkCode(row, feature int, v float64) {
	if o.plan.lenient || v != v {
		return
	}
	if !(v >= 0 && v <= MaxCategory) || v != math.Trunc(v) {
		o.refuse(row, false, "%s: the category is %s; codes of categories are the integers from 0 to %d, other categories are text", o.plan.describe(feature), numberText(v), MaxCategory)
	}
}

// checkVectors checks features that are vectors.
func (o *checker) checkVectors(vectors arrow.Array) {
	p := o.plan
	name := p.schema.Field(p.vector).Name
	if vectors.NullN() > 0 {
		for i := range vectors.Len() {
			if vectors.IsNull(i) {
				o.refuse(i, true, "column %q is null", name)
			}
		}
	}
	switch p.kind {
	case raggedRows:
		offsets := vectors.(*array.List).Offsets()[vectors.Data().Offset():]
		for i := range vectors.Len() {
			if o.done(i) {
				return
			}
			width := int(offsets[i+1] - offsets[i])
			switch {
			case vectors.IsNull(i):
			case o.width < 0:
				o.width = width
			case width != o.width:
				o.refuse(i, false, "column %q has %d components, where other rows have %d: vectors are of one size", name, width, o.width)
			}
		}
	case sparseRows:
		o.checkSparse(name, vectors)
		return
	}
	for at := range p.codedAt {
		rows := denseRowsOf(vectors)
		for i := range vectors.Len() {
			if o.done(i) {
				return
			}
			if row := rows(i); at < len(row) && !vectors.IsNull(i) {
				o.checkCode(i, at, row[at])
			}
		}
	}
}

// checkSparse checks sparse rows: what comes from files was checked when it was read,
// batches of a program were not.
func (o *checker) checkSparse(name string, vectors arrow.Array) {
	rows := sparseRowsOf(vectors)
	for i := range vectors.Len() {
		if o.done(i) {
			return
		}
		if vectors.IsNull(i) {
			continue
		}
		indices, values := rows(i)
		if problem := badIndex(indices, o.plan.dim); problem != "" {
			o.refuse(i, false, "column %q: %s", name, problem)
			continue
		}
		if len(o.plan.codedAt) > 0 {
			for k, at := range indices {
				if o.plan.codedAt[int(at)] {
					o.checkCode(i, int(at), values[k])
				}
			}
		}
	}
}

// badIndex says what is wrong with the indices of a sparse row of a size, which is 0 where
// it is not known; "" where nothing is.
func badIndex(indices []int32, size int) string {
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
			return fmt.Sprintf("index %d stands twice", index)
		case index < last:
			return fmt.Sprintf("index %d follows %d; indices ascend", index, last)
		}
		last = index
	}
	return ""
}

// sparseRowsOf returns what reads the rows of a sparse column that are not null.
func sparseRowsOf(vectors arrow.Array) func(i int) ([]int32, []float64) {
	if csr, ok := batch.SparseView(vectors); ok {
		return csr.Row
	}
	return func(i int) ([]int32, []float64) { // some rows are null, which the view does not take
		one := array.NewSlice(vectors, int64(i), int64(i+1))
		defer one.Release()
		if csr, ok := batch.SparseView(one); ok {
			return csr.Row(0)
		}
		return nil, nil
	}
}

// denseRowsOf returns what reads the rows of a dense column that are not null. A row of
// float64 is a view; one of float32 is good until the next is read.
func denseRowsOf(vectors arrow.Array) func(i int) []float64 {
	var values arrow.Array
	var bounds func(i int) (lo, hi int64)
	switch arr := vectors.(type) {
	case *array.FixedSizeList:
		values, bounds = arr.ListValues(), arr.ValueOffsets
	case *array.List:
		values, bounds = arr.ListValues(), arr.ValueOffsets
	}
	switch arr := values.(type) {
	case *array.Float64:
		all := arr.Float64Values()
		return func(i int) []float64 {
			lo, hi := bounds(i)
			return all[lo:hi:hi]
		}
	case *array.Float32:
		all := arr.Float32Values()
		var row []float64
		return func(i int) []float64 {
			lo, hi := bounds(i)
			row = row[:0]
			for _, v := range all[lo:hi] {
				row = append(row, float64(v))
			}
			return row
		}
	}
	return func(int) []float64 { return nil }
}

// numberText writes a number as messages do.
func numberText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return fmt.Sprint(v)
}
