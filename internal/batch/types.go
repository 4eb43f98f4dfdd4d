package batch

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// sizeKey is the metadata key for the size of a sparse vector type. It is set in the metadata
// of the field "indices" in the struct type. So the size is part of the arrow.DataType: IPC and
// Parquet preserve it, and Schema.Equal compares it.
const sizeKey = "superstep.size"

// MaxDim is the largest dimension of a dense vector, and the largest size of a sparse vector.
// Arrow counts components in 32 bits.
const MaxDim = math.MaxInt32

// VectorType returns the type vector[dim]: dim float64 values per row in one
// contiguous block, dim from 1 to MaxDim.
func VectorType(dim int) (arrow.DataType, error) {
	return fixedVector(dim, arrow.PrimitiveTypes.Float64)
}

// Vector32Type returns the type vector32[dim], which is VectorType(dim) with float32 values.
func Vector32Type(dim int) (arrow.DataType, error) {
	return fixedVector(dim, arrow.PrimitiveTypes.Float32)
}

func fixedVector(dim int, elem arrow.DataType) (arrow.DataType, error) {
	if dim < 1 || dim > MaxDim {
		return nil, fmt.Errorf("dimension %d of a vector is not between 1 and %d", dim, MaxDim)
	}
	return arrow.FixedSizeListOfNonNullable(int32(dim), elem), nil
}

// VariableVectorType returns the type vector: a list of float64 whose length
// may differ from row to row.
func VariableVectorType() arrow.DataType {
	return arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)
}

// VariableVector32Type returns the type vector32: a list of float32 whose length may differ
// from row to row.
func VariableVector32Type() arrow.DataType {
	return arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float32)
}

// SparseType returns the type sparse[size], a struct of two lists of equal length: indices
// (int32, ascending, below size) and values (float64). For size 0 it returns the type sparse,
// whose size is unknown.
func SparseType(size int) (arrow.DataType, error) {
	if size < 0 || size > MaxDim {
		return nil, fmt.Errorf("size %d of a sparse vector is not between 0 and %d", size, MaxDim)
	}
	indices := arrow.Field{Name: "indices", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)}
	if size > 0 {
		indices.Metadata = arrow.NewMetadata([]string{sizeKey}, []string{strconv.Itoa(size)})
	}
	values := arrow.Field{Name: "values", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)}
	return arrow.StructOf(indices, values), nil
}

// sparseSize returns the size that a sparse type declares, or 0 if it declares none.
func sparseSize(dt arrow.DataType) int {
	text, ok := dt.(*arrow.StructType).Field(0).Metadata.GetValue(sizeKey)
	if !ok {
		return 0
	}
	size, err := strconv.ParseInt(text, 10, 32)
	if err != nil || size < 0 {
		return 0
	}
	return int(size)
}

// scalarTypes has the types without parameters and their text forms.
var scalarTypes = []struct {
	name string
	dt   arrow.DataType
}{
	{"bool", arrow.FixedWidthTypes.Boolean},
	{"int8", arrow.PrimitiveTypes.Int8},
	{"int16", arrow.PrimitiveTypes.Int16},
	{"int32", arrow.PrimitiveTypes.Int32},
	{"int64", arrow.PrimitiveTypes.Int64},
	{"uint8", arrow.PrimitiveTypes.Uint8},
	{"uint16", arrow.PrimitiveTypes.Uint16},
	{"uint32", arrow.PrimitiveTypes.Uint32},
	{"uint64", arrow.PrimitiveTypes.Uint64},
	{"float32", arrow.PrimitiveTypes.Float32},
	{"float64", arrow.PrimitiveTypes.Float64},
	{"utf8", arrow.BinaryTypes.String},
	{"binary", arrow.BinaryTypes.Binary},
	{"date32", arrow.FixedWidthTypes.Date32},
}

var timeUnits = []struct {
	name string
	unit arrow.TimeUnit
}{{"s", arrow.Second}, {"ms", arrow.Millisecond}, {"us", arrow.Microsecond}, {"ns", arrow.Nanosecond}}

