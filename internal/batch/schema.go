package batch

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// Column describes one column of a schema without Arrow types, for graphs, plans, facts and
// messages, which must not depend on Arrow.
type Column struct {
	Name     string // unique within a schema
	Type     string // text form, see ParseType
	Nullable bool   // whether a value may be null
}

// String returns "name type", followed by " null" if the column is nullable.
func (c Column) String() string {
	if c.Nullable {
		return c.Name + " " + c.Type + " null"
	}
	return c.Name + " " + c.Type
}

// Columns returns the columns of a schema.
func Columns(schema *arrow.Schema) []Column {
	cols := make([]Column, schema.NumFields())
	for i := range cols {
		f := schema.Field(i)
		cols[i] = Column{Name: f.Name, Type: TypeName(f.Type), Nullable: f.Nullable}
	}
	return cols
}

// Schema returns the schema with the given columns. Names must be unique and not empty, and
// types must be supported.
func Schema(cols []Column) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(cols))
	seen := make(map[string]int, len(cols))
	for i, c := range cols {
		if c.Name == "" {
			return nil, fmt.Errorf("column %d has no name", i+1)
		}
		if first, dup := seen[c.Name]; dup {
			return nil, bothNamed(first, i, c.Name)
		}
		seen[c.Name] = i
		dt, err := ParseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quote(c.Name), err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: dt, Nullable: c.Nullable}
	}
	return arrow.NewSchema(fields, nil), nil
}

func bothNamed(i, j int, name string) error {
	return fmt.Errorf("columns %d and %d are both named %s", i+1, j+1, quote(name))
}

// DistinctNames returns an error if two columns of a schema have the same name. The schema may
// come from outside, with column names of any length.
func DistinctNames(schema *arrow.Schema) error {
	for i, f := range schema.Fields() {
		if same := schema.FieldIndices(f.Name); same[0] < i {
			return bothNamed(same[0], i, f.Name)
		}
	}
	return nil
}

// NormalizeSchema returns the schema without the properties that the engine ignores: metadata
// of the schema and of fields, and names and nullability of list items. So Schema.Equal is true
// for schemas that mean the same, and TypeName describes the types completely. If a type is not
// supported, the error names the column.
func NormalizeSchema(schema *arrow.Schema) (*arrow.Schema, error) {
	fields := make([]arrow.Field, schema.NumFields())
	for i := range fields {
		f := schema.Field(i)
		dt, err := normalType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quote(f.Name), err)
		}
		fields[i] = arrow.Field{Name: f.Name, Type: dt, Nullable: f.Nullable}
	}
	return arrow.NewSchema(fields, nil), nil
}

func normalType(dt arrow.DataType) (arrow.DataType, error) {
	if kindOf(dt) == kindInvalid {
		return nil, unsupported(dt)
	}
	return ParseType(TypeName(dt))
}

// unsupported returns the error for a type that is not supported, with a suggestion.
func unsupported(dt arrow.DataType) error {
	way := "write the column as another type"
	switch dt.ID() {
	case arrow.NULL:
		way = "it has no values: leave the column out of the file, or give it a type"
	case arrow.DECIMAL128, arrow.DECIMAL256, arrow.FLOAT16:
		way = "write the column as float64"
	case arrow.DATE64, arrow.TIME32, arrow.TIME64, arrow.DURATION:
		way = "write the column as a timestamp, or as a number"
	case arrow.STRUCT, arrow.MAP:
		way = "write its fields as columns of their own"
	case arrow.STRING_VIEW:
		way = "write the column as utf8"
	case arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		way = "write the column as binary"
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		way = "only lists of float64 or float32 are, as vectors"
	}
	return fmt.Errorf("type %s is not supported; %s", cutText(TypeName(dt)), way)
}

// FindColumn returns the index of the column with the given name. The error suggests similar
// names and lists the columns.
func FindColumn(schema *arrow.Schema, name string) (int, error) {
	switch found := schema.FieldIndices(name); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return -1, missingColumn(schema, name)
	default:
		return -1, fmt.Errorf("%d columns are named %s; rename them first", len(found), quote(name))
	}
}

func missingColumn(schema *arrow.Schema, name string) error {
	names := fieldNames(schema)
	if near := spelling.Near(name, names); len(near) > 0 {
		return fmt.Errorf("no column %s; did you mean %s? (columns: %s)", quote(name), quoteAll(near, " or "), describe(schema))
	}
	return fmt.Errorf("no column %s (columns: %s)", quote(name), describe(schema))
}

func fieldNames(schema *arrow.Schema) []string {
	names := make([]string, schema.NumFields())
	for i := range names {
		names[i] = schema.Field(i).Name
	}
	return names
}

// maxDescribed bounds the number of columns that a message lists, because wide tables have
// thousands.
const maxDescribed = 24

func describe(schema *arrow.Schema) string {
	cols := Columns(schema)
	if len(cols) == 0 {
		return "none"
	}
	parts := make([]string, 0, maxDescribed+1)
	for i, c := range cols {
		if i == maxDescribed {
			parts = append(parts, fmt.Sprintf("and %d more", len(cols)-i))
			break
		}
		c.Name, c.Type = cutText(c.Name), cutText(c.Type)
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}

func quoteAll(names []string, sep string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	return strings.Join(quoted, sep)
}
