package linear

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// Params are the parameters of Train. The zero value of each field but LabelCol is its
// default; without a penalty they are those of least squares. Regression, Ridge, Lasso and
// ElasticNet set the penalty.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. FeatureCols name
	// number columns instead, which are joined in their order. With neither the dataset's only
	// vector column is taken.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of numbers to be predicted. Required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more; empty: every row weighs 1.
	WeightCol string
	// OffsetCol names a column of numbers that are added to the predictions as they are, in
	// training and wherever the model is applied to a dataset; empty: none.
	OffsetCol string
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string
	// Skip leaves rows out in which something is null, NaN or infinite, and counts them as
	// "rows skipped". Otherwise such a row is an error that names row and column.
	Skip bool

	// NoIntercept leaves the intercept out.
	NoIntercept bool
	// NoStandardize puts the penalty on the coefficients of the features as they are, in place
	// of those of features divided by their standard deviations. Without a penalty it changes
	// nothing.
	NoStandardize bool
	// L1 and L2 are the strengths of the penalty, 0 or more: L1·Σ|w| + ½·L2·Σw² is added to the
	// mean weighted loss. The intercept is not penalised.
	L1, L2 float64
	// Huber makes the loss linear in residuals beyond it, in the units of the label, so that
	// outliers count for less; 0 means squares, ½·residual², throughout.
	Huber float64
	// NoInference leaves out the table of standard errors, t and p values, which takes one
	// more read of the rows. It is made for least squares without a penalty where the type of
	// the feature column says that there are at most 256 features.
	NoInference bool

	// Method is the optimiser; the zero value takes OWLQN with an L1 penalty, else Newton's
	// method, which for squares is the solution of the normal equations, up to 256 features in
	// dense columns (32 otherwise), and LBFGS beyond that, which it leaves for Newton's method
	// where features of up to 512 parameters correlate.
	Method optim.Method
	// MaxIter is the largest number of iterations; 0 means 100.
	MaxIter int
	// Tol ends training when the largest component of the gradient, by standardised
	// coefficients, is at most Tol times the larger of 1 and that at the start; 0 means 1e-6, a
	// negative value turns the test off.
	Tol float64
	// LossTol and StepTol end training when the objective falls by at most LossTol relatively,
	// or no parameter moves more than StepTol; 0 turns the test off.
	LossTol, StepTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Start is a model to start from, of the same features; nil: zeros.
	Start *Model
	// Seed is what the draws of SGD start from; 0 means the seed of the job.
	Seed uint64
}

// Regression returns the parameters of least squares: p without a penalty.
func Regression(p Params) Params { return ElasticNet(0, 0, p) }

// Ridge returns p with the penalty ½·l2·Σw². With W the total weight, scikit-learn's
// Ridge(alpha) is l2 = alpha/W and NoStandardize.
func Ridge(l2 float64, p Params) Params {
	p.L1, p.L2 = 0, l2
	return p
}

// Lasso returns p with the penalty l1·Σ|w|, which makes coefficients 0. scikit-learn's
// Lasso(alpha) is l1 = alpha and NoStandardize.
func Lasso(l1 float64, p Params) Params {
	p.L1, p.L2 = l1, 0
	return p
}

// ElasticNet returns p with the penalty strength·(ratio·Σ|w| + ½·(1−ratio)·Σw²), that of
// scikit-learn's ElasticNet(strength, ratio) with NoStandardize.
func ElasticNet(strength, ratio float64, p Params) Params {
	p.L1, p.L2 = strength*ratio, strength*(1-ratio)
	return p
}

// Names and limits.
const (
	kind         = "linear"
	manyFeatures = 256
)

// Validate tells what is wrong with the parameters, all of it.
func (p Params) Validate() error {
	errs := []error{p.common().Validate()}
	if !(p.Huber >= 0) || math.IsInf(p.Huber, 0) {
		errs = append(errs, fmt.Errorf("the parameter Huber is %v: want a number above 0, or 0 for squares", p.Huber))
	}
	return errors.Join(errs...)
}

// common returns what all linear models share.
func (p Params) common() linearmodel.Params {
	return linearmodel.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol, OffsetCol: p.OffsetCol,
		Skip: p.Skip, NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize, L1: p.L1, L2: p.L2,
		Method: p.Method, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// loss returns the loss of a residual.
func (p Params) loss() objective.Loss {
	if p.Huber > 0 {
		return objective.Huber{Delta: p.Huber}
	}
	return objective.Squared{}
}

// Train fits a linear regression and returns the model as a dataset of one row, whose
// column "model" holds what Model.Encode returns. Collect it and read it with ModelOf, or
// give it to Predict.
//
// Its queue is named "linear" and reports "loss", the objective, "gradient norm", "step"
// and "reads" for the start and every iteration. What is wrong with the parameters or with
// the columns they name is reported when the job is built, with the caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "linear.Train"
	if _, refused := model.Begin(op, d, p.Validate()); refused != nil {
		return refused
	}
	t := linearmodel.Training{
		Op: op, Queue: kind, Params: p.common(), Loss: p.loss(), NewtonUpTo: manyFeatures,
		Finish: p.finish,
	}
	if !p.NoInference && p.Huber == 0 {
		t.TableUpTo = manyFeatures
	}
	if p.Start != nil {
		t.Start = &p.Start.Model
	}
	return t.Add(d)
}

// Kind implements model.Stage.
func (p Params) Kind() string { return kind }

// Fit implements model.Stage: it is Train.
func (p Params) Fit(d *engine.Dataset) *engine.Dataset { return Train(d, p) }

// Apply implements model.Stage: it is Predict with the parameters' PredictionCol.
func (p Params) Apply(d, made *engine.Dataset) *engine.Dataset {
	return Predict(d, made, PredictOptions{PredictionCol: p.PredictionCol})
}