// TypeName returns the text form of a type. ParseType(TypeName(dt)) is dt for every supported
// type. For a type that is not supported it returns Arrow's notation, so that messages can name
// the type.
func TypeName(dt arrow.DataType) string {
	switch kindOf(dt) {
	case kindInvalid:
		if dt == nil {
			return "none"
		}
		return dt.String()
	case kindTimestamp:
		ts := dt.(*arrow.TimestampType)
		if ts.TimeZone == "" {
			return "timestamp[" + ts.Unit.String() + "]"
		}
		return "timestamp[" + ts.Unit.String() + ", " + ts.TimeZone + "]"
	case kindVector:
		return "vector[" + strconv.Itoa(int(dt.(*arrow.FixedSizeListType).Len())) + "]"
	case kindVector32:
		return "vector32[" + strconv.Itoa(int(dt.(*arrow.FixedSizeListType).Len())) + "]"
	case kindList:
		return "vector"
	case kindList32:
		return "vector32"
	case kindSparse:
		if size := sparseSize(dt); size > 0 {
			return "sparse[" + strconv.Itoa(size) + "]"
		}
		return "sparse"
	}
	for _, s := range scalarTypes {
		if s.dt.ID() == dt.ID() {
			return s.name
		}
	}
	return dt.String()
}

// ParseType returns the type with the given text form. The error suggests similar type names.
func ParseType(text string) (arrow.DataType, error) {
	name, param, hasParam := strings.TrimSpace(text), "", false
	if open := strings.IndexByte(name, '['); open >= 0 {
		if !strings.HasSuffix(name, "]") {
			return nil, fmt.Errorf("type %q has no closing bracket", text)
		}
		name, param, hasParam = name[:open], strings.TrimSpace(name[open+1:len(name)-1]), true
	}
	switch name {
	case "vector", "vector32", "sparse":
		return parseVectorType(text, name, param, hasParam)
	case "timestamp":
		return parseTimestampType(text, param, hasParam)
	}
	for _, s := range scalarTypes {
		if s.name == name {
			if hasParam {
				return nil, fmt.Errorf("type %q: %s takes no parameter", text, name)
			}
			return s.dt, nil
		}
	}
	return nil, unknownType(text, name)
}

func unknownType(text, name string) error {
	known := make([]string, 0, len(scalarTypes)+4)
	for _, s := range scalarTypes {
		known = append(known, s.name)
	}
	known = append(known, "timestamp[us]", "vector", "vector32", "sparse")
	if near := spelling.Near(name, known); len(near) > 0 {
		return fmt.Errorf("unknown type %q; did you mean %s?", text, strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown type %q; the types are %s, and vector[d], vector32[d], sparse[size]", text, strings.Join(known, ", "))
}

func parseVectorType(text, name, param string, hasParam bool) (arrow.DataType, error) {
	n := 0
	if hasParam {
		var err error
		if n, err = strconv.Atoi(param); err != nil || n < 1 || n > MaxDim || param != strconv.Itoa(n) {
			return nil, fmt.Errorf("type %q: %q is not a number between 1 and %d", text, param, MaxDim)
		}
	}
	switch {
	case name == "sparse":
		return SparseType(n)
	case name == "vector" && !hasParam:
		return VariableVectorType(), nil
	case name == "vector":
		return VectorType(n)
	case !hasParam:
		return VariableVector32Type(), nil
	}
	return Vector32Type(n)
}

func parseTimestampType(text, param string, hasParam bool) (arrow.DataType, error) {
	if !hasParam {
		return nil, fmt.Errorf("type %q needs a unit: timestamp[s], timestamp[ms], timestamp[us] or timestamp[ns]", text)
	}
	unit, zone, hasZone := strings.Cut(param, ",")
	unit, zone = strings.TrimSpace(unit), strings.TrimSpace(zone)
	if hasZone && zone == "" {
		return nil, fmt.Errorf("type %q has an empty time zone", text)
	}
	for _, u := range timeUnits {
		if u.name == unit {
			return &arrow.TimestampType{Unit: u.unit, TimeZone: zone}, nil
		}
	}
	return nil, fmt.Errorf("type %q: the unit %q is not one of s, ms, us, ns", text, unit)
}
