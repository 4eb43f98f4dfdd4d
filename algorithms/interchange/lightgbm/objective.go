package lightgbm

import (
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// link is how margins become predictions.
type link uint8

const (
	identity link = iota
	square        // the square with the margin's sign, where the parameter sqrt is set
	logistic      // 1/(1+exp(−sigmoid·x))
	plain         // 1/(1+exp(−x))
	exponent      // exp(x)
	softplus      // log(1+exp(x))
	softmax       // shares of classes
)

// objective is what files and predictions depend on of an objective.
type objective struct {
	link    link
	classes bool // its outputs are classes
}

// objectives are those of LightGBM 2 to 4, by their names in files.
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

// Transform makes predictions of the margins of a row, as many, as LightGBM does. The two
// may be the same slice. Slices that are not as long as the ensemble has outputs, and an
// objective that is not known, are mistakes of the caller, and panic.
func (m *Model) Transform(margins, predictions []float64) {
	o, err := objectiveOf(m.Objective)
	if n := m.Ensemble.Outputs; err != nil || len(margins) != n || len(predictions) != n {
		panic(fmt.Sprintf("lightgbm: Transform of %d margins into %d predictions of %q with %d outputs", len(margins), len(predictions), m.Objective, n))
	}
	if o.link == softmax {
		kernel.SoftmaxTo(predictions, margins)
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

// sigmoid is the scale of margins of the logistic link.
func (m *Model) sigmoid() float64 {
	v, err := strconv.ParseFloat(m.Parameters["sigmoid"], 64)
	if err != nil {
		return 1
	}
	return v
}
