package rows

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// sourceKind says what a column of the rows is for.
type sourceKind int

const (
	featuresSource sourceKind = iota
	numberSource              // a label that is a number
	classSource               // a label that is a class
	weightSource
	offsetSource
	censorSource
)

// source is a column that is read.
type source struct {
	column int
	name   string
	kind   sourceKind
}

// scalars returns the columns besides the features that are named.
func (c Columns) scalars(label LabelKind) []source {
	var all []source
	add := func(name string, kind sourceKind) {
		if name != "" {
			all = append(all, source{name: name, kind: kind})
		}
	}
	switch label {
	case NumberLabel:
		all = append(all, source{name: c.Label, kind: numberSource})
	case ClassLabel:
		all = append(all, source{name: c.Label, kind: classSource})
	}
	add(c.Weight, weightSource)
	add(c.Offset, offsetSource)
	add(c.Censor, censorSource)
	return all
}

// role is what messages call the column's use.
func (s source) role() string {
	switch s.kind {
	case weightSource:
		return "weight"
	case offsetSource:
		return "offset"
	case censorSource:
		return "censor"
	case featuresSource:
		return "features"
	}
	return "label"
}

// as is the name of the column among the checked rows.
func (s source) as() string {
	switch s.kind {
	case weightSource:
		return weightColumn
	case offsetSource:
		return offsetColumn
	case censorSource:
		return censorColumn
	}
	return labelColumn
}

// takes reports whether a column of a type will do.
func (s source) takes(dt arrow.DataType) error {
	switch {
	case s.kind == classSource && dt.ID() == arrow.BINARY:
		return fmt.Errorf("label: column %q is binary, which has no text that names its classes: make it text", s.name)
	case s.kind == classSource && isScalar(dt), s.kind != classSource && isNumber(dt):
		return nil
	case s.kind == classSource:
		return fmt.Errorf("label: column %q is %s: classes are numbers, text, bools, dates or times", s.name, batch.TypeName(dt))
	case s.kind == numberSource && isScalar(dt):
		return fmt.Errorf("label: column %q is %s, not a number: only classifiers take other labels", s.name, batch.TypeName(dt))
	}
	return fmt.Errorf("%s: column %q is %s, not a number", s.role(), s.name, batch.TypeName(dt))
}

// refuses says why a number will not do, "" where it does, and whether Skip may leave
// such a row out.
func (s source) refuses(v float64) (problem string, skippable bool) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "is " + numberText(v), true
	case s.kind == weightSource && v < 0:
		return fmt.Sprintf("is %v; a weight is 0 or more", v), false
	case s.kind == censorSource && v != 0 && v != 1:
		return fmt.Sprintf("is %v; want 1 where the event was seen, 0 where it was not", v), false
	}
	return "", false
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

// isNumber says that a column can be taken as float64: numbers, and bools as 0 and 1.
func isNumber(dt arrow.DataType) bool {
	return arrow.IsInteger(dt.ID()) || dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32 || dt.ID() == arrow.BOOL
}

// isScalar says that a column can be a class.
func isScalar(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY, arrow.DATE32, arrow.TIMESTAMP:
		return true
	}
	return isNumber(dt)
}

// NumberAt returns a value of a column of numbers or bools as float64.
func NumberAt(column arrow.Array, i int) float64 {
	switch arr := column.(type) {
	case *array.Float64:
		return arr.Value(i)
	case *array.Float32:
		return float64(arr.Value(i))
	case *array.Int8:
		return float64(arr.Value(i))
	case *array.Int16:
		return float64(arr.Value(i))
	case *array.Int32:
		return float64(arr.Value(i))
	case *array.Int64:
		return float64(arr.Value(i))
	case *array.Uint8:
		return float64(arr.Value(i))
	case *array.Uint16:
		return float64(arr.Value(i))
	case *array.Uint32:
		return float64(arr.Value(i))
	case *array.Uint64:
		return float64(arr.Value(i))
	case *array.Boolean:
		if arr.Value(i) {
			return 1
		}
		return 0
	}
	return math.NaN()
}

// numbers returns a number column as float64, owned; what a null stands as does not
// matter, as its row is refused or skipped.
func numbers(mem memory.Allocator, column arrow.Array) arrow.Array {
	if column.DataType().ID() == arrow.FLOAT64 && column.NullN() == 0 {
		column.Retain()
		return column
	}
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.Reserve(column.Len())
	for i := range column.Len() {
		v := 0.0
		if !column.IsNull(i) {
			v = NumberAt(column, i)
		}
		b.UnsafeAppend(v)
	}
	return b.NewArray()
}

// doublePrecision returns the vector type of float64 for one of float32.
func doublePrecision(dt arrow.DataType) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfNonNullable(t.Len(), arrow.PrimitiveTypes.Float64)
	case *arrow.ListType:
		return batch.VariableVectorType()
	}
	return dt
}

// toFloat64 returns vectors of float32 as vectors of float64, others as they are;
// the result is owned.
func toFloat64(mem memory.Allocator, vectors arrow.Array) arrow.Array {
	var singles *array.Float32
	var ok bool
	switch arr := vectors.(type) {
	case *array.FixedSizeList:
		singles, ok = arr.ListValues().(*array.Float32)
	case *array.List:
		singles, ok = arr.ListValues().(*array.Float32)
	}
	if !ok {
		vectors.Retain()
		return vectors
	}
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.Reserve(singles.Len())
	for _, v := range singles.Float32Values() {
		b.UnsafeAppend(float64(v))
	}
	doubles := b.NewArray()
	defer doubles.Release()
	d := vectors.Data()
	data := array.NewData(doublePrecision(vectors.DataType()), d.Len(), d.Buffers(), []arrow.ArrayData{doubles.Data()}, d.NullN(), d.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}
