package gbdt

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// The prior is the constant that is best for all rows. The first superstep computes it and sets
// state.base. It uses sums of integers, so the prior does not depend on the order of rows.
//
// limits has the largest weighted target of each output, and then the largest weight. sums has
// a pair of integers for each element of limits: the sum of the values, rounded on a
// power-of-two scale, and the sum of the rounding errors, on a scale finer by 2^fine.
var (
	limits = shared.Scratch[[]float64]("limits")
	sums   = shared.Scratch[[]int64]("sums")
)

// priorByMean reports whether the prior is computed from means of targets.
func (s *state) priorByMean() bool {
	switch s.params.Objective {
	case Absolute, Quantile, Huber, LambdaMART, Custom:
		return false
	}
	return s.needsPrior()
}

// needsPrior reports whether rows start from the prior.
func (s *state) needsPrior() bool {
	return s.params.Base == nil && s.params.Start == nil && s.data.Margins == nil
}

// measureLimits computes the largest weighted targets and the largest weight of a shard.
func (q *boosting) measureLimits(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := trained.Get(ctx)
	if s.base != nil {
		return nil
	}
	r := &s.view
	show(r, s.data, s.span(shard), s.queries, s.margin, nil)
	for i := range r.N {
		w := s.weightOf(s.span(shard).First + i)
		for k := range s.outputs {
			out[k] = max(out[k], math.Abs(w*s.loss.target(r, i, k)))
		}
		out[s.outputs] = max(out[s.outputs], w)
	}
	return nil
}

// fine is the number of additional bits of the second integer of a pair in sums.
const fine = 30

// measureSums adds the weighted targets and the weights of a shard to out.
func (q *boosting) measureSums(ctx *comqueue.ComContext, shard int, out []int64) error {
	s, top := trained.Get(ctx), limits.Get(ctx)
	if s.base != nil || !s.priorByMean() {
		return nil
	}
	scale := make([]float64, len(top))
	for k, v := range top {
		if !kernel.Finite(v) {
			return fmt.Errorf("column %q: the weighted labels are so large that they exceed float64: scale them down", s.params.LabelCol)
		}
		scale[k] = powerBelow(v, s.data.Facts.Rows)
	}
	r := &s.view
	show(r, s.data, s.span(shard), s.queries, s.margin, nil)
	add := func(k int, v float64) {
		whole := math.RoundToEven(v * scale[k])
		out[2*k] += int64(whole)
		out[2*k+1] += int64(math.RoundToEven((float64(v*scale[k]) - whole) * (1 << fine)))
	}
	for i := range r.N {
		w := s.weightOf(s.span(shard).First + i)
		for k := range s.outputs {
			add(k, w*s.loss.target(r, i, k))
		}
		add(s.outputs, w)
	}
	return nil
}

// meanOf returns the mean target of output k.
func (s *state) meanOf(k int, top []float64, total []int64) float64 {
	sum := func(k int) float64 {
		whole, rest := float64(total[2*k]), float64(float64(total[2*k+1])/(1<<fine))
		return (whole + rest) / powerBelow(top[k], s.data.Facts.Rows)
	}
	return sum(k) / sum(s.outputs)
}

// beginPrior stores the largest weight. If training computes quantiles, it rounds weights to
// integers. If the prior is a quantile, it starts the search for this quantile.
func (q *boosting) beginPrior(ctx *comqueue.ComContext) error {
	s := trained.Get(ctx)
	if s.base != nil {
		if q.quantiles != nil {
			q.quantiles.skip(ctx, &s.quant)
		}
		return nil
	}
	top := limits.Get(ctx)
	if !(top[s.outputs] > 0) {
		return fmt.Errorf("no row that is trained on has a weight above 0")
	}
	if err := s.tiny(top); err != nil {
		return err
	}
	s.most = top[s.outputs]
	if q.quantiles == nil {
		return nil
	}
	s.countWeights()
	if !s.needsPrior() {
		q.quantiles.skip(ctx, &s.quant)
		return nil
	}
	s.quant.at, s.quant.groups, s.quant.rows = q.params.level(), 1, s.data.Rows
	s.quant.group, s.quant.weight = nil, s.units
	s.quant.value = func(i int) float64 { return s.data.Label[i] }
	q.quantiles.begin(ctx, &s.quant)
	return nil
}

