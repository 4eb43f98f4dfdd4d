package gbdt

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// loss is an objective: a sum of weighted terms, one for each row (for ranking, one for each
// query).
type loss interface {
	// gradients writes the first and second derivatives of each row's term with respect to its
	// margins, multiplied by the row's weight: grad[k][i] and hess[k][i] for output k and row
	// i. Hessians are 0 or more. They may be larger than the true second derivatives, which
	// makes steps smaller.
	gradients(r *Rows, grad, hess [][]float64) error
	// target returns the target of row i for an output. The mean of the targets gives the prior
	// of the output.
	target(r *Rows, i, output int) float64
	// base returns the prior, a margin, that belongs to a mean of targets.
	base(mean float64) float64
	// check returns an error if the label of row i is outside the domain.
	check(r *Rows, i int) error
	// link returns the function from margins to predictions.
	link() Link
}

// newLoss returns the objective of p, whose defaults are set. classes is the number of classes
// of the labels.
func newLoss(p *Params, classes int) loss {
	switch p.Objective {
	case Absolute:
		return &absolute{}
	case Huber:
		return &huber{delta: p.HuberDelta}
	case Quantile:
		return &pinball{at: p.QuantileAt}
	case Logistic:
		return &logistic{}
	case Softmax:
		return &softmax{classes: classes}
	case Poisson:
		return &poisson{inflate: kernel.Exp(p.MaxDeltaStep)}
	case Gamma:
		return &gamma{}
	case Tweedie:
		return &tweedie{power: p.TweediePower}
	case AFT:
		return &aft{distribution: p.Time, scale: p.TimeScale}
	case LambdaMART:
		return newLambdaMART(p.RankTruncation, !p.NoRankNormalization)
	case Custom:
		return &custom{CustomObjective: p.CustomObjective}
	}
	return &squared{}
}

// outputs returns the number of margins of a row.
func (p *Params) outputs(classes int) int {
	switch {
	case p.Objective == Softmax:
		return classes
	case p.Objective == Custom:
		return max(1, p.CustomObjective.Outputs)
	}
	return 1
}

// number has the methods that are common to the objectives whose labels are arbitrary numbers.
type number struct{}

func (number) target(r *Rows, i, _ int) float64 { return r.Label[i] }
func (number) base(mean float64) float64        { return mean }
func (number) check(*Rows, int) error           { return nil }
func (number) link() Link                       { return Identity }

// squared is the objective ½(m−y)² for a label y and a margin m.
type squared struct{ number }

func (*squared) gradients(r *Rows, grad, hess [][]float64) error {
	g, h, m := grad[0][:r.N], hess[0][:r.N], r.Margin[0][:r.N]
	y := r.Label[:r.N]
	if r.Weight == nil {
		for i, v := range m {
			g[i], h[i] = v-y[i], 1
		}
		return nil
	}
	for i, v := range m {
		w := r.Weight[i]
		g[i], h[i] = w*(v-y[i]), w
	}
	return nil
}

// absolute is the objective |m−y|. Leaf values are medians of residuals, so the hessian, which
// is 1, is used only to decide which splits are large enough.
type absolute struct{ number }

func (*absolute) gradients(r *Rows, grad, hess [][]float64) error {
	for i, m := range r.Margin[0] {
		w := r.weight(i)
		grad[0][i], hess[0][i] = w*sign(m-r.Label[i]), w
	}
	return nil
}

// pinball is the objective at·(y−m) where the label y is above the margin m, and (1−at)·(m−y)
// elsewhere.
type pinball struct {
	number
	at float64
}

func (o *pinball) gradients(r *Rows, grad, hess [][]float64) error {
	for i, m := range r.Margin[0] {
		w := r.weight(i)
		switch d := m - r.Label[i]; {
		case d > 0:
			grad[0][i] = w * (1 - o.at)
		case d < 0:
			grad[0][i] = -float64(w * o.at)
		default:
			grad[0][i] = 0
		}
		hess[0][i] = w
	}
	return nil
}

// huber is the objective ½d² for |d| ≤ delta and delta·(|d|−½delta) for larger |d|, where d =
// m−y.
type huber struct {
	number
	delta float64
}

func (o *huber) gradients(r *Rows, grad, hess [][]float64) error {
	for i, m := range r.Margin[0] {
		w := r.weight(i)
		grad[0][i], hess[0][i] = w*max(-o.delta, min(o.delta, m-r.Label[i])), w
	}
	return nil
}

// minHessian is a lower bound of hessians, so that rows whose label is predicted with near
// certainty still count.
const minHessian = 1e-16

// logistic is the objective log(1+e^m) − y·m for a label y of 0 or 1 and a margin m.
type logistic struct{ number }

func (*logistic) link() Link { return Sigmoid }

func (*logistic) base(mean float64) float64 { return kernel.Log(mean) - kernel.Log1p(-mean) }

func (*logistic) gradients(r *Rows, grad, hess [][]float64) error {
	g, h, y := grad[0][:r.N], hess[0][:r.N], r.Label[:r.N]
	kernel.SigmoidTo(g, r.Margin[0][:r.N])
	if r.Weight == nil {
		for i, p := range g {
			g[i], h[i] = p-y[i], max(minHessian, p*(1-p))
		}
		return nil
	}
	for i, p := range g {
		w := r.Weight[i]
		g[i], h[i] = w*(p-y[i]), w*max(minHessian, p*(1-p))
	}
	return nil
}

