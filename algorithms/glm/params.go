package glm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// Params are the parameters of Train. The zero value of each field but LabelCol is its
// default.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. FeatureCols name
	// number columns instead, which are joined in their order. With neither the dataset's only
	// vector column is taken.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of numbers whose mean is to be predicted. Required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more: how many observations a
	// row is the mean of, such as the exposure of a rate. Empty: every row weighs 1.
	WeightCol string
	// OffsetCol names a column of numbers that are added to the linked mean, such as the
	// logarithm of an exposure with the link Log, in training and wherever the model is
	// applied to a dataset; empty: none.
	OffsetCol string
	// PredictionCol names the column of predicted means; empty means "prediction".
	PredictionCol string
	// Skip leaves rows out in which something is null, NaN or infinite, and counts them as
	// "rows skipped". Otherwise such a row is an error that names row and column.
	Skip bool

	// Family is the distribution of the label; the zero value is Gaussian.
	Family Family
	// Link is what of the mean is linear; the zero value decides by the family.
	Link Link
	// Power is that of the variance of the family Tweedie, above 1 and not 2; 0 means 1.5.
	Power float64

	// NoIntercept leaves the intercept out.
	NoIntercept bool
	// NoStandardize puts the penalty on the coefficients of the features as they are, in place
	// of those of features divided by their standard deviations. Without a penalty it changes
	// nothing.
	NoStandardize bool
	// L1 and L2 are the strengths of the penalty, 0 or more: L1·Σ|w| + ½·L2·Σw² is added to the
	// mean of the weighted half deviances. The intercept is not penalised. scikit-learn's
	// alpha is L2 with NoStandardize.
	L1, L2 float64
	// NoInference leaves out the dispersion, the table of standard errors, and what is made of
	// them, for which the last matrix is needed once more, d² numbers and a read of the rows;
	// and the search for the null model where there is an offset or a start, a few reads of
	// labels and offsets. The table is made without a penalty where the type of the feature
	// column says that there are at most 256 features.
	NoInference bool

	// Method is the optimiser; the zero value takes OWLQN with an L1 penalty, else Newton's
	// method, which is iteratively reweighted least squares, up to 256 features in dense
	// columns (about 30 otherwise), and LBFGS beyond that, which it leaves for Newton's method
	// where features of up to 512 parameters correlate.
	Method optim.Method
	// MaxIter is the largest number of iterations; 0 means 100.
	MaxIter int
	// Tol ends training when the largest component of the gradient, by standardised
	// coefficients, is at most Tol times the larger of 1 and that at the start; 0 means 1e-8, a
	// negative value turns the test off.
	Tol float64
	// LossTol and StepTol end training when the objective falls by at most LossTol relatively,
	// or no parameter moves more than StepTol; 0 turns the test off.
	LossTol, StepTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Start is a model to start from, of the same features, family and link; nil: coefficients
	// of 0, and an intercept for the mean of the labels.
	Start *Model
	// Seed is what the draws of SGD start from; 0 means the seed of the job.
	Seed uint64
}

// Names and limits.
const (
	kind         = "glm"
	defaultPower = 1.5
	defaultTol   = 1e-8
	manyFeatures = 256
)

// link returns the link that is meant.
func (p Params) link() Link {
	if p.Link == Auto {
		return links[p.Family][0]
	}
	return p.Link
}

// power returns the power that is meant.
func (p Params) power() float64 {
	if p.Power == 0 {
		return defaultPower
	}
	return p.Power
}

// Validate tells what is wrong with the parameters, all of it.
func (p Params) Validate() error {
	errs := []error{p.common().Validate()}
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.Family < Gaussian || p.Family > Tweedie {
		bad("%v is none of the package's constants", p.Family)
		return errors.Join(errs...)
	}
	if err := checkFamily(p.Family, p.link(), p.power()); err != nil {
		errs = append(errs, err)
	}
	if p.Power != 0 && p.Family != Tweedie {
		bad("Power is %v, which is for the family tweedie, and Family is %v", p.Power, p.Family)
	}
	if l := p.link(); p.NoIntercept && p.Family != Gaussian && l != Log && l != Logit {
		bad("NoIntercept is set with the link %v: the family %v has no mean of 0 to start from", l, p.Family)
	}
	if m := p.Start; m != nil && (m.Family != p.Family || m.Link != p.link()) {
		bad("the model to start from has the family %v and the link %v, and these are %v and %v", m.Family, m.Link, p.Family, p.link())
	}
	return errors.Join(errs...)
}

