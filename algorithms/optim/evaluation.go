package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
)

// evaluation is an opened objective and what it is known to do.
type evaluation struct {
	Evaluator
	linear  LinearEvaluator       // nil where it is not one
	curved  CurvedEvaluator       // nil where it is not one
	sampled SampledEvaluator      // nil where it is not one
	staged  StagedEvaluator       // nil where it is not one
	folding FoldingEvaluator      // nil where it is not one, or does not fold
	probing ProbingEvaluator      // nil where it is not one
	both    CurvedLinearEvaluator // nil where it is not one

	n       int
	weight  float64
	factors []float64
}

// unit returns what counts as a large derivative of the mean loss, and the largest that may
// count as one, where the objective tells.
func (e *evaluation) unit() (unit, huge float64) {
	if ev, ok := e.Evaluator.(UnitEvaluator); ok {
		return ev.GradientUnit(), hugeUnits * ev.GradientUnit()
	}
	return 1, math.Inf(1)
}

// open opens the objective of a problem on a subtask.
func (p Problem) open(ctx *comqueue.ComContext) (*evaluation, error) {
	ev, err := p.Objective.Open(ctx)
	if err != nil {
		return nil, err
	}
	if ev == nil {
		return nil, fmt.Errorf("the objective opened nothing")
	}
	e := &evaluation{Evaluator: ev, n: ev.Len(), weight: ev.Weight(), factors: ev.Factors()}
	e.linear, _ = ev.(LinearEvaluator)
	e.curved, _ = ev.(CurvedEvaluator)
	e.sampled, _ = ev.(SampledEvaluator)
	e.staged, _ = ev.(StagedEvaluator)
	e.both, _ = ev.(CurvedLinearEvaluator)
	e.probing, _ = ev.(ProbingEvaluator)
	if e.folding, _ = ev.(FoldingEvaluator); e.folding != nil && !e.folding.Folds() {
		e.folding = nil
	}
	switch {
	case e.n < 0:
		return nil, fmt.Errorf("the objective has %d parameters", e.n)
	case len(e.factors) != e.n:
		return nil, fmt.Errorf("the objective has %d parameters and %d factors of the penalty", e.n, len(e.factors))
	case !finite(e.weight):
		return nil, fmt.Errorf("the total weight of the rows is %v: make the weights smaller", e.weight)
	case !(e.weight > 0):
		return nil, fmt.Errorf("there is nothing to train on: no rows, or none with a weight above 0")
	case p.Settings.Start != nil && len(p.Settings.Start) != e.n:
		return nil, fmt.Errorf("the parameter Start has %d parameters, the objective has %d", len(p.Settings.Start), e.n)
	case p.Settings.GapTol > 0 && e.staged == nil:
		return nil, fmt.Errorf("the objective gives no lower bound of its minimum, which GapTol needs")
	case p.Settings.Information && e.curved == nil:
		return nil, fmt.Errorf("the objective has no second derivatives, which Information asks for")
	}
	return e, nil
}

// triangle is the number of elements of a packed lower triangle.
func triangle(n int) int { return n * (n + 1) / 2 }

// allowMatrix refuses second derivatives that take more memory than a subtask of some shards
// may.
func (p Problem) allowMatrix(shards, n int) error {
	one := int64(1+n+triangle(n)) * 8
	// A buffer for each level of the tree over the subtask's shards and one being
	// filled, the result, and the copy that is factored.
	copies := int64(4)
	for ; shards > 1; shards = (shards + 1) / 2 {
		copies++
	}
	if limit := p.Settings.MaxBytes; one > limit/copies {
		return fmt.Errorf("the second derivatives of %d parameters take %d MiB, in %d copies a subtask %d MiB, and MaxBytes allows %d MiB: use LBFGS without Information, or raise MaxBytes",
			n, one>>20, copies, one*copies>>20, limit>>20)
	}
	return nil
}