// softmax is the objective log Σ e^m minus the margin m of the true class. Only the diagonal of
// the hessian matrix of a row is used. All K margins change in the same round, so the diagonal
// is multiplied by K/(K−1), which gives the step of Friedman's K-class boosting.
type softmax struct{ classes int }

func (*softmax) check(*Rows, int) error { return nil }
func (*softmax) link() Link             { return Shares }

func (*softmax) target(r *Rows, i, output int) float64 {
	if int(r.Label[i]) == output {
		return 1
	}
	return 0
}

func (*softmax) base(mean float64) float64 { return kernel.Log(mean) }

func (o *softmax) gradients(r *Rows, grad, hess [][]float64) error {
	// hess[0] first holds the largest margin of each row, and then the sum of the exponentials.
	top := hess[0][:r.N]
	copy(top, r.Margin[0])
	for _, m := range r.Margin[1:] {
		for i, v := range top {
			top[i] = max(v, m[i])
		}
	}
	for k, m := range r.Margin {
		g := grad[k][:r.N]
		for i, v := range m[:r.N] {
			g[i] = v - top[i]
		}
		kernel.ExpTo(g, g)
	}
	factor := float64(o.classes) / float64(o.classes-1)
	sum := top
	copy(sum, grad[0])
	for _, g := range grad[1:] {
		for i, v := range g[:r.N] {
			sum[i] += v
		}
	}
	for k := len(grad) - 1; k >= 0; k-- { // hess[0] holds the sums, so it is overwritten last
		g, h := grad[k], hess[k]
		for i := range r.N {
			p, w := g[i]/sum[i], r.weight(i)
			h[i] = w * max(minHessian, factor*p*(1-p))
			if int(r.Label[i]) == k {
				p--
			}
			g[i] = w * p
		}
	}
	return nil
}

// sign returns −1, 0 or 1, the sign of v.
func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// CustomObjective is an objective given by functions. They run on every subtask, in several
// goroutines at once, and their results must depend only on their arguments.
type CustomObjective struct {
	// Name is kept in the model.
	Name string
	// Outputs is the number of margins of a row, each of which gets a tree in every round; 0
	// means 1.
	Outputs int
	// Gradients writes the first and second derivatives of the rows' losses with respect to
	// their margins to grad[k][i] and hess[k][i], for output k and row i. r has all rows of a
	// shard. If they have weights, Gradients multiplies by them.
	Gradients func(r *Rows, grad, hess [][]float64) error
	// Link is the function from margins to predictions; the zero value is Identity.
	Link Link
	// Metric is measured if Params.Metrics is nil. If Metric is nil too, no metric is measured.
	Metric *CustomMetric
}

func (c *CustomObjective) validate() error {
	switch {
	case c.Gradients == nil:
		return errors.New("CustomObjective.Gradients is nil: give a function")
	case c.Outputs < 0 || c.Outputs > maxOutputs:
		return fmt.Errorf("CustomObjective.Outputs is %d: want 0 to %d", c.Outputs, maxOutputs)
	case c.Link < Identity || c.Link > Sigmoid:
		return fmt.Errorf("CustomObjective.Link is %v: want Identity, Exponential or Sigmoid", c.Link)
	case c.Metric != nil:
		return c.Metric.validate()
	}
	return nil
}

// maxOutputs bounds the number of trees of a round.
const maxOutputs = 4096

// custom is a user-defined objective. The slices of the subtask have the length of its longest
// shard; they are cut to the rows of a shard before they are passed to the functions of the
// user.
type custom struct {
	*CustomObjective
	grad, hess [][]float64
}

func (o *custom) gradients(r *Rows, grad, hess [][]float64) error {
	o.grad, o.hess = o.grad[:0], o.hess[:0]
	for k := range grad {
		o.grad, o.hess = append(o.grad, grad[k][:r.N:r.N]), append(o.hess, hess[k][:r.N:r.N])
	}
	if err := o.Gradients(r, o.grad, o.hess); err != nil {
		return fmt.Errorf("custom objective %q: %w", o.Name, err)
	}
	for k := range grad {
		if !same(o.grad[k], grad[k][:r.N]) || !same(o.hess[k], hess[k][:r.N]) {
			return fmt.Errorf("custom objective %q: it has put slices of its own in the place of those of output %d: write the numbers of the %d rows to the ones that it is given", o.Name, k, r.N)
		}
		for i, g := range grad[k][:r.N] {
			if h := hess[k][i]; !kernel.Finite(g) || !(h >= 0 && kernel.Finite(h)) {
				return &engine.RowError{Row: int64(i), Err: fmt.Errorf("custom objective %q: gradient %v and hessian %v of output %d: want numbers, hessians of 0 or more", o.Name, g, h, k)}
			}
		}
	}
	return nil
}

// same reports whether a and b have the same length and the same memory.
func same(a, b []float64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (*custom) target(*Rows, int, int) float64 { return 0 }
func (*custom) base(float64) float64           { return 0 }
func (*custom) check(*Rows, int) error         { return nil }
func (o *custom) link() Link                   { return o.Link }
