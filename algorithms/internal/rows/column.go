package rows

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Use says how the values of a column are used.
type Use int

const (
	Number Use = iota // numbers; bools are used as 0 and 1
	Class             // classes, whose names are numbers, text, bools, dates or times
	Scalar            // values that are only compared for equality: all types but vectors
	Vector
	Component // numbers, bools or vectors of a fixed size, to be joined into one vector
)

// Column describes a column that an algorithm reads, and the conditions on its values.
type Column struct {
	Name string
	Use  Use
	// Role is the noun for the value in messages about a row, such as "weight". If Role is
	// empty, these messages name only the column.
	Role string
	// Option is the first word of messages about the column as a whole. If Option is empty,
	// these messages begin with Role.
	Option string
	// Help is the last part of the message about a column of a wrong type.
	Help string
	// Range is the range of allowed numbers. For vectors, Range only decides whether components
	// may be infinite or NaN: both are allowed if the range contains infinities.
	Range
	// Missing allows nulls and NaN.
	Missing bool
	// Required refuses a row without a usable value in this column even if Checker.Skip is set.
	Required bool
	// As is the field of the column in the checked rows. If As.Type is nil, the values are not
	// converted.
	As arrow.Field
	// At is the index of the column in the schema; Bind sets it.
	At int
}

// Range is a range of numbers. NaN is in no range.
type Range struct {
	Least, Most float64
	Whole       bool   // whether only integers are in the range
	Want        string // the part of messages that says which numbers are in the range
}

// These are the ranges of numbers that columns may allow.
var (
	Finite  = Range{Least: -math.MaxFloat64, Most: math.MaxFloat64}
	Any     = Range{Least: math.Inf(-1), Most: math.Inf(1)}
	weights = Range{Most: math.MaxFloat64, Want: "a weight is 0 or more"}
	events  = Range{Most: 1, Whole: true, Want: "want 1 where the event was seen, 0 where it was not"}
)

// Has reports whether a number is in the range.
func (r *Range) Has(v float64) bool {
	return v >= r.Least && v <= r.Most && !(r.Whole && v != math.Trunc(v))
}

// Weights returns the column of the weights of rows.
func Weights(name string) Column {
	return Column{Name: name, Role: "weight", Range: weights, As: floatField(weightColumn)}
}

// Labels returns the column of labels of a kind.
func Labels(name string, kind LabelKind) Column {
	if kind == ClassLabel {
		return Column{Name: name, Role: "label", Use: Class, Range: Finite}
	}
	return Column{Name: name, Role: "label", Range: Finite, As: floatField(labelColumn), Help: "only classifiers take other labels"}
}

// floatField returns a field of type float64.
func floatField(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64}
}

// Bind finds the column in a schema and sets At. It returns an error if the column cannot be
// used.
func (c *Column) Bind(schema *arrow.Schema) error {
	i, err := batch.FindColumn(schema, c.Name)
	if err == nil {
		c.At = i
		err = c.takes(schema.Field(i).Type)
	}
	if option := cmp.Or(c.Option, c.Role); err != nil && option != "" {
		return fmt.Errorf("%s: %w", option, err)
	}
	return err
}

// takes returns an error if the column cannot have the type dt.
func (c *Column) takes(dt arrow.DataType) error {
	want, help := "", c.Help
	switch {
	case c.Use == Number && !batch.IsNumber(dt), c.Use == Component && !batch.IsNumber(dt) && dt.ID() != arrow.FIXED_SIZE_LIST:
		want = ", not a number"
		if batch.IsVector(dt) {
			help = ""
		}
	case c.Use == Class && dt.ID() == arrow.BINARY:
		want = ", which has no text that names its classes: make it text"
	case c.Use == Class && batch.IsVector(dt):
		want = ": classes are numbers, text, bools, dates or times"
	case c.Use == Scalar && batch.IsVector(dt):
		want = ": want numbers, text or another scalar type"
	case c.Use == Vector && !batch.IsVector(dt):
		want = ", not a vector"
	default:
		return nil
	}
	if help != "" {
		want += ": " + help
	}
	return fmt.Errorf("column %q is %s%s", c.Name, batch.TypeName(dt), want)
}

// says returns a message about the value of a row. problem is the rest of the sentence.
func (c *Column) says(problem string) string {
	if c.Role == "" {
		return fmt.Sprintf("column %q %s", c.Name, problem)
	}
	return fmt.Sprintf("column %q: the %s %s", c.Name, c.Role, problem)
}

// isFloat reports whether dt is float64 or float32, so that values may be NaN or infinite.
func isFloat(dt arrow.DataType) bool { return dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32 }

// Layout says how a dataset has the features of rows.
type Layout int

const (
	SeparateColumns Layout = iota // each feature in its own column
	DenseRows                     // vector[d]
	RaggedRows                    // vector: all vectors have the same length, which is known only from the data
	SparseRows                    // sparse, sparse[d]
)

// LayoutOf returns the layout of a vector column of type dt.
func LayoutOf(dt arrow.DataType) Layout {
	switch dt.(type) {
	case *arrow.FixedSizeListType:
		return DenseRows
	case *arrow.ListType:
		return RaggedRows
	}
	return SparseRows
}

// CheckNames returns an error if the names of columns contradict each other: features must be
// either one vector column or several columns, and no column may have two roles. An element of
// others without a name is a column that is not used.
func CheckNames(vector string, features []string, others ...Column) error {
	if vector != "" && len(features) > 0 {
		return fmt.Errorf("both a vector column, %q, and feature columns are named: name one or the others", vector)
	}
	role := map[string]string{}
	var errs []error
	note := func(as, name string) {
		if other, ok := role[name]; ok && name != "" {
			errs = append(errs, fmt.Errorf("column %q is named both as %s and as %s", name, other, as))
			return
		}
		role[name] = as
	}
	note("vector", vector)
	for _, name := range features {
		if name == "" {
			errs = append(errs, errors.New("a column has an empty name"))
		}
		note("feature", name)
	}
	for _, c := range others {
		note(c.Role, c.Name)
	}
	return errors.Join(errs...)
}

// OnlyVector returns the name of the only vector column of a schema, or an error if there is
// not exactly one.
func OnlyVector(schema *arrow.Schema) (string, error) {
	var found []string
	for _, f := range schema.Fields() {
		if batch.IsVector(f.Type) {
			found = append(found, f.Name)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("no features are named, and there is no vector column: name a vector column or feature columns")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("no features are named, and there are several vector columns (%s): name one", strings.Join(found, ", "))
}
