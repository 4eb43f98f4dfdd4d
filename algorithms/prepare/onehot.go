package prepare

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// OneHotEncoder makes a sparse vector of each value of a column: a component for each
// distinct value, in ascending order (numbers by value, text by bytes, false before true),
// of which that of the row's value is 1. It takes text, numbers, bools and dates, so that a
// StringIndexer need not come first. The type of what it makes is sparse, as the number of
// values is known only once it has run.
type OneHotEncoder struct {
	// Columns are the columns to encode. Required.
	Columns []string `json:"columns"`
	// Outputs names the vector columns; none means that they replace Columns.
	Outputs []string `json:"outputs,omitempty"`
	// DropLast leaves the component of the last value out, whose rows are all zeros, so that
	// the components are not collinear with an intercept.
	DropLast bool `json:"drop_last,omitempty"`
	// Unknown says what becomes of values that were not there in training, of null and of
	// NaN. Keep gives all of them component 0, and those of training the ones behind it;
	// Zeros gives them none.
	Unknown Unknown `json:"unknown"`
}

// Kind returns "one-hot-encoder".
func (OneHotEncoder) Kind() string { return "one-hot-encoder" }

// Validate tells what is wrong with the parameters, all of it.
func (p OneHotEncoder) Validate() error {
	return errors.Join(checkNames(p.Columns, p.Outputs), checkEnum(p.Unknown))
}

func (p OneHotEncoder) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	fields, err := find(schema, p.Columns, scalarColumns, "text, numbers, bools or dates")
	if err != nil {
		return nil, err
	}
	open, err := batch.SparseType(0)
	if err != nil {
		return nil, err
	}
	for i, name := range namesOf(p.Columns, p.Outputs) {
		fields[i] = arrow.Field{Name: name, Type: open}
	}
	return fields, nil
}

// Fit learns the distinct values.
func (p OneHotEncoder) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		return survey{
			name: p.Kind(), columns: p.Columns, passes: []pass{counting(all(len(p.Columns)))},
			finish: func(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
				values, err := orderCategories(f, p.Columns, inputs, ValueAscending)
				return &OneHotModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Params: p, Values: values}, err
			},
		}.add(rows)
	})
}

// Apply adds the vectors to rows.
func (p OneHotEncoder) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// OneHotModel is what a OneHotEncoder learned.
type OneHotModel struct {
	Learned `json:"-"`
	Params  OneHotEncoder `json:"params"`
	// Values are the distinct values of each column as text, in ascending order.
	Values [][]string `json:"values"`
}

// Size returns how many components the vectors of a column have.
func (m *OneHotModel) Size(column int) int {
	n := len(m.Values[column])
	if m.Params.Unknown == Keep {
		n++
	}
	if m.Params.DropLast {
		n--
	}
	return n
}

// Encode returns the model's file.
func (m *OneHotModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the vectors to rows, in place of the columns of their names.
func (m *OneHotModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *OneHotModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *OneHotModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	return checkValues(m.Params.Columns, m.Values)
}

// Bind implements model.Binder.
func (m *OneHotModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, namesOf(m.Params.Columns, m.Params.Outputs))
	if err != nil {
		return nil, err
	}
	var numbers []map[string]int
	for _, list := range m.Values {
		numbers = append(numbers, numbering(list))
	}
	return func(row []model.Cell) error {
		for i := range in {
			from, to := &row[in[i]], &row[out[i]]
			text, ok := categoryOf(from)
			at, known := numbers[i][string(text)]
			switch {
			case ok && known && m.Params.Unknown == Keep:
				at++
			case ok && known:
			case m.Params.Unknown == Keep:
				at = 0
			case m.Params.Unknown == Zeros:
				at = m.Size(i)
			case m.Params.Unknown == Skip:
				return model.ErrSkip
			default:
				return unknownValue(m.Params.Columns[i], from)
			}
			size := m.Size(i)
			if at >= size {
				to.MakeSparse(size, 0)
				continue
			}
			indices, values := to.MakeSparse(size, 1)
			indices[0], values[0] = int32(at), 1
		}
		return nil
	}, nil
}
