package prepare

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// StandardScaler scales columns to mean 0 and standard deviation 1. The variance is the sum of
// the squared distances to the mean, divided by the number of values, or with weights by the
// total weight of the values. StandardScaler accepts numbers and vectors. Each component of a
// vector is scaled separately. Sparse vectors are divided by the deviation, but the mean is not
// subtracted. A constant component is centred but not divided. Missing values, null and NaN,
// are ignored in Fit and stay missing.
type StandardScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns. If Outputs is empty, the scaled columns replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// NoCenter means that the mean is not subtracted.
	NoCenter bool `json:"no_center,omitempty"`
	// NoScale means that values are not divided by the deviation.
	NoScale bool `json:"no_scale,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

// Kind returns "standard-scaler".
func (StandardScaler) Kind() string { return "standard-scaler" }

// Validate returns everything that is wrong with the parameters.
func (p StandardScaler) Validate() error { return checkNames(p.Columns, p.Outputs) }

func (p StandardScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|vectorColumns, "numbers or vectors")
}

// Fit learns means and deviations.
func (p StandardScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	return learnScale(p, rows, p.Columns, p.Outputs, p.WeightCol, ScalerModel{Width: 1}, []pass{deviations(p.Columns)},
		func(f *facts, j int, sparse bool) (shift, scale float64) {
			scale = 1
			if !p.NoCenter && !sparse {
				shift = f.Mean[j]
			}
			if !p.NoScale {
				scale = f.Deviation[j]
			}
			return shift, scale
		})
}

// Apply adds the scaled columns to rows.
func (p StandardScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}
