package lightgbm

import (
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// link is a function from margins to predictions.
type link uint8

const (
	identity link = iota
	square        // the square with the sign of the margin, if the parameter sqrt is set
	logistic      // 1/(1+exp(−sigmoid·x))
	plain         // 1/(1+exp(−x))
	exponent      // exp(x)
	softplus      // log(1+exp(x))
	softmax       // the probabilities of the classes
)

// objective has the properties of an objective that affect files and predictions.
type objective struct {
	link    link
	classes bool // the outputs are classes
}

// objectives has the objectives of LightGBM 2 to 4, by their names in files.
var objectives = map[string]objective{
	"regression":           {link: square},
	"regression_l1":        {link: square},
	"huber":                {link: square},
	"fair":                 {link: square},
	"quantile":             {link: square},
	"mape":                 {link: square},
	"poisson":              {link: exponent},
	"gamma":                {link: exponent},
	"tweedie":              {link: exponent},
	"binary":               {link: logistic},
	"multiclass":           {link: softmax, classes: true},
	"multiclassova":        {link: logistic, classes: true},
	"cross_entropy":        {link: plain},
	"cross_entropy_lambda": {link: softplus},
	"lambdarank":           {},
	"rank_xendcg":          {},
	"custom":               {},
}

// Transform turns the margins of a row into predictions, one for each margin, as LightGBM does.
// margins and predictions may be the same slice. Transform panics if the length of a slice
// differs from the number of outputs of the ensemble, or if the objective is not known.
func (m *Model) Transform(margins, predictions []float64) {
	o, err := objectiveOf(m.Objective)
	if n := m.Ensemble.Outputs; err != nil || len(margins) != n || len(predictions) != n {
		panic(fmt.Sprintf("lightgbm: Transform of %d margins into %d predictions of %q with %d outputs", len(margins), len(predictions), m.Objective, n))
	}
	if o.link == softmax {
		copy(predictions, margins)
		kernel.Softmax(predictions)
		return
	}
	scale := m.sigmoid()
	_, root := m.Parameters["sqrt"]
	for i, v := range margins {
		switch o.link {
		case square:
			if root {
				v *= math.Abs(v)
			}
		case logistic:
			v = kernel.Sigmoid(scale * v)
		case plain:
			v = kernel.Sigmoid(v)
		case exponent:
			v = kernel.Exp(v)
		case softplus:
			v = kernel.Softplus(v)
		}
		predictions[i] = v
	}
}

// sigmoid returns the factor of margins in the logistic link.
func (m *Model) sigmoid() float64 {
	v, err := strconv.ParseFloat(m.Parameters["sigmoid"], 64)
	if err != nil {
		return 1
	}
	return v
}
