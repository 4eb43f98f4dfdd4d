package prepare

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// RobustScaler subtracts the median and divides by the distance between two quantiles, by
// default the quartiles. Outliers hardly change median and quartiles. RobustScaler accepts
// numbers and dense vectors. Each component of a vector is scaled separately. If the two
// quantiles are equal, values are centred but not divided. Quantiles are exact, with linear
// interpolation. Missing values are ignored in Fit and stay missing.
type RobustScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns. If Outputs is empty, the scaled columns replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Lower and Upper are the probabilities of the two quantiles. If both are 0, the
	// probabilities are 0.25 and 0.75.
	Lower float64 `json:"lower,omitempty"`
	Upper float64 `json:"upper,omitempty"`
	// NoCenter means that the median is not subtracted.
	NoCenter bool `json:"no_center,omitempty"`
	// NoScale means that values are not divided by the distance of the quantiles.
	NoScale bool `json:"no_scale,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

// Kind returns "robust-scaler".
func (RobustScaler) Kind() string { return "robust-scaler" }

func (p RobustScaler) bounds() (lower, upper float64) {
	if p.Lower == 0 && p.Upper == 0 {
		return 0.25, 0.75
	}
	return p.Lower, p.Upper
}

// Validate returns everything that is wrong with the parameters.
func (p RobustScaler) Validate() error {
	err := checkNames(p.Columns, p.Outputs)
	if lower, upper := p.bounds(); !(0 <= lower && lower < upper && upper <= 1) {
		return errors.Join(err, wrong("Lower is %v and Upper is %v: want fractions from 0 to 1, the first one lower", p.Lower, p.Upper))
	}
	return err
}

func (p RobustScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|denseColumns,
		"numbers or dense vectors; MaxAbsScaler takes sparse ones, whose zeros it keeps")
}

// Fit learns medians and quantiles.
func (p RobustScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	lower, upper := p.bounds()
	wanted := []float64{0.5, lower, upper}
	return learnScale(p, rows, p.Columns, p.Outputs, p.WeightCol, ScalerModel{Width: 1}, selection(quantileTargets(wanted)),
		func(f *facts, j int, _ bool) (shift, scale float64) {
			scale = 1
			if !p.NoCenter {
				shift = f.quantile(j, 0, wanted)
			}
			if !p.NoScale {
				scale = f.quantile(j, 2, wanted) - f.quantile(j, 1, wanted)
			}
			return shift, scale
		})
}

// Apply adds the scaled columns to rows.
func (p RobustScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}
