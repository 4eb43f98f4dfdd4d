package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Order is the order in which distinct values are numbered.
type Order int

const (
	// FrequencyDescending gives number 0 to the most frequent value. Equally frequent values
	// are numbered in ascending order.
	FrequencyDescending Order = iota
	// ValueAscending gives number 0 to the least value. Numbers are ordered by value, text by
	// bytes, and false comes before true.
	ValueAscending
	// ValueDescending gives number 0 to the largest value.
	ValueDescending
)

var orders = enum.Names[Order]{Type: "Order", What: "order", Names: []string{"frequency-descending", "value-ascending", "value-descending"}}

// String returns "frequency-descending", "value-ascending" or "value-descending".
func (o Order) String() string { return orders.String(o) }

// MarshalText implements encoding.TextMarshaler.
func (o Order) MarshalText() ([]byte, error) { return orders.Text(o) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (o *Order) UnmarshalText(text []byte) error { return orders.Parse(o, text) }

// StringIndexer numbers the distinct values of each column from 0 and replaces the values by
// these numbers, of type int64. It accepts text, numbers, bools and dates.
type StringIndexer struct {
	// Columns are the columns to number. Required.
	Columns []string `json:"columns"`
	// Outputs names the columns of numbers. If Outputs is empty, the columns of numbers replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Order is the order in which the values are numbered.
	Order Order `json:"order"`
	// Unknown says what happens to null, to NaN and to values that did not occur in training.
	// Keep gives all of them the same number, which is the number of distinct values.
	Unknown Unknown `json:"unknown"`
}

// Kind returns "string-indexer".
func (StringIndexer) Kind() string { return "string-indexer" }

// Validate returns everything that is wrong with the parameters.
func (p StringIndexer) Validate() error {
	errs := []error{checkNames(p.Columns, p.Outputs), checkEnum(p.Order), checkEnum(p.Unknown), p.Unknown.encoders()}
	return errors.Join(errs...)
}

func (p StringIndexer) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return indexFields(schema, p.Columns, p.Outputs, scalarColumns, "text, numbers, bools or dates")
}

// indexFields returns the output columns of an indexer, of type int64.
func indexFields(schema *arrow.Schema, columns, outputs []string, want columnKind, help string) ([]arrow.Field, error) {
	fields, err := find(schema, columns, want, help)
	if err != nil {
		return nil, err
	}
	for i, name := range OutputNames(columns, outputs) {
		fields[i] = arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64}
	}
	return fields, nil
}

// Fit learns the distinct values.
func (p StringIndexer) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		return survey{
			name: p.Kind(), columns: p.Columns, passes: []pass{counting(all(len(p.Columns)))},
			finish: func(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
				values, err := orderCategories(f, p.Columns, inputs, p.Order)
				return &IndexerModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Params: p, Values: values}, err
			},
		}.add(rows)
	})
}

// orderCategories returns the distinct values of each column in the order given by order.
func orderCategories(f *facts, columns []string, inputs []model.Input, order Order) ([][]string, error) {
	var values [][]string
	for i, list := range f.Categories.Columns {
		if len(list) == 0 {
			return nil, fmt.Errorf("column %q has no value: every row is null or NaN; leave it out", columns[i])
		}
		compare := compareValues(isNumber(inputs[i].Type))
		slices.SortFunc(list, func(a, b category) int {
			switch order {
			case FrequencyDescending:
				return cmp.Or(cmp.Compare(b.Count, a.Count), compare(a.Text, b.Text))
			case ValueDescending:
				return compare(b.Text, a.Text)
			}
			return compare(a.Text, b.Text)
		})
		texts := make([]string, len(list))
		for k, c := range list {
			texts[k] = c.Text
		}
		values = append(values, texts)
	}
	return values, nil
}

// Apply adds the columns of numbers to rows.
func (p StringIndexer) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// IndexerModel is what a StringIndexer learned.
type IndexerModel struct {
	Learned `json:"-"`
	Params  StringIndexer `json:"params"`
	// Values are the distinct values of each column as text, in the order of their numbers;
	// see model.Cell.Category.
	Values [][]string `json:"values"`
}

// Encode returns the model's file.
func (m *IndexerModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the columns of numbers to rows, replacing columns of the same names.
func (m *IndexerModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *IndexerModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *IndexerModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	return checkValues(m.Params.Columns, m.Values)
}

// checkValues checks that the lists of distinct values belong to columns and are valid.
func checkValues(columns []string, values [][]string) error {
	if len(values) != len(columns) {
		return fmt.Errorf("there are %d columns and values of %d", len(columns), len(values))
	}
	for i, list := range values {
		if n := len(numbering(list)); n != len(list) || n == 0 {
			return fmt.Errorf("column %q has %d values, of which %d are distinct", columns[i], len(list), n)
		}
	}
	return nil
}

// numbering returns the map from each value to its number.
func numbering(values []string) map[string]int {
	numbers := make(map[string]int, len(values))
	for i, v := range values {
		numbers[v] = i
	}
	return numbers
}

// unknownValue returns the error about an unknown value in a cell of a column.
func unknownValue(column string, c *model.Cell) error {
	e := &model.Refused{Cure: engine.FillOrLeaveOut, Advice: "set Unknown to say what to do with it"}
	text, ok := categoryOf(c)
	switch {
	case ok:
		e.Err, e.Cure = columnError(column, fmt.Errorf("%q was not there in training", text)), engine.LeaveOut
	case c.Kind == model.FloatCell:
		e.Err = columnError(column, errors.New("it is NaN"))
	default:
		e.Err = columnError(column, fmt.Errorf("it is %s", c.Kind))
	}
	return e
}

// Bind implements model.Binder.
func (m *IndexerModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, OutputNames(m.Params.Columns, m.Params.Outputs))
	if err != nil {
		return nil, err
	}
	var numbers []map[string]int
	for _, list := range m.Values {
		numbers = append(numbers, numbering(list))
	}
	return func(row []model.Cell) error {
		for i := range in {
			from := &row[in[i]]
			text, ok := categoryOf(from)
			number, known := numbers[i][string(text)]
			switch {
			case ok && known:
			case m.Params.Unknown == Keep:
				number = len(m.Values[i])
			case m.Params.Unknown == Skip:
				return model.ErrSkip
			default:
				return unknownValue(m.Params.Columns[i], from)
			}
			row[out[i]].SetInt(int64(number))
		}
		return nil
	}, nil
}

// exactInt is the number up to which float64 can represent all integers exactly.
const exactInt = 1 << 53

// CategoryNumber returns the float64 by which a category is represented where all columns are
// stored as float64. category is a category of a column whose type has the name kind in model
// files.
func CategoryNumber(kind, category string) (float64, error) {
	switch {
	case kind == "bool" && category == "true":
		return 1, nil
	case kind == "bool":
		return 0, nil
	}
	v, err := strconv.ParseFloat(category, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the category %q is no number", category)
	case kind != "float64" && kind != "float32" && math.Abs(v) > exactInt:
		return 0, fmt.Errorf("the category %s is an integer that float64 does not hold exactly", category)
	}
	return v, nil
}
