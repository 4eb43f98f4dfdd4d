package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// open opens the objective of a problem on a subtask.
func (p Problem) open(ctx *comqueue.ComContext) (Evaluator, error) {
	e, err := p.Objective.Open(ctx)
	if err != nil {
		return e, err
	}
	if err := e.check(); err != nil {
		return e, err
	}
	switch {
	case p.Settings.Start != nil && len(p.Settings.Start) != e.Dim:
		return e, fmt.Errorf("the parameter Start has %d parameters, the objective has %d", len(p.Settings.Start), e.Dim)
	case p.Settings.GapTol > 0 && e.Smoothing.Bound == nil:
		return e, fmt.Errorf("the objective gives no lower bound of its minimum, which GapTol needs: it has no Smoothing")
	case p.Settings.Information && e.Hessian == nil:
		return e, fmt.Errorf("the objective has no Hessian, which Information asks for")
	}
	return e, nil
}

// check returns an error if the evaluator is invalid.
func (e *Evaluator) check() error {
	switch {
	case e.Evaluate == nil:
		return fmt.Errorf("the evaluator has no Evaluate: Open of the objective has to set it")
	case e.Dim < 0:
		return fmt.Errorf("the objective has %d parameters", e.Dim)
	case len(e.PenaltyFactors) != e.Dim:
		return fmt.Errorf("the objective has %d parameters and %d PenaltyFactors", e.Dim, len(e.PenaltyFactors))
	case !kernel.Finite(e.Weight):
		return fmt.Errorf("the total weight of the rows is %v: make the weights smaller", e.Weight)
	case !(e.Weight > 0):
		return fmt.Errorf("there is nothing to train on: no rows, or none with a weight above 0")
	case !(e.GradientUnit >= 0) || !kernel.Finite(e.GradientUnit):
		return fmt.Errorf("GradientUnit of the evaluator is %v: want a number above 0, or 0 for 1", e.GradientUnit)
	case !(e.HessianCost >= 0) || !kernel.Finite(e.HessianCost):
		return fmt.Errorf("HessianCost of the evaluator is %v: want a number above 0, or 0 where it is not known", e.HessianCost)
	}
	if err := e.complete(); err != nil {
		return err
	}
	if e.Initial == nil {
		return nil
	}
	return e.startable(e.Initial)
}

// startable returns an error if v cannot be the first parameters.
func (e *Evaluator) startable(v []float64) error {
	if len(v) != e.Dim {
		return fmt.Errorf("there are %d parameters to start from, the objective has %d", len(v), e.Dim)
	}
	if i := kernel.NonFinite(v); i >= 0 {
		return fmt.Errorf("parameter %d to start from is %v", i, v[i])
	}
	return nil
}

// field is an optional field of an evaluator. set reports whether the evaluator has it.
type field struct {
	name string
	set  bool
}

// complete returns an error if a field lacks another field that it needs.
func (e *Evaluator) complete() error {
	m, b, s := &e.Margins, &e.Minibatch, &e.Smoothing
	groups := [][]field{
		{{"Margins.Start", m.Start != nil}, {"Margins.Direction", m.Direction != nil}, {"Margins.Trials", m.Trials != nil},
			{"Margins.Gradient", m.Gradient != nil}, {"Margins.Advance", m.Advance != nil}},
		{{"Subspace.Hessian", e.Subspace.Hessian != nil}, {"Subspace.Slopes", e.Subspace.Slopes != nil}},
		{{"Minibatch.Rows", b.Rows != nil}, {"Minibatch.Evaluate", b.Evaluate != nil}},
		{{"Snapshot.Append", e.Snapshot.Append != nil}, {"Snapshot.Restore", e.Snapshot.Restore != nil}},
		{{"Smoothing.BoundLen", s.BoundLen > 0}, {"Smoothing.Bound", s.Bound != nil}, {"Smoothing.Gap", s.Gap != nil}, {"Smoothing.Refine", s.Refine != nil}},
	}
	for _, group := range groups {
		for i, f := range group { // the fields of a group form a cycle, so that one field requires all
			if other := group[(i+1)%len(group)]; f.set && !other.set {
				return fmt.Errorf("the evaluator has %s and no %s: set both, or neither", f.name, other.name)
			}
		}
	}
	margins, kept := field{"Margins", m.Start != nil}, field{"Snapshot", e.Snapshot.Append != nil}
	for _, n := range []struct{ has, needs field }{
		{margins, kept},
		{field{"Smoothing", s.Bound != nil}, kept},
		{field{"Margins.Hessian", m.Hessian}, field{"Margins.Start", m.Start != nil}},
		{field{"Margins.Hessian", m.Hessian}, field{"Hessian", e.Hessian != nil}},
		{field{"HessianCost", e.HessianCost > 0}, field{"Margins.Hessian", m.Hessian}},
		{field{"Subspace", e.Subspace.Hessian != nil}, margins},
		{field{"Minibatch.Fold", b.Fold != nil}, field{"Minibatch.Evaluate", b.Evaluate != nil}},
	} {
		if n.has.set && !n.needs.set {
			return fmt.Errorf("the evaluator has %s, which needs %s", n.has.name, n.needs.name)
		}
	}
	return nil
}

// keepsMargins reports whether rows are evaluated through cached margins.
func (e *Evaluator) keepsMargins() bool { return e.Margins.Start != nil }

// unit returns the values of state.Unit and state.Huge, which it computes from GradientUnit.
func (e *Evaluator) unit() (unit, huge float64) {
	if e.GradientUnit > 0 {
		return e.GradientUnit, maxUnits * e.GradientUnit
	}
	return 1, math.Inf(1)
}

// triangle returns the number of elements of a packed lower triangle with n rows.
func triangle(n int) int { return n * (n + 1) / 2 }

// allowMatrix returns an error if second derivatives of n parameters need more memory than a
// subtask with the given number of shards may use.
func (p Problem) allowMatrix(shards, n int) error {
	one := int64(1+n+triangle(n)) * 8
	// There is one buffer for each level of the tree over the subtask's shards. In addition
	// there are the buffer that is being filled, the result, and the copy that is factored.
	copies := int64(4)
	for ; shards > 1; shards = (shards + 1) / 2 {
		copies++
	}
	if limit := p.Settings.MaxBytes; one > limit/copies {
		return fmt.Errorf("the second derivatives of %d parameters take %d MiB, in %d copies %d MiB on a subtask, but MaxBytes allows %d MiB: use LBFGS without Information, or raise MaxBytes",
			n, one>>20, copies, one*copies>>20, limit>>20)
	}
	return nil
}
