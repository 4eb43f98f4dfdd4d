package fm

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// objective is the penalised loss of a machine over checked rows.
//
// The optimiser's parameters are how far those of the machine are from the first ones,
// which are drawn when the number of features is known. So the penalty, which is on the
// machine's parameters, is part of the loss of every row.
type objective struct {
	params Params
	table  rows.Table
}

// evaluator has the rows of a subtask.
type evaluator struct {
	params  Params
	facts   *rows.Facts
	lo      int
	blocks  []*rows.Block
	first   []float64 // the machine's first parameters
	machine machine
	sums    []float64 // over the factors, of a row, and their squares
	none    []float64 // factors of the optimiser's penalty: zeros
}

// Open implements optim.Objective.
func (o objective) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	data, err := o.table.Open(ctx)
	if err != nil {
		return optim.Evaluator{}, err
	}
	f := data.Facts
	if f.Declared == 0 {
		return optim.Evaluator{}, errors.New("there are no features")
	}
	if err := rows.TwoClasses(o.params.LabelCol, f.Classes); err != nil {
		return optim.Evaluator{}, err
	}
	if o.params.Task == Classification && len(f.Classes) != 2 {
		return optim.Evaluator{}, fmt.Errorf("column %q has %d classes: a factorisation machine tells two apart", o.params.LabelCol, len(f.Classes))
	}
	if err := f.Weighty(); err != nil {
		return optim.Evaluator{}, err
	}
	if err := o.params.affordable(f.Dim()); err != nil {
		return optim.Evaluator{}, err
	}
	own := ctx.Shards()
	e := newEvaluator(o.params, f)
	e.lo, e.blocks = own.Lo, make([]*rows.Block, own.Len())
	err = ctx.ForShards(func(shard int) error {
		e.blocks[shard-own.Lo] = data.Block(shard)
		return nil
	})
	return e.functions(), err
}

// newEvaluator returns an evaluator with its first parameters. A factor is a function of
// the seed and the declared feature alone.
func newEvaluator(p Params, f *rows.Facts) *evaluator {
	d, k := f.Dim(), p.Factors
	n := 1 + d + d*k
	e := &evaluator{params: p, facts: f, first: make([]float64, n), sums: make([]float64, 2*k), none: make([]float64, n)}
	e.machine = machine{d: d, k: k, parameters: make([]float64, n)}
	draws := shared.NewRandom(p.Seed, "factors", -1, 0)
	wide := 2 * spreadOf(p.InitialSpread)
	for j := range d {
		feature := j
		if f.Columns != nil {
			feature = int(f.Columns[j])
		}
		for c := range k {
			e.first[1+d+j*k+c] = wide * (draws.Float64At(uint64(feature)*uint64(k)+uint64(c)) - 0.5)
		}
	}
	return e
}

// functions returns what the optimiser has of the evaluator. The penalty is part of the loss.
func (e *evaluator) functions() optim.Evaluator {
	f := optim.Evaluator{
		Dim: len(e.first), Weight: e.facts.Weight, PenaltyFactors: e.none, Evaluate: e.evaluate,
		GradientUnit: 1, Minibatch: optim.Minibatch{Rows: e.count, Evaluate: e.evaluateRows},
	}
	if e.params.Task == Regression && e.facts.LabelStd > 0 {
		f.GradientUnit = e.facts.LabelStd // slopes of squares have the unit of the labels
	}
	return f
}

// count is Rows of optim.Minibatch.
func (e *evaluator) count(shard int) int {
	if b := e.blocks[shard-e.lo]; b != nil {
		return b.N
	}
	return 0
}

// evaluate is Evaluate of optim.Evaluator.
func (e *evaluator) evaluate(shard int, v, out []float64) error {
	b := e.blocks[shard-e.lo]
	e.move(v)
	var weight float64
	for i := range b.N {
		weight += e.row(b, i, out)
	}
	e.penalise(weight, out)
	return nil
}

// evaluateRows is Evaluate of optim.Minibatch.
func (e *evaluator) evaluateRows(shard int, list []int32, v, out []float64) error {
	b := e.blocks[shard-e.lo]
	e.move(v)
	var weight float64
	for _, i := range list {
		weight += e.row(b, int(i), out)
	}
	e.penalise(weight, out)
	out[1+len(e.first)] += weight
	return nil
}

// move sets the machine to parameters of the optimiser.
func (e *evaluator) move(v []float64) {
	for i, first := range e.first {
		e.machine.parameters[i] = first + v[i]
	}
}

// row adds loss and gradient of a row and returns its weight.
func (e *evaluator) row(b *rows.Block, i int, out []float64) float64 {
	var col []int32
	var val []float64
	if b.Dense != nil {
		val = b.Dense[i*b.D : (i+1)*b.D]
	} else {
		col, val = b.Sparse.Row(i)
		if len(col) == 0 {
			val = nil
		}
	}
	weight := 1.0
	if b.Weight != nil {
		weight = b.Weight[i]
	}
	loss, slope := lossOf(e.params.Task, e.machine.margin(col, val, e.sums), b.Label[i])
	out[0] += float64(weight * loss)
	gradient := out[1 : 1+len(e.first)]
	e.machine.addGradient(float64(weight*slope), col, val, e.sums, gradient)
	if e.params.NoIntercept {
		gradient[0] = 0
	}
	return weight
}

// penalise adds the penalty of rows of a weight.
func (e *evaluator) penalise(weight float64, out []float64) {
	d := e.machine.d
	linear, factors := e.machine.parameters[1:1+d], e.machine.parameters[1+d:]
	if l2 := e.params.L2; l2 > 0 {
		out[0] += float64(0.5 * weight * l2 * kernel.Dot(linear, linear))
		kernel.Axpy(weight*l2, linear, out[2:2+d])
	}
	if l2 := e.params.L2Factors; l2 > 0 {
		out[0] += float64(0.5 * weight * l2 * kernel.Dot(factors, factors))
		kernel.Axpy(weight*l2, factors, out[2+d:1+len(e.first)])
	}
}
