package fm

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Train fits a factorisation machine and returns the model as a dataset of one row. Its column
// "model" holds the bytes that Model.Encode returns. For a classification there is a second
// column: its value is null, and its type is the type of the labels.
//
// The training queue is named "fm". For the start and every iteration it reports "loss", which
// is the objective with its penalty, "gradient norm", "step" and "reads". Errors in the
// parameters, or in the columns that they name, are reported when the job is built, with the
// caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "fm.Train"
	b, refused := model.Begin(op, d, p.Validate())
	if refused != nil {
		return refused
	}
	p = p.withDefaults(b.Seed())
	return nonconvex.Training{Op: op, Queue: Kind, Params: p.common(), Open: p.open, Finish: p.finish}.Add(b, d)
}

// open returns the loss for rows with the facts f.
func (p Params) open(f *rows.Facts, _ bool) (nonconvex.Loss, error) {
	if p.Task == Classification && len(f.Classes) != 2 {
		return nil, fmt.Errorf("column %q has %d classes: a factorisation machine takes two", p.LabelCol, len(f.Classes))
	}
	if err := p.affordable(f.Dim()); err != nil {
		return nil, err
	}
	return newLoss(p, f), nil
}

// finish returns the model of a completed fit.
func (p Params) finish(l nonconvex.Loss, f nonconvex.Fit) model.Model {
	machine, k := l.(*loss).machine, p.Factors
	m := &Model{
		Task: p.Task, Classes: f.Classes, Dim: f.Facts.Declared, Columns: f.Facts.Columns,
		Intercept: machine.parameters[0], Linear: machine.parameters[1 : 1+machine.d], Factors: make([][]float64, machine.d),
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Summary: f.Summary, columns: f.Inputs,
	}
	for j := range m.Factors {
		m.Factors[j] = machine.parameters[1+machine.d+j*k : 1+machine.d+(j+1)*k]
	}
	return m
}
