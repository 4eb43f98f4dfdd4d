package gbdt

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// CustomMetric is a metric given by functions. They run on every subtask, in several goroutines
// at once, and their results must depend only on their arguments.
type CustomMetric struct {
	// Name names the metric in progress reports and in Summary.Record.
	Name string
	// MoreIsBetter says that larger values are better; otherwise smaller values are better.
	MoreIsBetter bool
	// Sum returns a sum over the rows of one shard, and the divisor of the sum, such as the
	// total weight of the rows. Sums and divisors are added over the shards.
	Sum func(r *Rows) (total, weight float64)
	// Finish returns the metric for the mean, which is the sum divided by the divisor; nil
	// means that the mean is the metric.
	Finish func(mean float64) float64
}

func (m *CustomMetric) validate() error {
	if m.Name == "" || m.Sum == nil {
		return errors.New("a custom metric needs a Name and a Sum")
	}
	return nil
}

// metric is a metric of rows. If ordered is nil it is a quotient of sums over rows; otherwise
// ordered computes it from the rows in the order of their margins.
type metric struct {
	name string
	more bool // larger values are better
	// custom says that the metric is the user's.
	custom bool
	// sum adds the sum over the rows in r to out[0] and its divisor to out[1]. room is working
	// memory with at least one value for each row.
	sum    func(r *Rows, room []float64, out []float64)
	finish func(mean float64) float64
	// ordered returns the metric of the rows, given as pairs in descending order of margins.
	ordered func(pairs []pair) float64
}

// value returns the metric for the sum sums[0] and the divisor sums[1].
func (m *metric) value(sums []float64) float64 {
	v := sums[0] / sums[1]
	if m.finish != nil {
		v = m.finish(v)
	}
	return v
}

// better reports whether v is better than best, the best value so far, by more than tolerance.
// NaN is never better, and every number is better than NaN.
func (m *metric) better(v, best, tolerance float64) bool {
	switch {
	case v != v:
		return false
	case best != best:
		return true
	case m.more:
		return v > best+tolerance
	}
	return v < best-tolerance
}