// fitting makes coefficients those of a loss.
func fitting(c *objective.Coefficients, loss objective.Loss) {
	l := loss.(deviance)
	c.Intercepts[0] -= l.shift
	if l.withStatistics {
		c.Constants = make([]float64, statistics)
	}
}

// checkFamily tells what does not go together.
func checkFamily(f Family, l Link, power float64) error {
	if f < Gaussian || f > Tweedie {
		return fmt.Errorf("%v is none of the package's constants", f)
	}
	if !slices.Contains(links[f], l) {
		var have []string
		for _, l := range links[f] {
			have = append(have, l.String())
		}
		return fmt.Errorf("the family %v has no link %v: want one of %s", f, l, strings.Join(have, ", "))
	}
	if f == Tweedie && (!(power > 1) || power == 2 || math.IsInf(power, 0)) {
		return fmt.Errorf("the parameter Power is %v: want a number above 1 that is not 2 (for 1 there is the family poisson, for 2 gamma), or 0 for %v", power, defaultPower)
	}
	return nil
}

// common returns what all linear models share.
func (p Params) common() linearmodel.Params {
	if p.Tol == 0 {
		p.Tol = defaultTol
	}
	return linearmodel.Params{
		VectorCol: p.VectorCol, FeatureCols: p.FeatureCols, LabelCol: p.LabelCol, WeightCol: p.WeightCol, OffsetCol: p.OffsetCol,
		Skip: p.Skip, NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize, L1: p.L1, L2: p.L2,
		Method: p.Method, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// infers reports whether the last matrix may be asked for.
func (p Params) infers() bool {
	return !p.NoInference && p.L1 == 0 && p.L2 == 0 && p.Method != optim.SGD
}

// bothOutcomes refuses labels of Binomial that are all 0, or all 1, as every classifier refuses
// a single class. Labels that are not from 0 to 1 it leaves to the loss, which tells the row.
func (p Params) bothOutcomes(f *rows.Facts) error {
	least, most, mean := f.LabelMin, f.LabelMax, f.LabelMean
	switch {
	case p.Family != Binomial || least < 0 || most > 1:
		return nil
	case least == most && (least == 0 || least == 1):
		return rows.TwoClasses(p.LabelCol, []string{strconv.Itoa(int(least))})
	case mean == 0 || mean == 1:
		return fmt.Errorf("the weighted mean of column %q is %v, as if every label were: rows with other labels weigh nothing, or too little beside them to count; "+
			"leave such rows out, or give some a weight", p.LabelCol, mean)
	}
	return nil
}

// loss returns the loss whose parameters start at the mean of the labels.
func (p Params) loss(f *rows.Facts) (objective.Loss, error) {
	if err := p.bothOutcomes(f); err != nil {
		return nil, err
	}
	l := p.devianceOf(p.infers())
	if p.NoIntercept {
		return l, nil
	}
	if shift := l.link.of(f.LabelMean); shift-shift == 0 {
		l.shift = shift
	}
	return l, nil
}

// Train fits a generalised linear model and returns it as a dataset of one row, whose
// column "model" holds what Model.Encode returns. Collect it and read it with ModelOf, or
// give it to Predict.
//
// Its queue is named "glm" and reports "loss", the objective, "gradient norm", "step" and
// "reads" for the start and every iteration. What is wrong with the parameters or with the
// columns they name is reported when the job is built, with the caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "glm.Train"
	if _, refused := model.Begin(op, d, p.Validate()); refused != nil {
		return refused
	}
	t := linearmodel.Training{
		Op: op, Queue: kind, Params: p.common(), Loss: p.devianceOf(p.infers()), LossOf: p.loss,
		NewtonUpTo: manyFeatures, Finish: p.finish,
	}
	if p.infers() {
		t.TableUpTo = manyFeatures
	}
	if p.beside() {
		t.Beside, t.BesideKey = p.addNull, besides
	}
	if p.Start != nil {
		t.Start, t.Fitting = &p.Start.Model, fitting
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
