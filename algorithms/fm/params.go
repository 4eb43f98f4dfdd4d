package fm

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Params are the parameters of Train. The zero value of a field means its default. Only
// LabelCol has no default. Params are a stage of pipelines.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of the labels: numbers for Regression, two classes of any type
	// for Classification. LabelCol is required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and, for Classification, "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Task is what the machine predicts; the zero value is Regression.
	Task Task
	// Factors is the number of factors of each feature. 0 means 8. A negative value means no
	// factors, which gives a linear model.
	Factors int
	// NoIntercept omits the intercept.
	NoIntercept bool
	// L2 and L2Factors are the strengths of the penalty on linear weights and on factors:
	// ½·L2·Σw² + ½·L2Factors·Σv² is added to the mean weighted loss. The intercept is not
	// penalised.
	L2, L2Factors float64
	// InitialSpread is the standard deviation of the initial factors, which are drawn uniformly
	// about 0. It must be positive; 0 stands for the default, 0.05.
	InitialSpread float64

	// Method is the optimiser: LBFGS, GD or SGD. The zero value means LBFGS.
	Method optim.Method
	// MaxIter is the largest number of iterations, or of epochs for SGD; 0 means 200.
	MaxIter int
	// Tol ends training when the largest component of the gradient is at most Tol·max(1, that
	// component at the start). 0 means 1e-5; a negative value turns the test off.
	Tol float64
	// LossTol ends training when the objective falls by at most LossTol, relative to its value;
	// 0 turns the test off.
	LossTol float64
	// Stochastic are the settings of the method SGD. Its default rates are for features with a
	// standard deviation of 1. Train does not scale features, so scale them beforehand.
	Stochastic optim.Stochastic
	// Seed is the seed of the initial factors and of the order of rows in SGD; 0 means the seed
	// of the job.
	Seed uint64
}

const (
	defaultFactors = 8
	defaultSpread  = 0.05
	defaultTol     = 1e-5
	maxFactors     = 1 << 16
)

var _ model.Stage = Params{}

// Kind returns "fm".
func (Params) Kind() string { return Kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply implements model.Stage. It calls Predict with the parameters' columns.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	errs := p.common().Problems("a factorisation machine's")
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.Factors > maxFactors {
		bad("Factors is %d: want at most %d", p.Factors, maxFactors)
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"L2", p.L2}, {"L2Factors", p.L2Factors}, {"InitialSpread", p.InitialSpread}} {
		if !(v.value >= 0 && kernel.Finite(v.value)) {
			bad("%s is %v: want a number of 0 or more", v.name, v.value)
		}
	}
	return errors.Join(errs...)
}

// common returns the parameters that all estimators with nonconvex losses have.
func (p Params) common() nonconvex.Params {
	return nonconvex.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Skip: p.Skip, Task: p.Task,
		Method: p.Method, MaxIter: p.MaxIter, Tol: cmp.Or(p.Tol, defaultTol), LossTol: p.LossTol, Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// withDefaults returns valid parameters with every zero replaced by its default.
func (p Params) withDefaults(jobSeed uint64) Params {
	p.Factors = max(cmp.Or(p.Factors, defaultFactors), 0)
	p.InitialSpread = cmp.Or(p.InitialSpread, defaultSpread)
	p.Seed = cmp.Or(p.Seed, jobSeed)
	return p
}

// affordable returns an error if there are too many parameters.
func (p Params) affordable(features int) error {
	const most = 1 << 27
	if n := 1 + float64(float64(features)*float64(1+p.Factors)); n > most {
		return fmt.Errorf("%d features with %d factors are %.0f parameters, at most %d are allowed: take fewer factors, or hash the features into fewer", features, p.Factors, n, most)
	}
	return nil
}

// Task is what a machine predicts.
type Task = signature.Task

const (
	// Regression predicts a number. The loss is half the squared difference.
	Regression = signature.Regression
	// Classification predicts one of two classes. The loss is the logistic loss.
	Classification = signature.Classification
)

// spreadOf returns half the width of the uniform distribution with a given standard deviation.
func spreadOf(deviation float64) float64 { return float64(deviation * math.Sqrt(3)) }
