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

// Params are the parameters of Train. The zero value of a field means its default. Only
// LabelCol has no default.
type Params struct {
	// VectorCol names the column of the features, a dense or sparse vector. Alternatively,
	// FeatureCols names number columns, which are joined in the given order. If both are empty,
	// the features are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// LabelCol names the column of numbers whose mean is to be predicted. LabelCol is required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. A weight is the number of observations of which the label is the mean,
	// such as the exposure of a rate.
	WeightCol string
	// OffsetCol names a column of numbers that are added to the linked mean, such as the
	// logarithm of an exposure with the link Log. They are added in training and wherever the
	// model is applied to a dataset. Empty means no offset.
	OffsetCol string
	// PredictionCol names the column of predicted means; empty means "prediction".
	PredictionCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Family is the distribution of the label; the zero value is Gaussian.
	Family Family
	// Link is the function of the mean that is linear in the features; the zero value selects
	// the default link of the family.
	Link Link
	// Power is the power of the mean in the variance of the family Tweedie, above 1 and not 2;
	// 0 means 1.5.
	Power float64

	// NoIntercept omits the intercept.
	NoIntercept bool
	// NoStandardize applies the penalty to the coefficients of unscaled features. By default
	// the penalty applies to the coefficients of features divided by their standard deviations.
	// Without a penalty NoStandardize changes nothing.
	NoStandardize bool
	// L1 and L2 are the strengths of the penalty, 0 or more: L1·Σ|w| + ½·L2·Σw² is added to the
	// mean of the weighted half deviances. The intercept is not penalised. scikit-learn's alpha
	// corresponds to L2 with NoStandardize.
	L1, L2 float64
	// NoInference omits the table of standard errors, the dispersion and AIC. These need the
	// last matrix once more: a read of the rows, and memory for d² numbers. NoInference also
	// omits the search for the null model if there is an offset or a Start; the search needs a
	// few reads of labels and offsets. The table is computed only without a penalty, and only
	// if the type of the feature column tells that there are at most 256 features.
	NoInference bool

	// Method is the optimiser. With an L1 penalty the zero value means OWLQN. Otherwise it
	// means Newton's method, which is iteratively reweighted least squares, for up to 256
	// features in dense columns (about 30 in other columns), and LBFGS for more. LBFGS changes
	// to Newton's method if features correlate and there are at most 512 parameters.
	Method optim.Method
	// MaxIter is the largest number of iterations; 0 means 100.
	MaxIter int
	// Tol ends training when the largest component of the gradient, with respect to
	// standardised coefficients, is at most Tol·max(1, that component at the start). 0 means
	// 1e-8; a negative value turns the test off.
	Tol float64
	// LossTol ends training when the objective falls by at most LossTol, relative to its value.
	// StepTol ends training when no parameter moves by more than StepTol, relative to the
	// larger of its size and 1. 0 turns the test off.
	LossTol, StepTol float64
	// Stochastic are the settings of the method SGD.
	Stochastic optim.Stochastic
	// Start is a model with the same features, family and link, from which training starts. nil
	// means coefficients of 0, and the intercept that gives the mean of the labels.
	Start *Model
	// Seed is the seed for the order of rows in SGD; 0 means the seed of the job.
	Seed uint64
}

// Names and limits.
const (
	kind         = "glm"
	defaultPower = 1.5
	defaultTol   = 1e-8
	manyFeatures = 256
)

// link returns the link that is used; it is never Auto.
func (p Params) link() Link {
	if p.Link == Auto {
		return links[p.Family][0]
	}
	return p.Link
}

// power returns the power that is used; it is never 0.
func (p Params) power() float64 {
	if p.Power == 0 {
		return defaultPower
	}
	return p.Power
}

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	errs := []error{p.common().Validate()}
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.Family < Gaussian || p.Family > Tweedie {
		bad("%v is not one of the package's constants", p.Family)
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

// fitting adapts the coefficients of a model to the shift and the constants of the loss.
func fitting(c *objective.Coefficients, loss objective.Loss) {
	l := loss.(deviance)
	c.Intercepts[0] -= l.shift
	if l.withStatistics {
		c.Constants = make([]float64, statistics)
	}
}

// checkFamily returns an error if family, link and power are not a valid combination.
func checkFamily(f Family, l Link, power float64) error {
	if f < Gaussian || f > Tweedie {
		return fmt.Errorf("%v is not one of the package's constants", f)
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

// common returns the parameters that all linear models have.
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

// infers reports whether a table of standard errors may be computed, and so the last matrix is
// needed.
func (p Params) infers() bool {
	return !p.NoInference && p.L1 == 0 && p.L2 == 0 && p.Method != optim.SGD
}

// bothOutcomes returns an error if the labels of Binomial are all 0 or all 1, as for a
// classifier with a single class. Labels outside 0 to 1 are reported by the loss, whose error
// names the row.
func (p Params) bothOutcomes(f *rows.Facts) error {
	least, most, mean := f.LabelMin, f.LabelMax, f.LabelMean
	switch {
	case p.Family != Binomial || least < 0 || most > 1:
		return nil
	case least == most && (least == 0 || least == 1):
		return rows.TwoClasses(p.LabelCol, []string{strconv.Itoa(int(least))})
	case mean == 0 || mean == 1:
		return fmt.Errorf("the weighted mean of column %q is %v, as if every label were %[2]v: rows with other labels have weight 0, or too little weight to count; "+
			"leave such rows out, or give some a weight", p.LabelCol, mean)
	}
	return nil
}

// loss returns the loss, shifted so that parameters of 0 give the mean of the labels.
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

// Train fits a generalised linear model and returns the model as a dataset of one row. Its
// column "model" holds the bytes that Model.Encode returns. Collect the dataset and read it
// with ModelOf, or pass it to Predict.
//
// The training queue is named "glm". For the start and every iteration it reports "loss", which
// is the objective, "gradient norm", "step" and "reads". Errors in the parameters, or in the
// columns that they name, are reported when the job is built, with the caller's line.
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
	if p.needsNullModel() {
		t.SideInput, t.SideInputKey = p.addNull, nullModelKey
	}
	if p.Start != nil {
		t.Start, t.Fitting = &p.Start.Model, fitting
	}
	return t.Add(d)
}

// Kind implements model.Stage.
func (p Params) Kind() string { return kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(d *engine.Dataset) *engine.Dataset { return Train(d, p) }

// Apply implements model.Stage. It calls Predict with the parameters' PredictionCol.
func (p Params) Apply(d, made *engine.Dataset) *engine.Dataset {
	return Predict(d, made, PredictOptions{PredictionCol: p.PredictionCol})
}
