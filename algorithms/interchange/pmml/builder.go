package pmml

import (
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// maxFields bounds the number of fields of a file, because each component of a vector is a
// field.
const maxFields = 1 << 20

// builder builds the document of a model, stage by stage. It keeps the first error.
type builder struct {
	data    []element // the DataFields of inputs
	target  []element // the DataFields of predicted fields
	derived []element
	models  []element
	active  []string // names of the data fields that are read
	taken   map[string]bool
	columns map[string]*column
	refs    []string // the members of the payload whose numbers are in the model's element
	err     error
}

// column is a column of the rows, or a column that a stage makes. It has a field for each
// component.
type column struct {
	name, kind string
	fields     []string
	text       bool
}

func newBuilder() *builder {
	return &builder{taken: map[string]bool{}, columns: map[string]*column{}}
}

func (b *builder) fail(format string, a ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, a...)
	}
}

// name returns a name that no field has yet. It is want, with a number appended if needed.
func (b *builder) name(want string) string {
	if len(b.taken) >= maxFields {
		b.fail("each component of a vector is a field, and a file has at most %d", maxFields)
	}
	name := want
	for i := 2; b.taken[name]; i++ {
		name = want + "_" + strconv.Itoa(i)
	}
	b.taken[name] = true
	return name
}

// sizeOf returns the number of components of a column, or 0 if its type does not have the
// number.
func sizeOf(kind string) int {
	if !model.IsVector(kind) {
		return 1
	}
	return model.VectorDim(kind)
}

// input declares a column of the rows. Its fields are added when a stage reads it.
func (b *builder) input(in model.Input) {
	c := &column{name: in.Column, kind: in.Type, text: in.Type == "utf8"}
	if in.Type == "binary" {
		b.fail("column %q is binary, which PMML has no type for", in.Column)
	}
	b.columns[in.Column] = c
}

// dataType returns the PMML type of fields for the type of a column.
func dataType(kind string) string {
	switch {
	case kind == "utf8":
		return "string"
	case kind == "float64" || kind == "float32" || model.IsVector(kind):
		return "double"
	}
	return "integer"
}

// find returns a column with n fields and marks it as read. If n is 0, the number of fields
// follows from the column's type.
func (b *builder) find(name string, n int) *column {
	c := b.columns[name]
	if c == nil {
		b.fail("column %q is made by no stage, or by a model: PMML does not pass its results on", name)
		return &column{name: name, fields: make([]string, 1)}
	}
	if c.fields == nil { // it is an input that is read for the first time
		if n == 0 {
			n = sizeOf(c.kind)
		}
		if n == 0 {
			b.fail("column %q is %s: its size must be known", name, c.kind)
		}
		if n > maxFields {
			b.fail("each component of a vector is a field, and a file has at most %d", maxFields)
			n = 0
		}
		op := "continuous"
		if c.text {
			op = "categorical"
		}
		for j := range n {
			field := c.name
			if model.IsVector(c.kind) {
				field = fmt.Sprintf("%s[%d]", c.name, j)
			}
			field = b.name(field)
			c.fields = append(c.fields, field)
			b.active = append(b.active, field)
			b.data = append(b.data, el("DataField", "name", field, "optype", op, "dataType", dataType(c.kind)))
		}
	}
	if n != 0 && n != len(c.fields) {
		b.fail("column %q has %d components: want %d", name, len(c.fields), n)
		return &column{name: name, fields: make([]string, 1)}
	}
	return c
}

// numbers returns the n fields of a column of numbers.
func (b *builder) numbers(name string, n int) []string {
	c := b.find(name, n)
	if c.text {
		b.fail("column %q is text: want numbers", name)
	}
	return c.fields
}

// join returns the concatenated fields of columns.
func (b *builder) join(names []string, widths []int) []string {
	var all []string
	for i, name := range names {
		if widths[i] == 0 {
			b.fail("column %q has no components", name)
		}
		all = append(all, b.numbers(name, widths[i])...)
		if len(all) > maxFields {
			b.fail("each component of a vector is a field, and a file has at most %d", maxFields)
		}
		if b.err != nil {
			return nil
		}
	}
	return all
}

// derive adds a derived field and returns its name.
func (b *builder) derive(want, op, kind string, expression element) string {
	name := b.name(want)
	b.derived = append(b.derived, el("DerivedField", "name", name, "optype", op, "dataType", kind).with(expression))
	return name
}

// deriveNumber does what derive does, for a field that is a number.
func (b *builder) deriveNumber(want string, expression element) string {
	return b.derive(want, "continuous", "double", expression)
}

// output makes fields the column with the given name for the following stages.
func (b *builder) output(name, kind string, fields ...string) {
	b.columns[name] = &column{name: name, kind: kind, fields: fields, text: kind == "utf8"}
}

// componentName returns the name of the field for component j of a column.
func componentName(column string, j int, vector bool) string {
	if !vector {
		return column
	}
	return fmt.Sprintf("%s[%d]", column, j)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func fieldRef(name string) element { return el("FieldRef", "field", name) }

// constant returns the expression of a constant number.
func (b *builder) constant(v float64) element {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		b.fail("PMML has no constant %v", v)
	}
	e := el("Constant", "dataType", "double")
	e.text = number(v)
	return e
}

func apply(function string, arguments ...element) element {
	return el("Apply", "function", function).with(arguments...)
}

// sum returns an expression for the sum of terms, as a balanced tree, which bounds its depth.
// Unlike with PMML's function "sum", the result is missing if a term is missing.
func sum(terms []element) element {
	if len(terms) == 1 {
		return terms[0]
	}
	half := len(terms) / 2
	return apply("+", sum(terms[:half]), sum(terms[half:]))
}
