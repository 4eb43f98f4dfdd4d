package nonconvex

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// Params are the parameters that the estimators have in common. Each estimator has its own type
// Params with fields of the same names, and converts its parameters to this type.
type Params struct {
	VectorCol                     string
	FeatureCols                   []string
	LabelCol, WeightCol           string
	PredictionCol, ProbabilityCol string
	Skip                          bool

	Task       signature.Task
	Method     optim.Method // optim.Auto means optim.LBFGS
	MaxIter    int          // 0 means 200
	Tol        float64
	LossTol    float64
	Stochastic optim.Stochastic
	Seed       uint64
}

// defaultMaxIter is the default value of MaxIter.
const defaultMaxIter = 200

// Problems returns all errors in the parameters. loss is the name of the loss in messages, such
// as "a network's".
func (p Params) Problems(loss string) []error {
	errs := signature.CheckParams(p.LabelCol, p.VectorCol, p.FeatureCols, signature.Names{Prediction: p.PredictionCol, Probability: p.ProbabilityCol})
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if _, err := p.Task.MarshalText(); err != nil {
		errs = append(errs, err)
	}
	switch p.Method {
	case optim.Auto, optim.LBFGS, optim.GD, optim.SGD:
	default:
		bad("Method is %v: want LBFGS, GD or SGD", p.Method)
	}
	s := p.settings()
	if s.Method == optim.SGD && s.Stochastic.Schedule == optim.Optimal {
		bad("Stochastic.Schedule is Optimal, which is for convex losses, and %s is not convex: want InverseScaling, Constant or Exponential", loss)
		s.Stochastic.Schedule = optim.InverseScaling
	}
	return append(errs, s.Validate())
}

// settings returns the settings of the optimiser.
func (p Params) settings() optim.Settings {
	s := optim.Settings{Method: p.Method, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, Stochastic: p.Stochastic, Seed: p.Seed}
	if s.Method == optim.Auto {
		s.Method = optim.LBFGS
	}
	if s.MaxIter == 0 {
		s.MaxIter = defaultMaxIter
	}
	return s
}

// label returns the kind of the labels.
func (p Params) label() rows.LabelKind {
	if p.Task == signature.Classification {
		return rows.ClassLabel
	}
	return rows.NumberLabel
}
