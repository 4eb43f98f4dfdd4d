package task

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/plan"
)

// Resumption finishes the commit of a run whose workers have ended, in a process that has run no
// part of it:
//
//	r, err := task.NewResumption(p, bindings, logger)
//	err = r.Commit(outcomes) // what Worker.Run returned, by worker
//	r.Close()                // once it is certain that nobody will call Commit again
//
// The caller must make sure that no worker of the run can still commit. If a worker commits
// nevertheless, the sinks detect it, provided that their file system has locks.
type Resumption struct {
	plan  *plan.Plan
	sinks *sinks
	log   hclog.Logger
}

// NewResumption binds the sinks of a plan. It calls none of their methods.
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

// Commit makes the outputs of all sinks visible that are not visible yet. If it fails, no
// output is visible, except outputs that it could not identify as outputs of this run. It may
// be called again, in any process, whether it failed or not.
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

// Close removes the records that a further Commit would need. Files that cannot be removed are
// logged.
func (r *Resumption) Close() {
	if err := r.sinks.settle(); err != nil {
		r.log.Warn("the receipt of an output is left over", "error", err)
	}
}
