package mlp

import (
	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Train fits a multilayer perceptron and returns the model as a dataset of one row. Its column
// "model" holds the bytes that Model.Encode returns. For a classification there is a second
// column, which has nulls and the type of the labels.
//
// The training queue is named "mlp". For the start and every iteration it reports "loss", which
// is the objective with its penalty, "gradient norm", "step" and "reads". Errors in the
// parameters, or in the columns that they name, are reported when the job is built, with the
// caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "mlp.Train"
	b, refused := model.Begin(op, d, p.Validate())
	if refused != nil {
		return refused
	}
	p = p.withDefaults(b.Seed())
	return nonconvex.Training{
		Op: op, Queue: Kind, Params: p.common(), Finish: p.finish,
		Open: func(f *rows.Facts, sparse bool) (nonconvex.Loss, error) { return newLoss(p, f, sparse) },
	}.Add(b, d)
}

// finish returns the model of a completed fit.
func (p Params) finish(l nonconvex.Loss, f nonconvex.Fit) model.Model {
	e := l.(*loss)
	m := &Model{
		Task: p.Task, Classes: f.Classes, Activation: p.Activation,
		Dim: f.Facts.Declared, Columns: f.Facts.Columns, Shift: e.shift, Scale: e.scale,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Summary: f.Summary, columns: f.Inputs,
	}
	for l := range e.net.layers() {
		layer := Layer{Biases: e.net.biases(l, e.net.parameters)}
		out := e.net.sizes[l+1]
		w := e.net.weights(l, e.net.parameters)
		for i := range e.net.sizes[l] {
			layer.Weights = append(layer.Weights, w[i*out:(i+1)*out])
		}
		m.Layers = append(m.Layers, layer)
	}
	return m
}
