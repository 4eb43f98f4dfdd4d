package batch

import (
	"fmt"
	"sort"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
)

// Column is one column of a schema as plain data, for graphs, plans, facts and
// messages, which must not depend on Arrow.
type Column struct {
	Name     string // unique within a schema
	Type     string // text form, see ParseType
	Nullable bool   // whether a value may be null
}

// String returns "name type", followed by " null" when the column is nullable.
func (c Column) String() string {
	if c.Nullable {
		return c.Name + " " + c.Type + " null"
	}
	return c.Name + " " + c.Type
}

// Columns returns the columns of a schema as plain data.
func Columns(schema *arrow.Schema) []Column {
	cols := make([]Column, schema.NumFields())
	for i := range cols {
		f := schema.Field(i)
		cols[i] = Column{Name: f.Name, Type: TypeName(f.Type), Nullable: f.Nullable}
	}
	return cols
}

// Schema builds a schema from plain columns. Names must be non-empty and
// unique, types must be known.
func Schema(cols []Column) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(cols))
	seen := make(map[string]int, len(cols))
	for i, c := range cols {
		if c.Name == "" {
			return nil, fmt.Errorf("column %d has no name", i+1)
		}
		if first, dup := seen[c.Name]; dup {
			return nil, fmt.Errorf("columns %d and %d are both named %q", first+1, i+1, c.Name)
		}
		seen[c.Name] = i
		dt, err := ParseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: dt, Nullable: c.Nullable}
	}
	return arrow.NewSchema(fields, nil), nil
}

// NormalizeSchema returns the schema with everything dropped that carries no
// meaning here: schema and field metadata, names and nullability of list
// items. Two schemas that mean the same are then Equal, and TypeName tells
// their types fully. A type that is not supported is an error naming the
// column.
func NormalizeSchema(schema *arrow.Schema) (*arrow.Schema, error) {
	fields := make([]arrow.Field, schema.NumFields())
	for i := range fields {
		f := schema.Field(i)
		dt, err := normalType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		fields[i] = arrow.Field{Name: f.Name, Type: dt, Nullable: f.Nullable}
	}
	return arrow.NewSchema(fields, nil), nil
}

func normalType(dt arrow.DataType) (arrow.DataType, error) {
	if kindOf(dt) == kindInvalid {
		return nil, fmt.Errorf("type %s is not supported", TypeName(dt))
	}
	return ParseType(TypeName(dt))
}

// FindColumn returns the index of the column of that name. The error tells
// near names and lists what there is.
func FindColumn(schema *arrow.Schema, name string) (int, error) {
	switch found := schema.FieldIndices(name); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return -1, missingColumn(schema, name)
	default:
		return -1, fmt.Errorf("%d columns are named %q; rename them first", len(found), name)
	}
}

func missingColumn(schema *arrow.Schema, name string) error {
	names := fieldNames(schema)
	if near := NearNames(name, names); len(near) > 0 {
		return fmt.Errorf("no column %q; did you mean %s? (columns: %s)", name, quoteAll(near, " or "), describe(schema))
	}
	return fmt.Errorf("no column %q (columns: %s)", name, describe(schema))
}

func fieldNames(schema *arrow.Schema) []string {
	names := make([]string, schema.NumFields())
	for i := range names {
		names[i] = schema.Field(i).Name
	}
	return names
}

// maxDescribed bounds the columns listed in a message: wide tables have
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
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}

func quoteAll(names []string, sep string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, sep)
}

// NearNames returns at most three of all that resemble name, nearest first:
// equal but for case, or within an edit distance of a third of the length (at
// least 1). Ties keep the order of all.
func NearNames(name string, all []string) []string {
	const most = 3
	type candidate struct {
		name string
		dist int
	}
	folded := strings.ToLower(name)
	limit := max(1, len(folded)/3)
	var near []candidate
	for _, other := range all {
		if other == name {
			continue
		}
		if d := editDistance(folded, strings.ToLower(other), limit); d <= limit {
			near = append(near, candidate{other, d})
		}
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].dist < near[j].dist })
	names := make([]string, 0, most)
	for _, c := range near[:min(most, len(near))] {
		names = append(names, c.name)
	}
	return names
}

// editDistance is the optimal string alignment distance over bytes (insert,
// delete, replace, swap of neighbours; Damerau 1964), or limit+1 when it is
// known to be above limit.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
