package task

import (
	"context"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Part is the share of a plan that one of several processes, a worker, runs. All
// workers of a run have the same plan and the same Slots.
type Part struct {
	// Worker is this one's number.
	Worker int
	// Slots are the subtask indices that run on each worker, by worker number. They are
	// contiguous, in order, not empty, and together all slots of the plan. Worker 0 has subtask
	// 0, and so does whatever happens once: the criterion of queues, the commit of sinks.
	Slots []sharding.Range
	// Join connects the ranks of a queue. Every worker that has ranks of the queue calls it, in
	// the order of the plan's queues; ranks lists the ranks of each such worker. The run closes
	// the group when its members have ended.
	Join func(ctx context.Context, queue string, ranks [][]int) (Group, error)
}

// Group connects the ranks of one queue, in whatever processes they are.
type Group interface {
	// Rank returns the communicator of a rank in this process.
	Rank(rank int) *collective.Comm
	// Abort ends all operations, in all processes, with a cause.
	Abort(cause error)
	// Close waits for the group's goroutines. It is called when all ranks of this process have
	// closed.
	Close() error
}

// JointSink is a Sink whose output becomes visible together with that of the other JointSinks
// of its run, or not at all. Several workers may write it. Of other Sinks, workers other than 0
// only run the operators; Begin, Commit and Abort are called on worker 0.
//
// When all subtasks have succeeded, the sinks of a run go through these steps on worker 0, each
// step on all of them before the next begins:
//
//	Complete   what is to be seen is whole and durable, where nobody sees it
//	Decide     it is on disk that it becomes visible, if nothing else keeps that on record
//	Place      it is seen
//	Finish     nothing is left of how it came there
//
// If a step before Finish fails, or a Sink that commits after Place, TakeBack undoes Place, and
// Abort follows. If the process ends before Decide, nothing becomes visible. If it ends later,
// the next run with any of the outputs finishes the commit.
type JointSink interface {
	Sink
	// Join does on every other worker what Begin did on worker 0, which has returned
	// by then.
	Join() error
	// Written describes what this worker wrote to the temporary place, for Complete. It is
	// called when all subtasks of the worker have succeeded.
	Written() ([]byte, error)
	// Leave releases what this process holds, and leaves everything on disk as it is. It is
	// called on a worker other than 0 after Join, as worker 0 removes the temporary output, and
	// after a resumed commit failed.
	Leave() error
	// Aside is the directory that the output is written to before it is visible; it identifies
	// the output among those of a run. It is known after Begin. It is empty for a sink with
	// nothing to show from this process.
	Aside() string
	// Complete verifies what was written and assembles it. If files cannot be seen from this
	// machine, its error says where they were written.
	Complete(c Completion) error
	// Decide records on disk that all outputs become visible. It is called on the first sink of
	// Completion.Set, if there are several.
	Decide() error
	// Place makes the output visible, in one step as far as the system can. Called again
	// it does nothing.
	Place() error
	// TakeBack undoes as much of Place as was done, if any. It is called on all sinks that
	// Complete was called on, the first of the set first.
	TakeBack() error
	// Finish removes the files that only Place and TakeBack needed. The output stays. Files
	// that cannot be removed are left to the next run.
	Finish()
	// Settle is called after Finish, once nobody will resume the commit any more. It removes
	// the record that all is done.
	Settle() error
}

// Completion is how a JointSink is to be completed.
type Completion struct {
	// Written is what every worker has written, this one included; nil where the run is
	// in one part.
	Written [][]byte
	// Set lists Aside of all sinks of the run, the one that decides first. It is nil if there
	// is only one, or if Recorded is set, as there is nothing to decide.
	Set []string
	// Recorded says that the caller has recorded that the run commits, and lets another process
	// finish the commit if this one is lost. By then the subtasks' output is on disk, as
	// Written describes it.
	Recorded bool
	// Resumed says that this is such a process, which has neither begun nor joined the sink.
	// Complete continues at the step that the previous process reached. It may be called again,
	// even after everything has succeeded. If it cannot find out the state of this run's
	// output, it fails.
	Resumed bool
}

// ResumeSink is a Sink, but no JointSink, whose commit another process can finish after the one
// that committed has ended at an unknown point.
type ResumeSink interface {
	Sink
	// Resume is Commit in a process that has not begun the sink.
	Resume() error
}

// HeldSink is a Sink whose output may be invisible after its commit, such as one that keeps
// rows for the caller of the run.
type HeldSink interface {
	Sink
	// Held reports whether the output is invisible after the commit in this process.
	Held() bool
}
