package prepare

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// MaxAbsScaler divides columns by their largest absolute value, so that the results lie between
// -1 and 1 and zeros stay zeros. It accepts numbers and vectors, including sparse vectors. Each
// component of a vector is scaled separately. Missing values are ignored in Fit and stay
// missing.
type MaxAbsScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns. If Outputs is empty, the scaled columns replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

// Kind returns "max-abs-scaler".
func (MaxAbsScaler) Kind() string { return "max-abs-scaler" }

// Validate returns everything that is wrong with the parameters.
func (p MaxAbsScaler) Validate() error { return checkNames(p.Columns, p.Outputs) }

func (p MaxAbsScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|vectorColumns, "numbers or vectors")
}

// Fit learns the largest absolute values.
func (p MaxAbsScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	return learnScale(p, rows, p.Columns, p.Outputs, p.WeightCol, ScalerModel{Width: 1}, nil,
		func(f *facts, j int, _ bool) (shift, scale float64) { return 0, max(f.Most[j], -f.Least[j]) })
}

// Apply adds the scaled columns to rows.
func (p MaxAbsScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}
