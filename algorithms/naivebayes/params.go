package naivebayes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
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
	// LabelCol names the column of the labels, of any type. The classes are the distinct labels
	// in ascending order: numbers by value, text by bytes, false before true. LabelCol is
	// required.
	LabelCol string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool

	// Family is the distribution of features within a class; the zero value is Gaussian.
	Family Family
	// Smoothing is added to each count of Multinomial, Complement and Bernoulli. It must be
	// above 0; 0 means 1.
	Smoothing float64
	// VarSmoothing times the largest variance of a feature over all rows is added to the
	// variances of Gaussian. VarSmoothing must be above 0; 0 means 1e-9.
	VarSmoothing float64
	// Binarize is the value above which Bernoulli treats a feature as present. For sparse rows
	// it must be 0 or more.
	Binarize float64
	// Priors are the prior probabilities of all classes; the keys are classes as texts.
	// UniformPriors gives all classes the same prior. If neither is set, priors are
	// proportional to the total weights of the classes.
	Priors        map[string]float64
	UniformPriors bool
}

const (
	defaultSmoothing    = 1
	defaultVarSmoothing = 1e-9
)

var _ model.Stage = Params{}

// Kind returns "naivebayes".
func (Params) Kind() string { return Kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply implements model.Stage. It calls Predict with the parameters' columns.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	errs := signature.CheckParams(p.LabelCol, p.VectorCol, p.FeatureCols, signature.Names{Prediction: p.PredictionCol, Probability: p.ProbabilityCol})
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	errs = append(errs, enum.Check(p.Family)...)
	if !(p.Smoothing >= 0 && kernel.Finite(p.Smoothing)) {
		bad("Smoothing is %v: want a number above 0, or 0 for %v", p.Smoothing, defaultSmoothing)
	}
	if !(p.VarSmoothing >= 0 && kernel.Finite(p.VarSmoothing)) {
		bad("VarSmoothing is %v: want a number above 0, or 0 for %v", p.VarSmoothing, defaultVarSmoothing)
	}
	if !kernel.Finite(p.Binarize) {
		bad("Binarize is %v: want a number", p.Binarize)
	}
	if p.Binarize != 0 && p.Family != Bernoulli {
		bad("Binarize is for Bernoulli, and Family is %v", p.Family)
	}
	if len(p.Priors) > 0 && p.UniformPriors {
		bad("Priors are given and UniformPriors is set: choose one")
	}
	if len(p.Priors) > 0 {
		errs = append(errs, checkPriors(p.Priors))
	}
	return errors.Join(errs...)
}

// checkPriors returns an error unless the given priors are probabilities with sum 1.
func checkPriors(priors map[string]float64) error {
	var sum float64
	for _, name := range slices.Sorted(maps.Keys(priors)) {
		v := priors[name]
		if !(v > 0 && v <= 1) {
			return fmt.Errorf("the parameter Priors of %q is %v: want a probability above 0", name, v)
		}
		sum += v
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("the Priors sum to %v: want 1", sum)
	}
	return nil
}

// withDefaults returns valid parameters with every zero replaced by its default.
func (p Params) withDefaults() Params {
	p.Smoothing, p.VarSmoothing = cmp.Or(p.Smoothing, defaultSmoothing), cmp.Or(p.VarSmoothing, defaultVarSmoothing)
	return p
}

// columns returns the columns to read.
func (p Params) columns() rows.Columns {
	return rows.Columns{Vector: p.VectorCol, Features: p.FeatureCols, Label: p.LabelCol, Weight: p.WeightCol, Skip: p.Skip}
}

// priors returns the prior probability of each class.
func (p Params) priors(f *rows.Facts) ([]float64, error) {
	k := len(f.Classes)
	priors := make([]float64, k)
	if len(p.Priors) > 0 && len(p.Priors) != k {
		return nil, fmt.Errorf("there are %d Priors for %d classes", len(p.Priors), k)
	}
	if err := f.Weighty(); err != nil {
		return nil, err
	}
	for c, name := range f.Classes {
		switch {
		case p.UniformPriors:
			priors[c] = 1 / float64(k)
		case len(p.Priors) > 0:
			v, ok := p.Priors[name]
			if !ok {
				return nil, fmt.Errorf("the class %q has no prior in Priors", name)
			}
			priors[c] = v
		default:
			priors[c] = f.ClassWeights[c] / f.Weight
		}
	}
	return priors, nil
}

// Family is the distribution of features within a class.
type Family int

const (
	// Gaussian models each feature as normally distributed.
	Gaussian Family = iota
	// Multinomial models the values of a row as the numbers of times that each feature was
	// drawn. The values must be 0 or more.
	Multinomial
	// Complement scores a class by the counts of the rows of all other classes (Rennie, Shih,
	// Teevan and Karger, "Tackling the Poor Assumptions of Naive Bayes Text Classifiers", ICML
	// 2003). This is suitable for classes of very different weights. Complement does not use
	// priors.
	Complement
	// Bernoulli models whether each feature is present, which means above Binarize, or absent.
	Bernoulli
)

var families = enum.Names[Family]{Type: "Family", What: "family", Names: []string{"gaussian", "multinomial", "complement", "bernoulli"}}

// String returns "gaussian", "multinomial", "complement" or "bernoulli".
func (f Family) String() string { return families.String(f) }

// MarshalText implements encoding.TextMarshaler.
func (f Family) MarshalText() ([]byte, error) { return families.Text(f) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (f *Family) UnmarshalText(text []byte) error { return families.Parse(f, text) }
