package batch

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/apache/arrow/go/v15/arrow"
)

// Codec converts values of T to columns and back. NewCodec uses reflection; the code that runs
// for each row does not. A codec is immutable and safe for concurrent use; appenders and
// readers are not.
type Codec[T any] struct {
	fields []codecField
	schema *arrow.Schema
	single bool // T is a single value, not a struct of columns
}

// codecField is one struct field and its column. If T is not a struct, the codec has one
// codecField, which describes T itself.
type codecField struct {
	name    string // name of the column
	goName  string // Type.Field, for messages
	typ     reflect.Type
	offset  uintptr
	pointer bool // the field is a pointer: nil is null
	array   bool // the field, or the value that it points to, is a Go array such as [4]float64
	kind    kind // kind of the column
	dt      arrow.DataType
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	sparseType = reflect.TypeFor[SparseVector]()
)

// NewCodec returns a codec for T. It derives the columns from T.
//
// For a struct, every exported field is a column. The tag `column:"name"` sets the name of the
// column; without it, the name is the field's name in snake case. A field with `column:"-"` is
// ignored. Any other T has one column named "value". The column type follows from the Go type:
//
//	bool, int8 to int64, uint8 to uint64, float32, float64   the same
//	int, uint                     int64, uint64
//	string, []byte                utf8, binary
//	time.Time                     timestamp[us, UTC]
//	[]float64                     vector, or vector[n] with the option dim=n
//	[]float32                     vector32, or vector32[n] with dim=n
//	[n]float64, [n]float32        vector[n], vector32[n]
//	SparseVector                  sparse, or sparse[n] with the option size=n
//	pointer to any of these       the type for the value pointed to, nullable
//
// Options follow the name in the tag: `column:"features,dim=4"`. Named types, such as type
// Celsius float64, are treated as their underlying types. Nested structs, maps, interfaces,
// other slices and arrays, and pointers to pointers are errors that name the field.
func NewCodec[T any]() (*Codec[T], error) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Struct && t != timeType && t != sparseType {
		return structCodec[T](t)
	}
	f := codecField{name: "value", goName: t.String(), typ: t}
	if err := f.resolve(columnTag{}); err != nil {
		return nil, err
	}
	codec, err := newCodec[T]([]codecField{f})
	if err == nil {
		codec.single = true
	}
	return codec, err
}

func structCodec[T any](t reflect.Type) (*Codec[T], error) {
	var fields []codecField
	owner := make(map[string]string)
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			if _, tagged := sf.Tag.Lookup("column"); tagged {
				return nil, fmt.Errorf("%s.%s has a column tag but is not exported", t, sf.Name)
			}
			continue
		}
		goName := t.String() + "." + sf.Name
		tag, err := parseTag(sf)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", goName, err)
		}
		if tag.skip {
			continue
		}
		f := codecField{name: tag.name, goName: goName, typ: sf.Type, offset: sf.Offset}
		if err := f.resolve(tag); err != nil {
			return nil, err
		}
		if other, dup := owner[f.name]; dup {
			return nil, fmt.Errorf("%s and %s are both column %q", other, goName, f.name)
		}
		owner[f.name] = goName
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%s has no exported field to make a column of", t)
	}
	return newCodec[T](fields)
}

func newCodec[T any](fields []codecField) (*Codec[T], error) {
	af := make([]arrow.Field, len(fields))
	for i, f := range fields {
		af[i] = arrow.Field{Name: f.name, Type: f.dt, Nullable: f.pointer}
	}
	return &Codec[T]{fields: fields, schema: arrow.NewSchema(af, nil)}, nil
}

// For returns the codec that reads rows of a schema. It returns c, unless T is a single value
// and the schema has a single column. In that case it returns a codec that reads this column,
// whatever its name is.
func (c *Codec[T]) For(schema *arrow.Schema) *Codec[T] {
	if !c.single || schema.NumFields() != 1 || schema.Field(0).Name == c.fields[0].name {
		return c
	}
	field := c.fields[0]
	field.name = schema.Field(0).Name
	column := c.schema.Field(0)
	column.Name = field.name
	return &Codec[T]{fields: []codecField{field}, schema: arrow.NewSchema([]arrow.Field{column}, nil), single: true}
}

