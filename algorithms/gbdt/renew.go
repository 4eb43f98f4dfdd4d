package gbdt

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// For objectives whose second derivatives do not give the size of a step, leaf values are
// renewed: each leaf gets the constant that is best for the residuals of its rows. This
// constant is the median for Absolute and the quantile for Quantile. For Huber it is the median
// plus the mean of the differences from the median, cut to ±HuberDelta (Friedman, "Greedy
// function approximation: a gradient boosting machine", Annals of Statistics 29, 2001). With
// monotone constraints keepMonotone then cuts the values.

// rest has, for each leaf, the weighted sum of the cut differences from the median, and the sum
// of weights.
var rest = shared.Scratch[[]float64]("rest")

// renews reports whether leaf values are renewed with the objective of p.
func (p *Params) renews() bool {
	return p.Objective == Absolute || p.Objective == Quantile || p.Objective == Huber
}

// beginRenewal starts the search for the quantiles of residuals in the leaves.
func (q *boosting) beginRenewal(ctx *comqueue.ComContext) error {
	s, t := trained.Get(ctx), q.grower.State(ctx).Tree(0)
	s.leaf = q.grower.State(ctx).Leaves(0, s.leaf)
	s.quant.group = kernel.Sized(s.quant.group, s.data.Rows)
	number, leaves := numberLeaves(t)
	for i, n := range s.leaf {
		s.quant.group[i] = -1
		if s.inBag(i) && s.weightOf(i) > 0 {
			s.quant.group[i] = number[n]
		}
	}
	s.quant.at, s.quant.groups, s.quant.rows, s.quant.weight = s.params.level(), leaves, s.data.Rows, s.units
	s.quant.value = func(i int) float64 { return s.data.Label[i] - s.margin[0][i] }
	q.quantiles.begin(ctx, &s.quant)
	r, _ := rest.Lookup(ctx)
	r = kernel.Sized(r, 2*leaves)
	if s.params.Objective != Huber {
		r = r[:0]
	}
	rest.Put(ctx, r)
	return nil
}

// numberLeaves numbers the leaves of a tree from 0, in the order of the nodes.
func numberLeaves(t *tree.Tree) (number []int32, leaves int) {
	number = make([]int32, len(t.Nodes))
	for i := range t.Nodes {
		if t.Nodes[i].Leaf() {
			number[i] = int32(leaves)
			leaves++
		}
	}
	return number, leaves
}

// sumRest adds the differences of the residuals of a shard from the medians to out, for Huber.
func (q *boosting) sumRest(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := trained.Get(ctx)
	if s.params.Objective != Huber {
		return nil
	}
	delta := s.params.HuberDelta
	span := s.span(shard)
	for i := span.First; i < span.First+span.Rows; i++ {
		g := s.quant.group[i]
		if g < 0 {
			continue
		}
		w, d := s.weightOf(i), s.data.Label[i]-s.margin[0][i]-s.quant.found[g]
		out[2*g] += float64(w * max(-delta, min(delta, d)))
		out[2*g+1] += w
	}
	return nil
}

// renewed sets the leaf values of t to the renewed ones.
func (q *boosting) renewed(ctx *comqueue.ComContext, s *state, t *tree.Tree) {
	sum, g := rest.Get(ctx), 0
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Leaf() {
			continue
		}
		if v := s.quant.found[g]; !math.IsNaN(v) {
			if s.params.Objective == Huber {
				v += sum[2*g] / sum[2*g+1]
			}
			if top := s.params.MaxDeltaStep; top > 0 {
				v = max(-top, min(top, v))
			}
			n.Value = v
		}
		g++
	}
	if q.monotone != nil {
		keepMonotone(t, q.monotone)
	}
}
