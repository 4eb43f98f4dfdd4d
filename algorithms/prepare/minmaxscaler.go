package prepare

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
)

// MinMaxScaler maps columns linearly so that their least value becomes Min and their largest
// value becomes Max. It accepts numbers and dense vectors. Each component of a vector is scaled
// separately. A component that is constant in training becomes Min. Missing values are ignored
// in Fit and stay missing.
type MinMaxScaler struct {
	// Columns are the columns to scale. Required.
	Columns []string `json:"columns"`
	// Outputs names the scaled columns. If Outputs is empty, the scaled columns replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Min and Max are the new bounds. If both are 0, the bounds are 0 and 1.
	Min float64 `json:"min,omitempty"`
	Max float64 `json:"max,omitempty"`
	// Clip replaces results below Min by Min and results above Max by Max.
	Clip bool `json:"clip,omitempty"`
	// WeightCol names a column of row weights, numbers of 0 or more. A weight says how often
	// its row counts; rows of weight 0 are ignored. If WeightCol is empty, every row counts
	// once.
	WeightCol string `json:"weight_col,omitempty"`
}

// Kind returns "min-max-scaler".
func (MinMaxScaler) Kind() string { return "min-max-scaler" }

func (p MinMaxScaler) bounds() (low, high float64) {
	if p.Min == 0 && p.Max == 0 {
		return 0, 1
	}
	return p.Min, p.Max
}

// Validate returns everything that is wrong with the parameters.
func (p MinMaxScaler) Validate() error {
	err := checkNames(p.Columns, p.Outputs)
	low, high := p.bounds()
	if !(low < high) || high-low-(high-low) != 0 {
		return errors.Join(err, wrong("Min is %v and Max is %v: want finite numbers, the first one lower", p.Min, p.Max))
	}
	return err
}

func (p MinMaxScaler) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, numberColumns|denseColumns,
		"numbers or dense vectors; MaxAbsScaler takes sparse ones, whose zeros it keeps")
}

// Fit learns the least and largest values.
func (p MinMaxScaler) Fit(rows *engine.Dataset) *engine.Dataset {
	low, high := p.bounds()
	return learnScale(p, rows, p.Columns, p.Outputs, p.WeightCol, ScalerModel{Width: high - low, Low: low, Clip: p.Clip}, nil,
		func(f *facts, j int, _ bool) (shift, scale float64) { return f.Least[j], f.Most[j] - f.Least[j] })
}

// Apply adds the scaled columns to rows.
func (p MinMaxScaler) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}
