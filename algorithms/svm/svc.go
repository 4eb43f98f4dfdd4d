package svm

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// LinearSVC has the parameters of TrainSVC, for a linear support vector classifier. In every
// field except LabelCol, the zero value selects the default.
type LinearSVC struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of the labels, of any type. The classes are the distinct labels
	// in ascending order: numbers by value, text by bytes, false before true. LabelCol is
	// required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// PredictionCol and DecisionCol name the columns of predictions; empty means "prediction"
	// and "decision".
	PredictionCol, DecisionCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Squared selects the squared hinge loss.
	Squared bool
	// ClassWeights has, for each class, the factor by which the weights of its rows are
	// multiplied. The keys are classes as texts; rows of classes without a key keep their
	// weights. Balanced instead chooses factors that give all classes the same total weight.
	// Class weights do not change the standard deviations by which features are scaled.
	ClassWeights map[string]float64
	Balanced     bool

	// NoIntercept omits the intercepts.
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
	// Tol ends training, or a round of training without Squared, when the largest component of
	// the gradient with respect to standardised coefficients is at most Tol·max(1, g), where g
	// is the largest component at the start. 0 means 1e-6; a negative value turns the test off.
	// A round uses a smaller Tol if the gap needs it.
	Tol float64
	// GapTol ends training without Squared when the objective exceeds a lower bound of its
	// minimum by at most GapTol, relative to the objective; 0 means 1e-6.
	GapTol float64
	// LossTol ends training, or a round of training, when the objective falls by at most
	// LossTol, relative to its value. StepTol does so when no parameter moves by more than
	// StepTol, relative to the larger of its size and 1. 0 turns the test off.
	LossTol, StepTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Start is a model with the same features and classes, from which training starts; nil
	// means zeros.
	Start *SVCModel
	// Seed is the seed for the order of rows in SGD; 0 means the seed of the job.
	Seed uint64
}

// Names.
const (
	kindSVC         = "linear-svc"
	defaultDecision = "decision"
)

// common returns the parameters that all linear models have.
func (p LinearSVC) common() linearmodel.Params {
	return withDefaults(linearmodel.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol, Skip: p.Skip,
		NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize, L1: p.L1, L2: p.L2, Method: p.Method, MaxIter: p.MaxIter,
		Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, Stochastic: p.Stochastic, Seed: p.Seed,
	})
}

// Validate returns all errors in the parameters.
func (p LinearSVC) Validate() error {
	errs := validate(p.common(), p.Squared, p.GapTol)
	if p.Balanced && len(p.ClassWeights) > 0 {
		errs = append(errs, errors.New("ClassWeights are given and Balanced is set: choose one"))
	}
	if name := cmp.Or(p.PredictionCol, linearmodel.Prediction); name == cmp.Or(p.DecisionCol, defaultDecision) {
		errs = append(errs, fmt.Errorf("PredictionCol and DecisionCol are both %q", name))
	}
	return errors.Join(errs...)
}

// losses returns one loss if there are two classes, and one loss for each class if there are
// more.
func (p LinearSVC) losses(f *rows.Facts) ([]objective.Loss, error) {
	first, k := 0, len(f.Classes)
	if err := rows.TwoClasses(p.LabelCol, f.Classes); err != nil {
		return nil, err
	}
	if k == 2 {
		first = 1
	}
	var all []objective.Loss
	for class := first; class < k; class++ {
		if p.Squared {
			all = append(all, objective.SquaredHingeOneVsRest{Class: class})
		} else {
			all = append(all, kinked(objective.HingeOneVsRest{Class: class}, p.Method))
		}
	}
	return all, nil
}

// TrainSVC fits a linear support vector classifier and returns the model as a dataset of one
// row. Its column "model" holds the bytes that SVCModel.Encode returns. Collect the dataset and
// read it with SVCModelOf, or pass it to PredictSVC. The dataset has a second column, whose
// value is null and whose type is the type of the labels.
//
// The training queue is named "linear-svc". For the start and every iteration it reports
// "loss", which is the objective of the round, "gradient norm", "step" and "reads". At the end
// of each round it reports "gap". Errors in the parameters, or in the columns that they name,
// are reported when the job is built, with the caller's line.
func TrainSVC(d *engine.Dataset, p LinearSVC) *engine.Dataset {
	const op = "svm.TrainSVC"
	if _, refused := model.Begin(op, d, p.Validate()); refused != nil {
		return refused
	}
	t := training(op, kindSVC, p.common(), p.Squared, p.GapTol, p.losses)
	t.Loss, t.ClassWeights, t.Balanced = objective.SquaredHingeOneVsRest{}, p.ClassWeights, p.Balanced
	t.Finish = func(f *linearmodel.Fit) (model.Model, error) {
		noteGap(f, t.GapTol)
		made := &SVCModel{
			Classes: linearmodel.Classes{Type: f.Facts.LabelType, Values: f.Facts.Classes}, Squared: p.Squared,
			PredictionCol: p.PredictionCol, DecisionCol: p.DecisionCol,
		}
		made.Take(f.Model)
		return made, nil
	}
	if p.Start != nil {
		t.Start, t.StartClasses = &p.Start.Model, p.Start.Classes.Values
	}
	return t.Add(d)
}

// Kind implements model.Stage.
func (p LinearSVC) Kind() string { return kindSVC }

// Fit implements model.Stage. It calls TrainSVC.
func (p LinearSVC) Fit(d *engine.Dataset) *engine.Dataset { return TrainSVC(d, p) }

// Apply implements model.Stage. It calls PredictSVC with the parameters' columns.
func (p LinearSVC) Apply(d, made *engine.Dataset) *engine.Dataset {
	return PredictSVC(d, made, PredictOptions{PredictionCol: p.PredictionCol, DecisionCol: p.DecisionCol})
}
