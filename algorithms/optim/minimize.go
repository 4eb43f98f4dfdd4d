package optim

import (
	"fmt"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// Problem describes a minimisation that Minimize adds to a job.
type Problem struct {
	// Name is the name of the queue.
	Name string
	// Init adds to q the data that Objective opens; nil means that no data is needed.
	Init      func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue
	Objective Objective
	Settings  Settings
	// Start returns the first parameters if they depend on the data. It replaces
	// Settings.Start. It is called once on each subtask, after the objective is open, and must
	// return the same parameters on all subtasks. The result is copied.
	Start func(ctx *comqueue.ComContext) ([]float64, error)
	// Closer returns the queue's rows after the last superstep, on subtask 0. It calls
	// ResultOf.
	Closer comqueue.Closer
}

// Objects of the queue of a minimisation.
var (
	trained    = shared.Scratch[*training]("optim training")
	progress   = shared.Replicated("optim progress", shared.Msgpack[*state]())
	reading    = shared.Scratch[[]float64]("optim gradient")
	trials     = shared.Scratch[[]float64]("optim trials")
	probes     = shared.Scratch[[]float64]("optim probes")
	bounds     = shared.Scratch[[]float64]("optim bound")
	curvatures = shared.Scratch[[]float64]("optim information")
	ownSums    = shared.Scratch[[]float64]("optim own products")
	allSums    = shared.Scratch[[]float64]("optim products")
	ownPart    = shared.Scratch[[]float64]("optim own direction")
	gathered   = shared.Scratch[[]float64]("optim direction")
	workOf     = shared.Scratch[*work]("optim work")
	sgdOf      = shared.Scratch[*sgd]("optim steps")
)

// Minimize adds a queue that minimises an objective, and returns the dataset of the rows that
// the Closer returns. If the problem is invalid, building the job fails with an error that
// names the caller's line.
func Minimize(b *engine.Builder, p Problem) *engine.Dataset {
	if err := p.validate(); err != nil {
		b.Errorf("minimize %q: %w", p.Name, err)
		return b.Poisoned("Minimize")
	}
	p.Settings = p.Settings.withDefaults()
	if p.Settings.Seed == 0 {
		p.Settings.Seed = b.Seed()
	}
	q := comqueue.New(b, p.Name)
	if p.Init != nil {
		q = p.Init(q)
	}
	if p.Settings.Method == SGD {
		return stochastic{p}.addTo(q)
	}
	return descent{problem: p}.addTo(q)
}

func (p Problem) validate() error {
	if p.Objective == nil {
		return fmt.Errorf("the objective is nil")
	}
	if p.Closer == nil {
		return fmt.Errorf("there is no Closer, so the queue would have no result")
	}
	if p.Start != nil && p.Settings.Start != nil {
		return fmt.Errorf("there are two starts, of the problem and of its settings")
	}
	return p.Settings.Validate()
}

// ResultOf returns the result of a minimisation. It may be called only in the Closer of a
// Problem. The caller owns the result.
func ResultOf(ctx *comqueue.ComContext) *Result { return resultKey.Get(ctx, 0).clone() }
