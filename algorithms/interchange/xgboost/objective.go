package xgboost

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// link is a function from margins to predictions.
type link uint8

const (
	identity  link = iota
	logistic       // 1/(1+exp(−x))
	exponent       // exp(x)
	softmax        // the probabilities of the classes
	largest        // the index of the class with the largest margin
	threshold      // 1 for margins above 0, and 0 otherwise
)

// objective has the properties of an objective that affect files and predictions.
type objective struct {
	link link
	// classes is true if the outputs are classes.
	classes bool
	// block is the name of the file's member with the parameters, or "" if there is none.
	// parameters has the parameters that XGBoost requires; each name is followed by its
	// default.
	block      string
	parameters []string
	// old is the name of the block in versions before 2.0, if it differs; 1.x requires it.
	old string
}

// objectives has the objectives of XGBoost 1.0 to 3.x, by name.
var objectives = map[string]objective{
	"reg:squarederror":     {block: "reg_loss_param", parameters: []string{"scale_pos_weight", "1"}},
	"reg:squaredlogerror":  {block: "reg_loss_param", parameters: []string{"scale_pos_weight", "1"}},
	"reg:logistic":         {link: logistic, block: "reg_loss_param", parameters: []string{"scale_pos_weight", "1"}},
	"binary:logistic":      {link: logistic, block: "reg_loss_param", parameters: []string{"scale_pos_weight", "1"}},
	"binary:logitraw":      {block: "reg_loss_param", parameters: []string{"scale_pos_weight", "1"}},
	"binary:hinge":         {link: threshold},
	"reg:absoluteerror":    {},
	"reg:pseudohubererror": {block: "pseudo_huber_param", parameters: []string{"huber_slope", "1"}},
	"reg:quantileerror":    {block: "quantile_loss_param", parameters: []string{"quantile_alpha", "[5E-1]"}},
	"reg:gamma":            {link: exponent, block: "reg_loss_param", parameters: []string{"scale_pos_weight", "1"}},
	"reg:tweedie":          {link: exponent, block: "tweedie_regression_param", parameters: []string{"tweedie_variance_power", "1.5"}},
	"count:poisson":        {link: exponent, block: "poisson_regression_param", parameters: []string{"max_delta_step", "0.7"}},
	"survival:cox":         {link: exponent},
	"survival:aft":         {link: exponent, block: "aft_loss_param", parameters: []string{"aft_loss_distribution", "normal", "aft_loss_distribution_scale", "1"}},
	"multi:softmax":        {link: largest, classes: true, block: "softmax_multiclass_param"},
	"multi:softprob":       {link: softmax, classes: true, block: "softmax_multiclass_param"},
	"rank:pairwise":        {block: "lambdarank_param", old: "lambda_rank_param"},
	"rank:ndcg":            {block: "lambdarank_param", old: "lambda_rank_param"},
	"rank:map":             {block: "lambdarank_param", old: "lambda_rank_param"},
}

// Predictions returns the number of values that Transform makes from the margins of a row: one
// for each output, except for multi:softmax, for which the class is the only value.
func (m *Model) Predictions() int {
	if objectives[m.Objective].link == largest {
		return 1
	}
	return m.Ensemble.Outputs
}

// Transform turns the margins of a row, one for each output of the ensemble, into predictions,
// as XGBoost does: probabilities for logistic and softmax, means for logarithmic links, hazards
// for survival:cox, and unchanged margins for other objectives. margins and predictions may be
// the same slice. Transform panics if the lengths of the slices are not Outputs and
// Predictions, or if the objective is not known.
func (m *Model) Transform(margins, predictions []float64) {
	o, err := objectiveOf(m.Objective)
	if err != nil || len(margins) != m.Ensemble.Outputs || len(predictions) != m.Predictions() {
		panic(fmt.Sprintf("xgboost: Transform of %d margins into %d predictions of %q with %d outputs", len(margins), len(predictions), m.Objective, m.Ensemble.Outputs))
	}
	switch o.link {
	case softmax:
		copy(predictions, margins)
		kernel.Softmax(predictions)
	case largest:
		at := 0
		for i, v := range margins {
			if v > margins[at] {
				at = i
			}
		}
		predictions[0] = float64(at)
	default:
		for i, v := range margins {
			predictions[i] = o.link.apply(v)
		}
	}
}

// apply returns the prediction for the margin x, for links of single margins.
func (l link) apply(x float64) float64 {
	switch l {
	case logistic:
		return kernel.Sigmoid(x)
	case exponent:
		return kernel.Exp(x)
	case threshold:
		if x > 0 {
			return 1
		}
		return 0
	}
	return x
}

// probabilityGap is the smallest distance of base_score from 0 and 1 that XGBoost allows since
// 3.1. Earlier versions refused only 0 and 1 themselves.
const probabilityGap = 1e-6

// margin returns base_score as a margin. It rounds to float32 in the same steps as XGBoost,
// which affects the result near 1.
func (l link) margin(score float64) (float64, error) {
	switch l {
	case logistic:
		if !(score >= 0 && score <= 1) {
			return 0, fmt.Errorf("base_score is %v: want a probability", score)
		}
		p := float32(min(max(score, probabilityGap), 1-probabilityGap))
		odds := 1/p - 1
		return float64(0 - float32(kernel.Log(float64(odds)))), nil
	case exponent:
		if !(score > 0) || math.IsInf(score, 1) {
			return 0, fmt.Errorf("base_score is %v: want a mean above 0", score)
		}
		return float64(float32(kernel.Log(score))), nil
	}
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return 0, fmt.Errorf("base_score is %v: want a number", score)
	}
	return score, nil
}

// score returns the base_score whose margin is nearest to base, and this margin. If base_score
// would be so near to an end of its range that it is inexact, score returns the base_score of
// the margin 0.
func (l link) score(base float64) (float32, float64) {
	var score float32
	switch l {
	case logistic:
		p := kernel.Sigmoid(base)
		if score = float32(p); p < 1e-4 || p > 1-1e-4 {
			score = 0.5
		}
	case exponent:
		mean := kernel.Exp(base)
		if score = float32(mean); mean < 1e-30 || mean > 1e30 {
			score = 1
		}
	default:
		if score = float32(base); math.IsInf(float64(score), 0) {
			score = 0
		}
	}
	margin, err := l.margin(float64(score))
	if err != nil {
		return 0, 0 // the base is NaN, which Validate refuses
	}
	return score, margin
}
