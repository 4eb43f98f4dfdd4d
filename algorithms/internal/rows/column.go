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
	Number Use = iota // numbers, and bools as 0 and 1
	Class             // names of classes: numbers, text, bools, dates and times
	Scalar            // values that are only compared for equality: all types but vectors
	Vector
	Component // numbers, bools and vectors of a fixed size, which are joined
)

// Column is a column that an algorithm reads, with the conditions on its values.
type Column struct {
	Name string
	Use  Use
	// Role is what messages about a row call the value, such as "weight". If it is empty, they
	// name the column alone.
	Role string
	// Option begins messages about the column as a whole; empty means Role.
	Option string
	// Help ends the message about a column of a wrong type.
	Help string
	// Range is the range of numbers. For vectors only one thing matters: if it contains
	// infinities, these and NaN are let through.
	Range
	// Missing lets nulls and NaN through.
	Missing bool
	// Required refuses a row without a usable value even where other such rows are left out.
	Required bool
	// As is the field of the column in the checked rows. Without a type, the values are not
	// converted.
	As arrow.Field
	// At is the index of the column; Bind sets it.
	At int
}

// Range is a range of numbers. NaN is in no range.
type Range struct {
	Least, Most float64
	Whole       bool   // only integers
	Want        string // what messages say about finite numbers outside
}

// Ranges of numbers.
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

// floatField is a field of float64.
func floatField(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64}
}

// Bind finds the column in a schema, or returns why it cannot be used.
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

// takes returns an error for a type that the column cannot have.
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

// says returns a message about the value of a row.
func (c *Column) says(problem string) string {
	if c.Role == "" {
		return fmt.Sprintf("column %q %s", c.Name, problem)
	}
	return fmt.Sprintf("column %q: the %s %s", c.Name, c.Role, problem)
}

// isFloat says that values may be NaN or infinite.
func isFloat(dt arrow.DataType) bool { return dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32 }

// Layout is how the features of rows are held.
type Layout int

const (
	SeparateColumns Layout = iota // each in a column
	DenseRows                     // vector[d]
	RaggedRows                    // vector: all of one length, known only from the data
	SparseRows                    // sparse, sparse[d]
)

// LayoutOf returns the layout of a vector column.
func LayoutOf(dt arrow.DataType) Layout {
	switch dt.(type) {
	case *arrow.FixedSizeListType:
		return DenseRows
	case *arrow.ListType:
		return RaggedRows
	}
	return SparseRows
}

// CheckNames returns what is wrong with the names of the features (a vector or several columns)
// and of the other columns. A name among others is empty where there is no such column. No
// column may have two roles.
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

// OnlyVector returns the name of the only vector column.
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
