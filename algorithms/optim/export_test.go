package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// MinimizeSplit is Minimize by descent with the history split among subtasks from a
// number of parameters on.
func MinimizeSplit(b *engine.Builder, p Problem, from int) *engine.Dataset {
	p.Settings = p.Settings.withDefaults()
	return descent{problem: p, splitFrom: from}.addTo(p.Init(comqueue.New(b, p.Name)))
}
