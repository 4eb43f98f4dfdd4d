package main

import (
	"github.com/superstep-ml/superstep/fixedmath"
	"github.com/superstep-ml/superstep/operators"
)

// labelled is a patient as a row.
type labelled struct {
	Label    float64
	Features operators.SparseVector
}

// logLoss returns the loss of one patient and adds its gradient. With these, optim.MinimizeRows
// does the work of slopes, a queue, an AllReduce and a descent above.
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
