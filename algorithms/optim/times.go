package optim

import (
	"time"

	"github.com/superstep-ml/superstep/engine"
)

// Time is what a superstep took on subtask 0.
type Time struct {
	Elapsed time.Duration
	Bytes   int64 // sent to other subtasks
}

// Times returns what each superstep of a queue took in a finished run; nil where the run
// has no queue of that name. Index 0 is the start, index i iteration i, for SGD step i. It
// is no part of a Result, which is the same on every run.
func Times(result *engine.Result, queue string) []Time {
	report := result.Queue(queue)
	if report == nil {
		return nil
	}
	times := make([]Time, len(report.Steps))
	for i, s := range report.Steps {
		times[i] = Time{Elapsed: s.Elapsed, Bytes: s.Bytes}
	}
	return times
}
