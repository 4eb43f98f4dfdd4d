package operators

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// pick returns the indices of the named columns, and a schema of these columns. nil means all
// columns.
func pick(schema *arrow.Schema, names []string) ([]int, *arrow.Schema, error) {
	if names == nil {
		for _, f := range schema.Fields() {
			names = append(names, f.Name)
		}
	}
	columns, fields := make([]int, len(names)), make([]arrow.Field, len(names))
	for i, name := range names {
		at, err := batch.FindColumn(schema, name)
		if err == nil && slices.Contains(columns[:i], at) {
			err = fmt.Errorf("column %q is selected twice", name)
		}
		if err != nil {
			return nil, nil, err
		}
		columns[i], fields[i] = at, schema.Field(at)
	}
	return columns, arrow.NewSchema(fields, nil), nil
}

// leftColumn is a column whose type rows cannot have.
type leftColumn struct{ Name, Type, Problem string }

// LeftOutColumns is the key under which the plan shows the columns of files that are left out,
// with their types.
const LeftOutColumns = "left out"

// leftOut calls LeaveOut for the columns whose types rows cannot have, and returns these
// columns as attributes for the plan. It returns an error if Columns names such a column, or if
// both Columns and LeaveOut are nil.
func (f RowFormat) leftOut(path string, facts rowFacts) (attrs []engine.Attr, err error) {
	var told []string
	for _, c := range facts.LeftOut {
		if f.LeaveOut == nil && f.Columns == nil || slices.Contains(f.Columns, c.Name) {
			return nil, fmt.Errorf("input %s: column %.60q: %s", path, c.Name, c.Problem)
		}
		if f.Columns == nil {
			f.LeaveOut(c.Name, c.Problem)
			told = append(told, fmt.Sprintf("%q (%s)", c.Name, c.Type))
		}
	}
	if len(facts.Columns) == 0 && len(told) > 0 {
		return nil, fmt.Errorf("input %s: column %.60q: %s; and so it is with all columns", path, facts.LeftOut[0].Name, facts.LeftOut[0].Problem)
	}
	if len(told) > 0 {
		attrs = append(attrs, engine.Attr{Key: LeftOutColumns, Value: fmt.Sprintf("columns of %s whose types are not supported are left out: %s", path, humanize.List(told, ", ", 12))})
	}
	return attrs, nil
}

// PandasKey is the key of a schema's metadata under which pandas describes its data frame, in
// JSON.
const PandasKey = "pandas"

// IndexColumn is the key under which the plan shows a column that is an index of a pandas data
// frame.
const IndexColumn = "index of pandas"

// indexOf returns the columns of a schema that are an index of a pandas data frame, according
// to the schema's metadata. A RangeIndex of pandas has no column.
func indexOf(schema *arrow.Schema) []string {
	text, ok := schema.Metadata().GetValue(PandasKey)
	if !ok {
		return nil
	}
	var told struct {
		Index []any `json:"index_columns"`
	}
	if json.Unmarshal([]byte(text), &told) != nil {
		return nil
	}
	var index []string
	for _, column := range told.Index {
		if name, ok := column.(string); ok && schema.HasField(name) && !slices.Contains(index, name) {
			index = append(index, name)
		}
	}
	return index
}

// pandasMetadata returns metadata that consist of only the entry of pandas in the schema's
// metadata.
func pandasMetadata(schema *arrow.Schema) *arrow.Metadata {
	text, ok := schema.Metadata().GetValue(PandasKey)
	if !ok {
		return nil
	}
	m := arrow.NewMetadata([]string{PandasKey}, []string{text})
	return &m
}

// indexed calls Index for the columns to read that are an index of a pandas data frame, and
// returns these columns as attributes for the plan.
func (f RowFormat) indexed(facts rowFacts, read *arrow.Schema) (attrs []engine.Attr) {
	for _, column := range facts.Index {
		if !read.HasField(column) {
			continue
		}
		attrs = append(attrs, engine.Attr{Key: IndexColumn, Value: column})
		if f.Index != nil {
			f.Index(column)
		}
	}
	return attrs
}
