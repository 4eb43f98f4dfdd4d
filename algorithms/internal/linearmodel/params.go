package linearmodel

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// Params are the parameters that estimators of linear models have in common. Each estimator has
// its own type of parameters with fields of the same names, and converts its parameters to this
// type. The zero value of each field means its default.
type Params struct {
	VectorCol   string
	FeatureCols []string
	LabelCol    string // required unless the estimator has no labels
	WeightCol   string
	OffsetCol   string
	Skip        bool

	NoIntercept   bool
	NoStandardize bool
	// L1 and L2 are the strengths of the penalties that are added to the weighted mean of the
	// losses.
	L1, L2 float64
	// Inference requests the table of standard errors.
	Inference bool

	Method     optim.Method
	MaxIter    int
	Tol        float64
	LossTol    float64
	StepTol    float64
	Stochastic optim.Stochastic
	Seed       uint64
}

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.LabelCol == "" {
		bad("LabelCol is empty: name the column of the labels")
	}
	if p.VectorCol != "" && len(p.FeatureCols) > 0 {
		bad("both VectorCol, %q, and FeatureCols are set: name one vector column or number columns", p.VectorCol)
	}
	return errors.Join(append(errs, p.settings().Validate())...)
}

// columns returns the names of the columns to read.
func (p Params) columns() rows.Columns {
	return rows.Columns{
		Vector: p.VectorCol, Features: p.FeatureCols, Label: p.LabelCol, Weight: p.WeightCol, Offset: p.OffsetCol, Skip: p.Skip,
	}
}

// settings returns the settings of the optimiser.
func (p Params) settings() optim.Settings {
	return optim.Settings{
		Method: p.Method, L1: p.L1, L2: p.L2, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol,
		Stochastic: p.Stochastic, Information: p.Inference, Seed: p.Seed,
	}
}

// Penalised reports whether there is a penalty. With a penalty, standard errors are not
// defined.
func (p Params) Penalised() bool { return p.L1 > 0 || p.L2 > 0 }
