package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Strategy is the rule by which an Imputer chooses the value that replaces missing values.
type Strategy int

const (
	// Mean is the mean of the values that are not missing. The column becomes float64.
	Mean Strategy = iota
	// Median is the median of the values that are not missing; for an even number of values, it
	// is the mean of the middle two. The column becomes float64.
	Median
	// Mode is the most frequent value. If several values are equally frequent, it is the least
	// of them: numbers are ordered by value, text by bytes, and false comes before true. The
	// column keeps its type.
	Mode
	// Constant is a value given in Values. The column keeps its type.
	Constant
)

var strategies = enum.Names[Strategy]{Type: "Strategy", What: "strategy", Names: []string{"mean", "median", "mode", "constant"}}

// String returns "mean", "median", "mode" or "constant".
func (s Strategy) String() string { return strategies.String(s) }

// MarshalText implements encoding.TextMarshaler.
func (s Strategy) MarshalText() ([]byte, error) { return strategies.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (s *Strategy) UnmarshalText(text []byte) error { return strategies.Parse(s, text) }

// Imputer replaces missing values: nulls, and NaNs in columns of numbers. Mean and Median
// accept numbers and dense vectors; each component of a vector is filled separately. Mode and
// Constant accept numbers, bools, text and dates. The outputs have no nulls.
type Imputer struct {
	// Columns are the columns to fill. Required.
	Columns []string `json:"columns"`
	// Outputs names the filled columns. If Outputs is empty, the filled columns replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Strategy is the strategy of all columns if Strategies is empty.
	Strategy Strategy `json:"strategy"`
	// Strategies, if not empty, has one strategy for each column and overrides Strategy.
	Strategies []Strategy `json:"strategies,omitempty"`
	// Values are the constants for the strategy Constant as text, such as "0", "unknown" or
	// "true". There is either a single value for all columns, or one value for each column. The
	// value of a column with another strategy must then be empty. Dates are given as days since
	// 1970, timestamps as microseconds since 1970.
	Values []string `json:"values,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

// Kind returns "imputer".
func (Imputer) Kind() string { return "imputer" }

func (p Imputer) strategy(column int) Strategy {
	if len(p.Strategies) > 0 {
		return p.Strategies[column]
	}
	return p.Strategy
}

func (p Imputer) value(column int) string {
	if len(p.Values) == 1 {
		return p.Values[0]
	}
	return p.Values[column]
}

// Validate returns everything that is wrong with the parameters.
func (p Imputer) Validate() error {
	errs := []error{checkNames(p.Columns, p.Outputs), checkEnum(p.Strategy)}
	if n := len(p.Strategies); n > 0 && n != len(p.Columns) {
		return errors.Join(append(errs, fmt.Errorf("there are %d Strategies for %d Columns", n, len(p.Columns)))...)
	}
	constant := false
	for i, s := range p.Strategies {
		errs = append(errs, checkEnum(s))
		constant = constant || p.strategy(i) == Constant
	}
	constant = constant || len(p.Strategies) == 0 && p.Strategy == Constant
	switch n := len(p.Values); {
	case constant && n != 1 && n != len(p.Columns):
		errs = append(errs, fmt.Errorf("there are %d Values for %d Columns: Constant needs one for each, or one for all", n, len(p.Columns)))
	case !constant && n > 0:
		errs = append(errs, errors.New("there are Values, but no column is filled by Constant"))
	}
	return errors.Join(errs...)
}

func (p Imputer) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	var made []arrow.Field
	for i, name := range OutputNames(p.Columns, p.Outputs) {
		want, help := scalarColumns, "numbers, bools, text or dates for "+p.strategy(i).String()
		if s := p.strategy(i); s == Mean || s == Median {
			want, help = numberColumns|denseColumns, "numbers or dense vectors for "+s.String()
		}
		fields, err := find(schema, p.Columns[i:i+1], want, help)
		if err != nil {
			return nil, err
		}
		f := arrow.Field{Name: name, Type: fields[0].Type}
		if want&denseColumns != 0 {
			f.Type = float64Like(f.Type)
		}
		if p.strategy(i) == Constant {
			if err := parseCell(batch.TypeName(f.Type), p.value(i), &model.Cell{}); err != nil {
				return nil, columnError(p.Columns[i], fmt.Errorf("the constant: %w", err))
			}
		}
		made = append(made, f)
	}
	return made, nil
}

// Fit learns the values to fill in.
func (p Imputer) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		n := len(p.Columns)
		numeric, modes := make([]bool, n), make([]bool, n)
		var number, median, mode bool
		for i := range n {
			s := p.strategy(i)
			numeric[i], modes[i] = s == Mean || s == Median, s == Mode
			number, median, mode = number || numeric[i], median || s == Median, mode || modes[i]
		}
		var passes []pass
		if number {
			passes = append(passes, moments(p.Columns, make([]bool, n), numeric))
		}
		if median {
			passes = append(passes, selection(quantileTargets([]float64{0.5}))...)
		}
		if mode {
			passes = append(passes, counting(modes))
		}
		return survey{name: p.Kind(), columns: p.Columns, weight: p.WeightCol, passes: passes, finish: p.finish}.add(rows)
	})
}

func (p Imputer) finish(_ context.Context, f *facts, inputs []model.Input) (model.Model, error) {
	m := &ImputerModel{Learned: Learned{p.Kind(), inputs, f.Rows}, Params: p}
	for i, column := range p.Columns {
		var fill Fill
		switch p.strategy(i) {
		case Mean:
			fill.Numbers = f.Mean[f.Offset[i] : f.Offset[i]+f.Size[i]]
		case Median:
			for j := range f.Size[i] {
				fill.Numbers = append(fill.Numbers, f.quantile(f.Offset[i]+j, 0, []float64{0.5}))
			}
		case Mode:
			if len(f.Categories.Columns[i]) == 0 {
				return nil, fmt.Errorf("column %q has no value: every row is null or NaN; leave it out", column)
			}
			compare := compareValues(isNumber(inputs[i].Type))
			fill.Value = slices.MinFunc(f.Categories.Columns[i], func(a, b category) int {
				return cmp.Or(cmp.Compare(b.Count, a.Count), compare(a.Text, b.Text))
			}).Text
		case Constant:
			fill.Value = p.value(i)
		}
		m.Fills = append(m.Fills, fill)
	}
	return m, nil
}

// isNumber reports whether text names a type of numbers or dates. Dates are handled as numbers
// of days or microseconds.
func isNumber(text string) bool {
	dt, err := batch.ParseType(text)
	return err == nil && dt.ID() != arrow.BOOL && kindOf(dt)&(numberColumns|dateColumns) != 0
}

// parseCell parses text, as Cell.Category writes it, as a value of the type kind, and stores
// the value in c.
func parseCell(kind, text string, c *model.Cell) error {
	dt, err := batch.ParseType(kind)
	if err != nil {
		return err
	}
	switch id := dt.ID(); {
	case id == arrow.STRING:
		c.SetText(text)
	case id == arrow.BOOL:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is no bool", text)
		}
		c.SetBool(v)
	case id == arrow.FLOAT64, id == arrow.FLOAT32:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v-v != 0 {
			return fmt.Errorf("%q is no finite number", text)
		}
		c.SetFloat(v)
	default:
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no %s", text, kind)
		}
		c.SetInt(v)
	}
	return nil
}

// Apply adds the filled columns to rows.
func (p Imputer) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// ImputerModel is what an Imputer learned.
type ImputerModel struct {
	Learned `json:"-"`
	Params  Imputer `json:"params"`
	Fills   []Fill  `json:"fills"` // one for each column
}

// Fill is the value that replaces the missing values of one column.
type Fill struct {
	// Numbers is set for Mean and Median. It has one number for each component of a vector
	// column, and a single number for a column of numbers.
	Numbers []float64 `json:"numbers,omitempty"`
	// Value is set for Mode and Constant. It is the value as text.
	Value string `json:"value,omitempty"`
}

// Encode returns the model's file.
func (m *ImputerModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the filled columns to rows, replacing columns of the same names.
func (m *ImputerModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *ImputerModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *ImputerModel) check() error {
	if err := m.Params.Validate(); err != nil {
		return err
	}
	if n := len(m.Params.Columns); len(m.Fills) != n || len(m.inputs) != n {
		return fmt.Errorf("there are %d columns, %d inputs and %d fills", n, len(m.inputs), len(m.Fills))
	}
	for i, f := range m.Fills {
		if m.Params.strategy(i) >= Mode {
			if err := parseCell(m.inputs[i].Type, f.Value, &model.Cell{}); err != nil {
				return columnError(m.Params.Columns[i], err)
			}
		} else if len(f.Numbers) == 0 {
			return fmt.Errorf("column %q has no fill", m.Params.Columns[i])
		}
	}
	return nil
}

// Bind implements model.Binder.
func (m *ImputerModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, OutputNames(m.Params.Columns, m.Params.Outputs))
	if err != nil {
		return nil, err
	}
	fills := make([]model.Cell, len(in))
	numeric, vector := make([]bool, len(in)), make([]bool, len(in))
	for i, f := range m.Fills {
		if dt, err := batch.ParseType(m.inputs[i].Type); err == nil {
			vector[i] = batch.IsVector(dt)
		}
		if numeric[i] = m.Params.strategy(i) < Mode; numeric[i] {
			continue
		}
		if err := parseCell(m.inputs[i].Type, f.Value, &fills[i]); err != nil {
			return nil, columnError(m.Params.Columns[i], err)
		}
	}
	return func(row []model.Cell) error {
		for i := range in {
			from, to := &row[in[i]], &row[out[i]]
			if numeric[i] {
				if err := fillNumbers(from, to, m.Fills[i].Numbers, vector[i]); err != nil {
					return columnError(m.Params.Columns[i], err)
				}
				continue
			}
			if from.Kind == model.NullCell || from.Kind == model.FloatCell && from.Float != from.Float {
				from = &fills[i]
			}
			copyScalar(from, to)
		}
		return nil
	}, nil
}

// copyScalar copies a value that is not a vector.
func copyScalar(from, to *model.Cell) {
	to.Kind, to.Int, to.Float, to.Text = from.Kind, from.Int, from.Float, from.Text
}

// fillNumbers copies a number or a dense vector and replaces its missing components by fills.
func fillNumbers(from, to *model.Cell, fills []float64, vector bool) error {
	switch from.Kind {
	case model.NullCell:
		if vector {
			copy(to.MakeDense(len(fills)), fills)
		} else {
			to.SetFloat(fills[0])
		}
	case model.DenseCell:
		if len(from.Values) != len(fills) {
			return fmt.Errorf("it has %d components, the model was trained on %d", len(from.Values), len(fills))
		}
		made := to.MakeDense(len(fills))
		for j, v := range from.Values {
			if v != v {
				v = fills[j]
			}
			made[j] = v
		}
	default:
		v, ok := from.Number()
		if !ok || len(fills) != 1 {
			return fmt.Errorf("it is %s, the model was trained on another type", from.Kind)
		}
		if v != v {
			v = fills[0]
		}
		to.SetFloat(v)
	}
	return nil
}
