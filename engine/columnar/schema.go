package columnar

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Column describes a column: its name, its type as text (see the package documentation), and
// whether values may be missing.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable,omitempty"`
}

// String returns the name and the type, followed by "null" if values may be missing.
func (c Column) String() string { return batch.Column(c).String() }

// Schema lists the columns of rows. It is immutable. The zero value stands for no schema: a
// sink, for example, emits no rows and has no schema.
type Schema batch.SchemaHandle

func (s Schema) arrow() *arrow.Schema { return batch.SchemaHandle(s).Schema() }

// NewSchema returns the schema with the given columns. Their names must be distinct and not
// empty.
func NewSchema(columns ...Column) (Schema, error) {
	plain := make([]batch.Column, len(columns))
	for i, c := range columns {
		plain[i] = batch.Column(c)
	}
	schema, err := batch.Schema(plain)
	if err != nil {
		return Schema{}, fmt.Errorf("columnar: NewSchema: %w", err)
	}
	return Schema(batch.HandleOfSchema(schema)), nil
}

// MustSchema is like NewSchema, but panics if the columns are not valid. It is for columns that
// are known to be valid, such as in the initial value of a package variable.
func MustSchema(columns ...Column) Schema {
	s, err := NewSchema(columns...)
	if err != nil {
		panic(err)
	}
	return s
}

// IsZero reports whether the schema is the zero value. A schema that NewSchema made without
// columns is not the zero value.
func (s Schema) IsZero() bool { return s.arrow() == nil }

// Len returns the number of columns.
func (s Schema) Len() int {
	if s.IsZero() {
		return 0
	}
	return s.arrow().NumFields()
}

// Column returns column i. It panics if there is no column i.
func (s Schema) Column(i int) Column {
	if i < 0 || i >= s.Len() {
		panic(fmt.Errorf("columnar: there is no column %d in a schema of %d columns", i, s.Len()))
	}
	f := s.arrow().Field(i)
	return Column{Name: f.Name, Type: batch.TypeName(f.Type), Nullable: f.Nullable}
}

// Columns returns all columns.
func (s Schema) Columns() []Column {
	columns := make([]Column, s.Len())
	for i := range columns {
		columns[i] = s.Column(i)
	}
	return columns
}

// Index returns the index of the column with the given name, or -1 if there is none.
func (s Schema) Index(name string) int {
	if s.IsZero() {
		return -1
	}
	if i := s.arrow().FieldIndices(name); len(i) > 0 {
		return i[0]
	}
	return -1
}

// Equal reports whether s and other have the same columns in the same order.
func (s Schema) Equal(other Schema) bool {
	if s.IsZero() || other.IsZero() {
		return s.IsZero() == other.IsZero()
	}
	return s.arrow().Equal(other.arrow())
}

// String returns the columns, separated by commas.
func (s Schema) String() string {
	var text []string
	for _, c := range s.Columns() {
		text = append(text, c.String())
	}
	return strings.Join(text, ", ")
}
