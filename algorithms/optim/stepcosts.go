package optim

import (
	"time"

	"github.com/superstep-ml/superstep/engine"
)

// StepCost has the duration of a superstep and the bytes sent in it, both measured on subtask 0.
type StepCost struct {
	Elapsed time.Duration
	Bytes   int64 // bytes sent to other subtasks
}

// StepCosts returns the StepCost of each superstep of a queue in a finished run, or nil if the
// run has no queue of that name. Element 0 belongs to the start, and element i to iteration i,
// or for SGD to step i. StepCosts are not in an optim.Result, which is the same in every run.
func StepCosts(result *engine.Result, queue string) []StepCost {
	report := result.Queue(queue)
	if report == nil {
		return nil
	}
	times := make([]StepCost, len(report.Steps))
	for i, s := range report.Steps {
		times[i] = StepCost{Elapsed: s.Elapsed, Bytes: s.Bytes}
	}
	return times
}