// Schema returns the columns of T.
func (c *Codec[T]) Schema() *arrow.Schema { return c.schema }

// columnTag is a parsed field tag.
type columnTag struct {
	name string
	skip bool
	dim  int // 0 if not given
	size int // 0 if not given
}

func parseTag(sf reflect.StructField) (columnTag, error) {
	text := sf.Tag.Get("column")
	if text == "-" {
		return columnTag{skip: true}, nil
	}
	parts := strings.Split(text, ",")
	tag := columnTag{name: strings.TrimSpace(parts[0])}
	if tag.name == "" {
		tag.name = snakeCase(sf.Name)
	}
	for _, opt := range parts[1:] {
		key, val, _ := strings.Cut(strings.TrimSpace(opt), "=")
		n, err := strconv.Atoi(val)
		if (key != "dim" && key != "size") || err != nil || n < 1 || n > MaxDim {
			return tag, fmt.Errorf("column tag option %q is neither dim=n nor size=n with n from 1 to %d", opt, MaxDim)
		}
		if key == "dim" {
			tag.dim = n
		} else {
			tag.size = n
		}
	}
	return tag, nil
}

// resolve determines the column type of a field.
func (f *codecField) resolve(tag columnTag) error {
	base := f.typ
	if base.Kind() == reflect.Pointer {
		f.pointer, base = true, base.Elem()
	}
	name, err := columnTypeOf(base, tag)
	if err != nil {
		return fmt.Errorf("%s of type %s: %w", f.goName, f.typ, err)
	}
	if f.dt, err = ParseType(name); err != nil {
		return fmt.Errorf("%s of type %s: %w", f.goName, f.typ, err)
	}
	f.kind, f.array = kindOf(f.dt), base.Kind() == reflect.Array
	return nil
}

func columnTypeOf(t reflect.Type, tag columnTag) (string, error) {
	list := t.Kind() == reflect.Slice || t.Kind() == reflect.Array
	vector := list && (t.Elem().Kind() == reflect.Float64 || t.Elem().Kind() == reflect.Float32)
	if tag.dim > 0 && !vector {
		return "", fmt.Errorf("the tag option dim is for []float64 and []float32 only")
	}
	dim := tag.dim
	if vector && t.Kind() == reflect.Array {
		if dim = t.Len(); dim == 0 {
			return "", fmt.Errorf("an array without elements is no vector; give it a length of at least 1")
		}
		if tag.dim > 0 && tag.dim != dim {
			return "", fmt.Errorf("the tag says dim=%d, the array has %d elements; leave the option out", tag.dim, dim)
		}
	}
	if tag.size > 0 && t != sparseType {
		return "", fmt.Errorf("the tag option size is for SparseVector only")
	}
	switch {
	case t == timeType:
		return "timestamp[us, UTC]", nil
	case t == sparseType:
		return withParam("sparse", tag.size), nil
	case vector && t.Elem().Kind() == reflect.Float64:
		return withParam("vector", dim), nil
	case vector:
		return withParam("vector32", dim), nil
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return t.Kind().String(), nil
	case reflect.Int, reflect.Uint:
		return t.Kind().String() + strconv.Itoa(strconv.IntSize), nil
	case reflect.String:
		return "utf8", nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "binary", nil
		}
	}
	return "", fmt.Errorf("not supported as a column; use a bool, number, string, []byte, time.Time, []float64, []float32, [n]float64, [n]float32, SparseVector or a pointer to one, or leave it out with the tag `column:\"-\"`")
}

func withParam(name string, n int) string {
	if n == 0 {
		return name
	}
	return name + "[" + strconv.Itoa(n) + "]"
}

// snakeCase returns the column name for a Go name: sepal_length for SepalLength, user_id for
// UserID, http_code for HTTPCode.
func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
