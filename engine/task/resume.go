package task

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/plan"
)

// Resumption finishes the commit of a run whose workers are gone, in a process that
// has run none of it:
//
//	r, err := task.NewResumption(p, bindings, logger)
//	err = r.Commit(outcomes) // what Worker.Run returned, by worker
//	r.Close()                // once that is known for good to whoever would ask again
//
// Whoever uses it has made sure that no worker of the run can still commit. Sinks guard
// themselves against one that does, as far as their place has locks.
type Resumption struct {
	plan  *plan.Plan
	sinks *sinks
	log   hclog.Logger
}

// NewResumption binds the sinks of a plan. Nothing of them has been called yet.
func NewResumption(p *plan.Plan, bind Bindings, log hclog.Logger) (*Resumption, error) {
	if p == nil {
		return nil, errors.New("there is no plan whose commit is to be finished")
	}
	if err := checkBindings(p, &bind); err != nil {
		return nil, err
	}
	if log == nil {
		log = hclog.NewNullLogger()
	}
	return &Resumption{plan: p, sinks: newSinks(p, &bind), log: log}, nil
}

// Commit makes the output of all sinks visible that is not; where it fails, none is, as
// far as it could tell which are this run's. It may be called again, here or elsewhere,
// whatever came of it.
func (r *Resumption) Commit(outcomes [][]byte) error {
	decoded, err := decodeOutcomes(r.plan, outcomes)
	if err != nil {
		return err
	}
	if len(decoded) == 0 {
		return fmt.Errorf("the commit of job %q is to be finished without an outcome of its workers", r.plan.Job)
	}
	return r.sinks.resume(decoded)
}

// Close has the sinks forget what a further Commit would go by. What cannot be removed
// is logged.
func (r *Resumption) Close() {
	if err := r.sinks.settle(); err != nil {
		r.log.Warn("the receipt of an output is left over", "error", err)
	}
}
