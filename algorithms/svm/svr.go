package svm

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// LinearSVR has the parameters of TrainSVR, for a linear support vector regression. In every
// field except LabelCol, the zero value selects the default.
type LinearSVR struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of numbers to be predicted. LabelCol is required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// OffsetCol names a column of numbers that are added to the predictions, in training and
	// wherever the model is applied to a dataset. Empty means no offset.
	OffsetCol string
	// PredictionCol names the column of predictions; empty means "prediction".
	PredictionCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Epsilon is the largest difference between prediction and label that causes no loss, in
	// the unit of the label, 0 or more.
	Epsilon float64
	// Squared selects the squared loss.
	Squared bool

	// NoIntercept omits the intercept.
	NoIntercept bool
	// NoStandardize applies the penalty to the coefficients of unscaled features. By default
	// the penalty applies to the coefficients of features divided by their standard deviations.
	NoStandardize bool
	// L1 and L2 are the strengths of the penalty, 0 or more: L1·Σ|w| + ½·L2·Σw² is added to the
	// mean weighted loss. If both are 0, L2 is 0.01. Without Squared, L2 must be above 0. With
	// W the total weight, scikit-learn's C corresponds to L2 = 1/(C·W) with NoStandardize.
	L1, L2 float64

	// Method is the optimiser. With an L1 penalty the zero value means OWLQN. Otherwise it
	// means Newton's method for up to 32 parameters, and LBFGS for more.
	Method optim.Method
	// MaxIter is the largest number of iterations in all rounds together, or of epochs for SGD.
	// 0 means 1000 iterations or 100 epochs.
	MaxIter int
	// Tol, GapTol, LossTol and StepTol have the meaning of these fields in LinearSVC.
	Tol, GapTol, LossTol, StepTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Start is a model with the same features, from which training starts; nil means zeros.
	Start *SVRModel
	// Seed is the seed for the order of rows in SGD; 0 means the seed of the job.
	Seed uint64
}

const kindSVR = "linear-svr"

// common returns the parameters that all linear models have.
func (p LinearSVR) common() linearmodel.Params {
	return withDefaults(linearmodel.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol, OffsetCol: p.OffsetCol, Skip: p.Skip,
		NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize, L1: p.L1, L2: p.L2, Method: p.Method, MaxIter: p.MaxIter,
		Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, Stochastic: p.Stochastic, Seed: p.Seed,
	})
}

// Validate returns all errors in the parameters.
func (p LinearSVR) Validate() error {
	errs := validate(p.common(), p.Squared, p.GapTol)
	if !(p.Epsilon >= 0) || math.IsInf(p.Epsilon, 0) {
		errs = append(errs, fmt.Errorf("the parameter Epsilon is %v: want a number of 0 or more", p.Epsilon))
	}
	return errors.Join(errs...)
}

// losses returns a list of one loss.
func (p LinearSVR) losses(*rows.Facts) ([]objective.Loss, error) {
	if p.Squared {
		return []objective.Loss{objective.SquaredEpsilonInsensitive{Epsilon: p.Epsilon}}, nil
	}
	return []objective.Loss{kinked(objective.EpsilonInsensitive{Epsilon: p.Epsilon}, p.Method)}, nil
}

// TrainSVR fits a linear support vector regression and returns the model as a dataset of one
// row. Its column "model" holds the bytes that SVRModel.Encode returns. Collect the dataset and
// read it with SVRModelOf, or pass it to PredictSVR.
//
// The training queue is named "linear-svr" and reports the same series as the queue of
// TrainSVC. Errors in the parameters, or in the columns that they name, are reported when the
// job is built, with the caller's line.
func TrainSVR(d *engine.Dataset, p LinearSVR) *engine.Dataset {
	const op = "svm.TrainSVR"
	if _, refused := model.Begin(op, d, p.Validate()); refused != nil {
		return refused
	}
	t := training(op, kindSVR, p.common(), p.Squared, p.GapTol, p.losses)
	t.Loss = objective.Squared{}
	t.Finish = func(f *linearmodel.Fit) (model.Model, error) {
		noteGap(f, t.GapTol)
		made := &SVRModel{Epsilon: p.Epsilon, Squared: p.Squared, PredictionCol: p.PredictionCol}
		made.Take(f.Model)
		return made, nil
	}
	if p.Start != nil {
		t.Start = &p.Start.Model
	}
	return t.Add(d)
}

// Kind implements model.Stage.
func (p LinearSVR) Kind() string { return kindSVR }

// Fit implements model.Stage. It calls TrainSVR.
func (p LinearSVR) Fit(d *engine.Dataset) *engine.Dataset { return TrainSVR(d, p) }

// Apply implements model.Stage. It calls PredictSVR with the parameters' PredictionCol.
func (p LinearSVR) Apply(d, made *engine.Dataset) *engine.Dataset {
	return PredictSVR(d, made, PredictOptions{PredictionCol: p.PredictionCol})
}
