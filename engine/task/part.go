package task

import (
	"context"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/shared"
)

// Part is the share of a plan that one of several processes, a worker, runs. All
// workers of a run have the same plan and the same Slots.
type Part struct {
	// Worker is this one's number.
	Worker int
	// Slots are the subtask indices that run on each worker, by number: contiguous,
	// in order, none empty, together those of the plan's slots. Worker 0 has subtask 0,
	// and with it whatever happens once: the criterion of queues, the commit of sinks.
	Slots []shared.Range
	// Join brings the ranks of a queue together. Every worker that has ranks of the
	// queue calls it, in the order of the plan's queues; ranks has those of each such
	// worker. The run closes the group when its members have ended.
	Join func(ctx context.Context, queue string, ranks [][]int) (Group, error)
}

// Group is the ranks of one queue, in whatever processes they are.
type Group interface {
	// Rank returns the end of a rank that lives in this process.
	Rank(rank int) *collective.Comm
	// Abort ends all operations, here and elsewhere, with a cause.
	Abort(cause error)
	// Close waits for what the group runs in the background. It is called when all
	// ranks of this process have closed.
	Close() error
}

// JointSink is a Sink whose output becomes visible together with that of the other
// JointSinks of its run, or not at all. It may be written by several workers; of a Sink
// that is none only the operators run on workers other than 0, and Begin, Commit and
// Abort are worker 0's.
//
// When all subtasks have succeeded, the sinks of a run go through these steps on worker
// 0, each step on all of them before the next begins:
//
//	Complete   what is to be seen is whole and durable, where nobody sees it
//	Decide     it is on disk that it becomes visible, if nothing else keeps that on record
//	Place      it is seen
//	Finish     nothing is left of how it came there
//
// Where a step before Finish fails, or a Sink that commits after Place, TakeBack undoes
// what was placed, and Abort follows. Where the process ends before Decide, nothing is
// ever seen; afterwards the next run with any of the outputs finishes what it finds.
type JointSink interface {
	Sink
	// Join does on every other worker what Begin did on worker 0, which has returned
	// by then.
	Join() error
	// Written says what this worker wrote aside, for Complete. It is called when all
	// subtasks of the worker have succeeded.
	Written() ([]byte, error)
	// Leave gives up what this process holds, with everything on disk left as it is: on
	// a worker other than 0 after Join, as the output aside is worker 0's to remove, and
	// where a resumed commit failed.
	Leave() error
	// Aside is the directory in which the output is written aside, which names it among
	// those of a run. It is known from Begin on, and empty for a sink that has nothing to
	// show from this process.
	Aside() string
	// Complete verifies what was written and puts it together. What cannot be seen from
	// here is an error that says where it was written.
	Complete(c Completion) error
	// Decide is called on the first sink of Completion.Set, if there are several, and
	// has it on disk when it returns that all of them become visible.
	Decide() error
	// Place makes the output visible, in one step as far as the system can. Called again
	// it does nothing.
	Place() error
	// TakeBack undoes Place, as far as that has come, if at all. It is called on all sinks
	// that Complete was called on, the first of the set first.
	TakeBack() error
	// Finish removes what Place and its undoing needed. The output stands: what cannot be
	// removed is left to the next run.
	Finish()
	// Settle is called after Finish when nobody will ask to resume any more, and removes
	// by what it would have been known that all is done.
	Settle() error
}

// Completion is how a JointSink is to be completed.
type Completion struct {
	// Written is what every worker has written, this one included; nil where the run is
	// in one part.
	Written [][]byte
	// Set is Aside of all sinks of the run, that which decides first; nil where there is
	// nothing to decide, as there is only one, or where Recorded.
	Set []string
	// Recorded says that somebody else keeps on record that the run commits, and has
	// another process finish the commit if this one is lost. What subtasks wrote is on
	// disk by then, as Written says.
	Recorded bool
	// Resumed says that this is such a process, which has neither begun nor joined the
	// sink: Complete begins where the one before has come to, whichever step that is. It
	// may be called again, after all has succeeded too. Where it cannot tell what became
	// of the output of this very run, it fails.
	Resumed bool
}

// ResumeSink is a Sink that is no JointSink and of which another process can finish the
// commit, where the one that committed ended before anyone could know how far it came.
type ResumeSink interface {
	Sink
	// Resume is Commit in a process that has not begun the sink.
	Resume() error
}

// HeldSink is a Sink of which nothing may be visible when it has committed, such as one
// that keeps rows for the caller of the run.
type HeldSink interface {
	Sink
	// Held reports whether it is so in this process.
	Held() bool
}
