package main

import (
	"github.com/superstep-ml/superstep/fixedmath"
	"github.com/superstep-ml/superstep/operators"
)

// labelled is the row of one patient.
type labelled struct {
	Label    float64
	Features operators.SparseVector
}

// logLoss returns the loss of one patient for weights w, and adds its gradient to grad. It is
// all that optim.MinimizeRows needs to train the model that slopes and the queue train.
func logLoss(p labelled, w, grad []float64) float64 {
	margin, x := w[0], p.Features
	for j, i := range x.Indices {
		margin += float64(w[i+1] * x.Values[j])
	}
	slope := float64(-p.Label * fixedmath.Sigmoid(-p.Label*margin))
	grad[0] += slope
	for j, i := range x.Indices {
		grad[i+1] += float64(slope * x.Values[j])
	}
	return fixedmath.Softplus(-p.Label * margin)
}