// countWeights rounds weights to integers, with which quantiles are computed.
func (s *state) countWeights() {
	if s.weight == nil {
		return
	}
	scale := powerBelow(s.most, s.data.Facts.Rows)
	s.units = make([]int64, len(s.weight))
	for i, w := range s.weight {
		s.units[i] = scaled(w, scale)
	}
}

// least is the smallest value allowed for the largest weight, and for the largest weighted
// label unless it is 0. With these bounds, squares of gradients and hessians are far above the
// smallest float64.
const least = 0x1p-400

// tiny returns an error if squares of gradients would underflow: if the weights are too small,
// or the labels with an objective whose gradients are in proportion to labels.
func (s *state) tiny(top []float64) error {
	if top[s.outputs] < least {
		return fmt.Errorf("the largest weight of a row, times that of its class, is %v: products of such small numbers lose digits: scale weights up, nearer to 1", top[s.outputs])
	}
	switch s.params.Objective {
	case Squared, Huber, Poisson, Tweedie:
		if v := top[0]; v > 0 && v < least {
			return fmt.Errorf("column %q: the largest weighted label is %v: squares of such small numbers are 0: scale labels up, nearer to 1", s.params.LabelCol, v)
		}
	}
	return nil
}

// level returns the quantile that the objective of p predicts.
func (p *Params) level() float64 {
	if p.Objective == Quantile {
		return p.QuantileAt
	}
	return 0.5
}

// finishPrior sets the margins that rows start from.
func (q *boosting) finishPrior(ctx *comqueue.ComContext) error {
	s := trained.Get(ctx)
	if s.base != nil {
		return nil
	}
	s.base = make([]float64, s.outputs)
	switch {
	case s.params.Start != nil:
		copy(s.base, s.params.Start.Ensemble.Base) // the margins that rows bring include this base
	case s.params.Base != nil:
		if n := len(s.params.Base); n != 1 && n != s.outputs {
			return fmt.Errorf("the parameter Base has %d margins for %d outputs: want one, or one for each", n, s.outputs)
		}
		for k := range s.base {
			s.base[k] = s.params.Base[min(k, len(s.params.Base)-1)]
		}
	case s.priorByMean():
		if err := s.basesOfMeans(limits.Get(ctx), sums.Get(ctx)); err != nil {
			return err
		}
	case q.quantiles != nil && s.needsPrior():
		s.base[0] = s.quant.found[0]
	}
	s.startMargins()
	limits.Put(ctx, nil)
	sums.Put(ctx, nil)
	return nil
}

// startMargins sets the margins of rows to the base, unless the rows bring their own margins.
func (s *state) startMargins() {
	for k, b := range s.base {
		if s.data.Margins == nil {
			fill(s.margin[k], b)
		}
		for _, m := range s.sets {
			if m.own && m.data.Margins == nil {
				fill(m.margin[k], b)
			}
		}
	}
}

func fill(v []float64, to float64) {
	for i := range v {
		v[i] = to
	}
}

// basesOfMeans sets the base margins from the means of targets.
func (s *state) basesOfMeans(top []float64, total []int64) error {
	for k := range s.base {
		mean := s.meanOf(k, top, total)
		s.base[k] = s.loss.base(mean)
		if kernel.Finite(s.base[k]) {
			continue
		}
		if s.params.Objective.classes() {
			return fmt.Errorf("column %q: a class has no row of positive weight to train on: leave its rows out", s.params.LabelCol)
		}
		return fmt.Errorf("column %q: the labels have the mean %v, from which the objective %v cannot start: set Base", s.params.LabelCol, mean, s.params.Objective)
	}
	return nil
}
