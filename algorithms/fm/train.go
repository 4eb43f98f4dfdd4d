package fm

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Train fits a factorisation machine and returns the model as a dataset of one row, whose
// column "model" holds what Model.Encode returns. (Of a classification a second column,
// null, has the type of the labels.)
//
// Its queue is named "fm" and reports "loss", the objective with its penalty, "gradient
// norm", "step" and "reads" for the start and every iteration. What is wrong with the
// parameters or with the columns they name is reported when the job is built, with the
// caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "fm.Train"
	b := model.BuilderOf(op, d)
	if err := p.Validate(); err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	if d.Poisoned() {
		return d
	}
	p = p.withDefaults(b.Seed())
	t, err := rows.Check(op, d, p.columns(), p.label())
	i, missing := batch.FindColumn(arrowrows.Arrow(d.Schema()), p.LabelCol)
	var label arrow.DataType
	if err = errors.Join(err, missing); err == nil && p.Task == Classification {
		label = arrowrows.Arrow(d.Schema()).Field(i).Type
		_, err = Classes{Type: batch.TypeName(label)}.Cells()
	}
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	schema := d.Schema()
	made := optim.Minimize(b, optim.Problem{
		Name: Kind, Init: t.Init, Objective: objective{p, t}, Settings: p.settings(),
		Closer: signature.ModelCloser(label, func(ctx *comqueue.ComContext) (model.Model, error) {
			facts, err := t.FactsOf(ctx)
			if err != nil {
				return nil, err
			}
			return p.finish(optim.ResultOf(ctx), newEvaluator(p, facts), t, arrowrows.Arrow(schema)), nil
		}),
	})
	return signature.WarnOfDivergence(op, made, string(optim.Diverging))
}

// finish makes the model.
func (p Params) finish(r *optim.Result, e *evaluator, t rows.Table, schema *arrow.Schema) *Model {
	e.move(r.Parameters)
	f, k := e.facts, p.Factors
	m := &Model{
		Task: p.Task, Classes: Classes{Type: f.LabelType, Values: f.Classes}, Dim: f.Declared, Columns: f.Columns,
		Intercept: e.machine.parameters[0], Linear: e.machine.parameters[1 : 1+e.machine.d],
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol,
		Summary: Summary{
			Rows: f.Rows, Weight: f.Weight, Method: r.Method.String(), Loss: r.Loss, GradientNorm: r.GradientNorm,
			Iterations: r.Iterations, Reads: r.Reads, Converged: r.Converged, Reason: r.Reason, Record: r.Record,
		},
		columns: signature.InputsOf(p.VectorCol, p.FeatureCols, schema, f.Declared),
	}
	m.Factors = make([][]float64, e.machine.d)
	for j := range m.Factors {
		m.Factors[j] = e.machine.parameters[1+e.machine.d+j*k : 1+e.machine.d+(j+1)*k]
	}
	return m
}
