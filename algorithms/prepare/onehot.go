package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// OneHotEncoder turns each value of a column into a sparse vector. The vector has one component
// for each distinct value, in ascending order: numbers by value, text by bytes, false before
// true. The component of the row's value is 1. The encoder accepts text, numbers, bools and
// dates, so that no StringIndexer is needed before it. The type of the vector column has no
// size, because the number of distinct values is known only after the run.
type OneHotEncoder struct {
	// Columns are the columns to encode. Required.
	Columns []string `json:"columns"`
	// Outputs names the vector columns. If Outputs is empty, the vector columns replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// DropLast leaves out the component of the last value, so that the vector of that value is
	// all zeros. The components are then not collinear with an intercept.
	DropLast bool `json:"drop_last,omitempty"`
	// Unknown says what happens to null, to NaN and to values that did not occur in training.
	// Keep gives all of them component 0 and shifts the components of the known values by 1.
	// Zeros makes their vector all zeros, which with DropLast is also the vector of the last
	// value. Shares sets each component to the share of training rows that have the value of
	// the component. A function that is linear in the components then gives its average over
	// the training rows, with and without DropLast. If a column has more than 1,000 values,
	// only the 1,000 most frequent values have a share.
	Unknown Unknown `json:"unknown"`
	// RefuseMissing makes null and NaN errors, even if Unknown accepts unknown values.
	RefuseMissing bool `json:"refuse_missing,omitempty"`
	// NullMissing makes the vector null if the value is null or NaN, whatever Unknown says. It
	// cannot be combined with RefuseMissing.
	NullMissing bool `json:"null_missing,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more: how often each row counts
	// for Shares. The values of rows of weight 0 are not learned. Empty means that every row
	// counts once.
	WeightCol string `json:"weight_col,omitempty"`
}

// maxShared is the maximum number of values that have a share. It is thus the maximum number of
// entries in the vector for an unknown value if Unknown is Shares.
const maxShared = 1000

// Kind returns "one-hot-encoder".
func (OneHotEncoder) Kind() string { return "one-hot-encoder" }

// Validate returns everything that is wrong with the parameters.
func (p OneHotEncoder) Validate() error {
	errs := []error{checkNames(p.Columns, p.Outputs), checkEnum(p.Unknown)}
	if p.RefuseMissing && p.NullMissing {
		errs = append(errs, wrong("RefuseMissing and NullMissing are both set: null is an error or it makes null"))
	}
	return errors.Join(errs...)
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
	for i, name := range OutputNames(p.Columns, p.Outputs) {
		fields[i] = arrow.Field{Name: name, Type: open, Nullable: p.NullMissing}
	}
	return fields, nil
}

// Fit learns the distinct values.
func (p OneHotEncoder) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		return survey{
			name: p.Kind(), columns: p.Columns, weight: p.WeightCol, passes: []pass{counting(all(len(p.Columns)))},
			finish: func(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
				values, err := orderCategories(f, p.Columns, inputs, ValueAscending)
				m := &OneHotModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Params: p, Values: values}
				if err == nil && p.Unknown == Shares {
					m.Shares = sharesOf(f.Categories.Columns, values)
				}
				return m, err
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
	// Shares has, for each column, the shares of its values among the training rows. It is set
	// if Unknown is Shares.
	Shares [][]float64 `json:"shares,omitempty"`
}

// sharesOf returns the shares of the values of each column. The shares of a column sum to 1. If
// there are more than maxShared values, only the most frequent values have a share.
func sharesOf(columns [][]category, values [][]string) [][]float64 {
	all := make([][]float64, len(values))
	for i, list := range columns {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b category) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
		})
		list = list[:min(len(list), maxShared)]
		total := 0.0
		for _, c := range list {
			total += c.Count
		}
		numbers := numbering(values[i])
		all[i] = make([]float64, len(values[i]))
		for _, c := range list {
			all[i][numbers[c.Text]] = c.Count / total
		}
	}
	return all
}

// Size returns the number of components of the vectors for a column.
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

// Transform adds the vectors to rows, replacing columns of the same names.
func (m *OneHotModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *OneHotModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *OneHotModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	if err := checkValues(m.Params.Columns, m.Values); err != nil || m.Params.Unknown != Shares {
		return err
	}
	if len(m.Shares) != len(m.Values) {
		return fmt.Errorf("there are %d columns and shares of %d", len(m.Values), len(m.Shares))
	}
	for i, list := range m.Shares {
		if len(list) != len(m.Values[i]) {
			return fmt.Errorf("column %q has %d values and %d shares", m.Params.Columns[i], len(m.Values[i]), len(list))
		}
		for _, share := range list {
			if !(share >= 0 && share <= 1) {
				return fmt.Errorf("column %q has a value of which the share is %v", m.Params.Columns[i], share)
			}
		}
	}
	return nil
}

// average returns the entries of the vector for an unknown value of a column, in the order of
// their indices. It returns no entries unless Unknown is Shares.
func (m *OneHotModel) average(column int) (indices []int32, values []float64) {
	if m.Params.Unknown != Shares {
		return nil, nil
	}
	for k, share := range m.Shares[column][:m.Size(column)] {
		if share > 0 {
			indices, values = append(indices, int32(k)), append(values, share)
		}
	}
	return indices, values
}

// Bind implements model.Binder.
func (m *OneHotModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, OutputNames(m.Params.Columns, m.Params.Outputs))
	if err != nil {
		return nil, err
	}
	var numbers []map[string]int
	indices, shares := make([][]int32, len(in)), make([][]float64, len(in))
	for i, list := range m.Values {
		numbers = append(numbers, numbering(list))
		indices[i], shares[i] = m.average(i)
	}
	return func(row []model.Cell) error {
		for i := range in {
			from, to := &row[in[i]], &row[out[i]]
			text, ok := categoryOf(from)
			at, known := numbers[i][string(text)]
			size := m.Size(i)
			switch {
			case !ok && m.Params.RefuseMissing:
				return unknownValue(m.Params.Columns[i], from)
			case !ok && m.Params.NullMissing:
				to.SetNull()
				continue
			case ok && known && m.Params.Unknown == Keep:
				at++
			case ok && known:
			case m.Params.Unknown == Keep:
				at = 0
			case m.Params.Unknown == Zeros:
				at = size
			case m.Params.Unknown == Shares:
				which, what := to.MakeSparse(size, len(shares[i]))
				copy(which, indices[i])
				copy(what, shares[i])
				continue
			case m.Params.Unknown == Skip:
				return model.ErrSkip
			default:
				return unknownValue(m.Params.Columns[i], from)
			}
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
