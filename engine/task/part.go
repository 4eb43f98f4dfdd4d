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

// PartSink is a Sink that can be written by several workers. Of one that is not, only
// the operators run on workers other than 0: Begin, Commit and Abort are worker 0's.
type PartSink interface {
	Sink
	// Join does on every other worker what Begin did on worker 0, which has returned
	// by then.
	Join() error
	// Written says what this worker wrote aside, for CommitParts. It is called when all
	// subtasks of the worker have succeeded.
	Written() ([]byte, error)
	// CommitParts is Commit on worker 0, with what every worker, this one included, has
	// written. What cannot be seen from here is an error that says where it was written.
	CommitParts(written [][]byte) error
	// Leave gives up, on a worker other than 0, what Join took; the output aside is
	// worker 0's to remove.
	Leave() error
}

// ResumeSink is a sink whose commit another process can finish, where that of worker 0
// ended before anyone could know whether it had committed. What subtasks wrote is on
// disk by then, as Written says; Resume begins where CommitParts has come to, whichever
// step that is.
type ResumeSink interface {
	Sink
	// Resume is CommitParts in a process that has neither begun nor joined the sink. It
	// may be called again, after it has succeeded too. Where it cannot tell that the
	// output of this very run is visible when it returns, it fails. A sink that is not a
	// PartSink is given nil.
	Resume(written [][]byte) error
	// Settle is called when nobody will ask for Resume any more, and removes by what that
	// would have known that all is done.
	Settle() error
}