// metricsOf returns the metrics to measure; p has its defaults set. Metrics may contain working
// memory, so each subtask calls metricsOf for its own.
func metricsOf(p *Params) ([]metric, error) {
	names := p.Metrics
	if names == nil {
		names = defaultMetrics(p)
	}
	var found []metric
	for _, name := range names {
		m, err := parseMetric(name, p)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	if c := p.CustomObjective; p.Metrics == nil && c != nil && c.Metric != nil {
		found = append(found, c.Metric.metric())
	}
	for i := range p.CustomMetrics {
		found = append(found, p.CustomMetrics[i].metric())
	}
	return found, nil
}

func (m *CustomMetric) metric() metric {
	return metric{name: m.Name, more: m.MoreIsBetter, custom: true, finish: m.Finish, sum: func(r *Rows, _, out []float64) {
		total, weight := m.Sum(r)
		out[0] += total
		out[1] += weight
	}}
}

// defaultMetrics returns the metrics that are measured by default for the objective of p.
func defaultMetrics(p *Params) []string {
	switch p.Objective {
	case Squared:
		return []string{"rmse"}
	case Absolute:
		return []string{"mae"}
	case Logistic:
		return []string{"logloss"}
	case Softmax:
		return []string{"mlogloss"}
	case Poisson, Gamma, Tweedie:
		return []string{p.Objective.String() + "_deviance"}
	case AFT:
		return []string{"aft_nloglik"}
	case LambdaMART:
		return []string{"ndcg@10"}
	case Custom:
		return nil
	}
	return []string{p.Objective.String()} // these metrics have the objectives' names: huber and quantile
}

// parseMetric returns the metric with the given name. Some metrics of labels and predictions
// depend on the link of the objective.
func parseMetric(name string, p *Params) (metric, error) {
	plain, at, cut := strings.Cut(name, "@")
	places := 10
	if cut {
		var err error
		if places, err = strconv.Atoi(at); err != nil || places < 1 || places > 1<<24 || plain != "ndcg" && plain != "map" {
			return metric{}, fmt.Errorf("metric %q: want ndcg or map with @ and a number of places from 1", name)
		}
	}
	if !measurable(plain, p) {
		return metric{}, fmt.Errorf("metric %q does not go with the objective %v, or is none: want %s", name, p.Objective, strings.Join(metricsFor(p), ", "))
	}
	m := metric{name: name}
	switch plain {
	case "ndcg", "map":
		m.more = true
		m.sum = rankMetric(plain == "map", places)
	case "auc":
		m.more, m.ordered = true, areaUnderROC
	case "aucpr":
		m.more, m.ordered = true, averagePrecision
	case "logloss":
		m.sum = logLoss
	case "error":
		m.sum = errorRate
	case "mlogloss":
		m.sum = multiLogLoss
	case "merror":
		m.sum = multiError
	case "aft_nloglik":
		m.sum = aftLikelihood(p)
	default:
		m.sum = valueMetric(rowTerm(plain, p), linkOf(p))
		if plain == "rmse" {
			m.finish = math.Sqrt
		}
	}
	return m, nil
}

// linkOf returns the link of the objective of p.
func linkOf(p *Params) Link { return newLoss(p, 2).link() }

// allMetrics has the names of all metrics, in the order of the documentation.
var allMetrics = []string{
	"rmse", "mae", "huber", "quantile", "logloss", "error", "auc", "aucpr", "mlogloss", "merror",
	"poisson_deviance", "gamma_deviance", "tweedie_deviance", "aft_nloglik", "ndcg", "map",
}

// metricsFor returns the names of the metrics that can be measured with the objective of p.
func metricsFor(p *Params) []string {
	var found []string
	for _, name := range allMetrics {
		if measurable(name, p) {
			found = append(found, name)
		}
	}
	return found
}

// measurable reports whether the metric with the given name can be measured with the objective
// of p.
func measurable(name string, p *Params) bool {
	one := p.Objective != Softmax && p.Objective != AFT && !(p.Objective == Custom && p.CustomObjective != nil && p.CustomObjective.Outputs > 1)
	custom := func(l Link) bool {
		return p.Objective == Custom && p.CustomObjective != nil && p.CustomObjective.Link == l && one
	}
	switch name {
	case "rmse", "mae", "huber", "quantile":
		return one
	case "logloss", "error", "auc", "aucpr":
		return p.Objective == Logistic || custom(Sigmoid)
	case "mlogloss", "merror":
		return p.Objective == Softmax
	case "poisson_deviance", "gamma_deviance", "tweedie_deviance":
		return p.Objective == Poisson || p.Objective == Gamma && name != "poisson_deviance" || p.Objective == Tweedie && name != "gamma_deviance" || custom(Exponential)
	case "aft_nloglik":
		return p.Objective == AFT
	case "ndcg", "map":
		return p.Objective == LambdaMART || p.Objective == Custom && p.GroupCol != "" && one
	}
	return false
}

// rowTerm returns the function of the label y and the prediction v whose weighted mean over
// rows is the metric.
func rowTerm(name string, p *Params) func(y, v float64) float64 {
	switch name {
	case "mae":
		return func(y, v float64) float64 { return math.Abs(v - y) }
	case "huber":
		delta := p.HuberDelta
		set(&delta, 1)
		return func(y, v float64) float64 {
			d := math.Abs(v - y)
			if d <= delta {
				return float64(d*d) / 2
			}
			return delta * (d - float64(delta/2))
		}
	case "quantile":
		at := p.QuantileAt
		set(&at, 0.5)
		return func(y, v float64) float64 { return max(float64(at*(y-v)), (1-at)*(v-y)) }
	case "poisson_deviance":
		return poissonDeviance
	case "gamma_deviance":
		return gammaDeviance
	case "tweedie_deviance":
		power := p.TweediePower
		set(&power, defaultTweedie)
		return func(y, v float64) float64 { return tweedieDeviance(y, v, power) }
	}
	return func(y, v float64) float64 { return (v - y) * (v - y) }
}

func poissonDeviance(y, v float64) float64 {
	if y == 0 {
		return 2 * v
	}
	return 2 * (float64(y*kernel.Log(y/v)) - (y - v))
}

func gammaDeviance(y, v float64) float64 { return 2 * ((y-v)/v - kernel.Log(y/v)) }

func tweedieDeviance(y, v, power float64) float64 {
	a, b := 1-power, 2-power
	var own float64
	if y > 0 {
		own = kernel.Pow(y, b) / (a * b)
	}
	return 2 * (own - float64(y*kernel.Pow(v, a))/a + kernel.Pow(v, b)/b)
}

// valueMetric returns a function that adds up weighted values of term, a function of label and
// prediction.
func valueMetric(term func(y, v float64) float64, link Link) func(r *Rows, room, out []float64) {
	return func(r *Rows, room, out []float64) {
		v := room[:r.N]
		link.values(r.Margin[0][:r.N], v)
		var total, weight float64
		for i, y := range r.Label[:r.N] {
			w := r.weight(i)
			total += float64(w * term(y, v[i]))
			weight += w
		}
		out[0] += total
		out[1] += weight
	}
}

// values writes the predictions for the margins of a single output.
func (l Link) values(margins, dst []float64) {
	switch l {
	case Exponential:
		kernel.ExpTo(dst, margins)
	case Sigmoid:
		kernel.SigmoidTo(dst, margins)
	default:
		copy(dst, margins)
	}
}

// logLoss adds up softplus(m) − y·m over the rows, for the margin m and the label y. In this
// form the error is only rounding even where probabilities are near 0 or 1.
func logLoss(r *Rows, room, out []float64) {
	m, v := r.Margin[0][:r.N], room[:r.N]
	kernel.SoftplusTo(v, m)
	var total, weight float64
	for i, y := range r.Label[:r.N] {
		w := r.weight(i)
		total += float64(w * (v[i] - float64(y*m[i])))
		weight += w
	}
	out[0] += total
	out[1] += weight
}

// errorRate adds up the weights of the wrongly classified rows. A margin above 0 means the
// second class.
func errorRate(r *Rows, _, out []float64) {
	for i, m := range r.Margin[0][:r.N] {
		w := r.weight(i)
		if (m > 0) != (r.Label[i] > 0.5) {
			out[0] += w
		}
		out[1] += w
	}
}

// multiLogLoss adds up log Σ e^m minus the margin m of the true class.
func multiLogLoss(r *Rows, _, out []float64) {
	for i := range r.N {
		w, top := r.weight(i), math.Inf(-1)
		for _, m := range r.Margin {
			top = max(top, m[i])
		}
		var sum float64
		for _, m := range r.Margin {
			sum += kernel.Exp(m[i] - top)
		}
		out[0] += float64(w * (kernel.Log(sum) + top - r.Margin[int(r.Label[i])][i]))
		out[1] += w
	}
}

// multiError adds up the weights of the wrongly classified rows. The predicted class has the
// largest margin; of equal margins, the first.
func multiError(r *Rows, _, out []float64) {
	for i := range r.N {
		w, best := r.weight(i), 0
		for k, m := range r.Margin {
			if m[i] > r.Margin[best][i] {
				best = k
			}
		}
		if best != int(r.Label[i]) {
			out[0] += w
		}
		out[1] += w
	}
}

// aftLikelihood returns a function that adds up −log of the likelihood of the rows.
func aftLikelihood(p *Params) func(r *Rows, room, out []float64) {
	o := aft{distribution: p.Time, scale: p.TimeScale}
	set(&o.scale, 1)
	return func(r *Rows, _, out []float64) {
		for i, m := range r.Margin[0][:r.N] {
			lower, upper := interval(r, i)
			nll, _, _ := o.term(m, lower, upper)
			w := r.weight(i)
			out[0] += float64(w * nll)
			out[1] += w
		}
	}
}
