package gbdt

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// begin passes the gradients and hessians of the round to the grower.
func (q *boosting) begin(ctx *comqueue.ComContext) error {
	s := trained.Get(ctx)
	round := s.params.round(ctx.StepNo())
	if rate := s.params.rate(round); !(rate > 0 && kernel.Finite(rate)) {
		return fmt.Errorf("round %d: the learning rate is %v: want a number above 0", round, rate)
	}
	g, ok := q.grower.Lookup(ctx)
	if !ok {
		var err error
		if g, err = q.grower.Open(ctx, s.data); err != nil {
			return err
		}
	}
	s.draw(round)
	g.Begin((round-1)*s.outputs, s.outputs)
	if s.bag != nil {
		for k := range s.outputs {
			g.SetRows(k, s.rows)
		}
	}
	oneSided := s.params.oneSided(round)
	err := s.eachGradient(func(first, n int) {
		for k := range s.outputs {
			grad, hess := s.grad[k][:n], s.hess[k][:n]
			if oneSided {
				for i, f := range s.factor[first : first+n] {
					grad[i] *= f
					hess[i] *= f
				}
			}
			g.Target(k).Set(first, grad, hess)
		}
	})
	for k := 0; err == nil && k < s.outputs; k++ {
		if !g.Target(k).Finite() {
			err = fmt.Errorf("round %d: the objective %v has gradients or hessians of output %d that are not finite or too large: %s", round, s.params.Objective, k, divergedAdvice)
		}
	}
	return err
}

// divergedAdvice is the advice in errors about margins or labels that are too large.
const divergedAdvice = "lower LearningRate, bring labels and weights nearer to 1, or start from a Base or margins near the answer"

// dropTrees is the stage that drops trees for DART, before gradients are computed.
func (q *boosting) dropTrees(ctx *comqueue.ComContext) error {
	s := trained.Get(ctx)
	s.drop(s.params.round(ctx.StepNo()))
	return nil
}

// take stores the trees of the round and adds their values to all margins.
func (q *boosting) take(ctx *comqueue.ComContext) error {
	s, g := trained.Get(ctx), q.grower.State(ctx)
	rate, weight := s.params.rate(s.params.round(ctx.StepNo())), 1.0
	if s.dropped != nil {
		weight = s.restore(rate)
	}
	leaves := func(k int, d *bins.Data, out []int32) []int32 {
		if d == s.data {
			return g.Leaves(k, out)
		}
		return g.Route(k, d, out)
	}
	for k := range s.outputs {
		t := *g.Tree(k)
		if s.params.renews() {
			q.renewed(ctx, s, &t)
		}
		for i := range t.Nodes {
			t.Nodes[i].Value *= rate
		}
		t.Output, t.Weight = int32(k), 1
		s.trees = append(s.trees, t)
		s.addTree(&t, weight, leaves)
	}
	return nil
}

// addTree adds the values of a tree of a new round, multiplied by weight, to all margins.
// leaves writes to out the node in which each row ends. Its argument k is the output, and d has
// the training rows or the rows of an evaluation set.
func (s *state) addTree(t *tree.Tree, weight float64, leaves func(k int, d *bins.Data, out []int32) []int32) {
	s.values = kernel.Sized(s.values, len(t.Nodes))
	for i := range t.Nodes {
		s.values[i] = weight * t.Nodes[i].Value
	}
	k := int(t.Output)
	var kept []ends
	s.leaf = leaves(k, s.data, s.leaf)
	if s.dropped != nil {
		kept = append(kept, endsOf(s.leaf, len(t.Nodes)))
	}
	addValues(s.margin[k], s.leaf, s.values)
	for _, m := range s.sets {
		if !m.own {
			continue
		}
		m.leaf = leaves(k, m.data, m.leaf)
		if s.dropped != nil {
			kept = append(kept, endsOf(m.leaf, len(t.Nodes)))
		}
		addValues(m.margin[k], m.leaf, s.values)
	}
	if s.dropped != nil {
		s.dropped.ends = append(s.dropped.ends, kept)
	}
}

// addValues adds to each margin the value of the node in which its row ended.
func addValues(margin []float64, leaf []int32, values []float64) {
	margin = margin[:len(leaf)]
	for i, n := range leaf {
		margin[i] += values[n]
	}
}
