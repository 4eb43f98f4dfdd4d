package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// MinimizeSplit does what Minimize does, by descent. It splits the parameters among subtasks if
// there are at least `from` parameters.
func MinimizeSplit(b *engine.Builder, p Problem, from int) *engine.Dataset {
	p.Settings = p.Settings.withDefaults()
	return descent{problem: p, splitFrom: from}.addTo(p.Init(comqueue.New(b, p.Name)))
}

// Complete returns an error if an evaluator lacks a field that another of its fields needs.
func Complete(e Evaluator) error { return e.complete() }

// Kept returns how many numbers a subtask stores in its blocks of split vectors, and how many
// in whole vectors.
func Kept(ctx *comqueue.ComContext) (blocks, wholes int) {
	w := workOf.Get(ctx)
	vectors := [][]float64{w.v, w.PenaltyFactors, w.gradient, w.next, w.direction, w.point}
	if w.settings.L1 > 0 {
		vectors = append(vectors, w.pseudo)
	}
	if w.history != nil {
		vectors = append(vectors, w.history.pairs)
	}
	for i := range w.path {
		vectors = append(vectors, w.path[i].v, w.path[i].gradient)
	}
	for _, x := range vectors {
		blocks += len(x)
	}
	wholes = len(w.gathered) + len(reading.Get(ctx))
	for _, x := range w.probing.steps {
		wholes += len(x)
	}
	return blocks, wholes
}
