package task

import (
	"context"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Part is the share of a plan that one of several processes, called a worker, runs. All
// workers of a run have the same plan and the same Slots.
type Part struct {
	// Worker is the number of this worker.
	Worker int
	// Slots[i] is the range of subtask indices that run on worker i. The ranges are contiguous
	// and in order, and cover all slots of the plan. Worker 0 has subtask 0 and does what is done
	// only once: it evaluates the criteria of queues and commits the sinks. The last workers may have
	// empty ranges. They only give the others what their processes have kept of an earlier run,
	// and their outcomes are not needed.
	Slots []sharding.Range
	// Join connects the ranks of a queue. Every worker that has ranks of the queue calls it, in
	// the order of the plan's queues. ranks lists the ranks of each such worker. The run closes
	// the group when the members of the queue have ended.
	Join func(ctx context.Context, queue string, ranks [][]int) (Group, error)
}

// Running returns how many workers run subtasks, of the workers with the given ranges of subtask indices.
// The others only give.
func Running(slots []sharding.Range) int {
	n := len(slots)
	for n > 0 && slots[n-1].Empty() {
		n--
	}
	return n
}

// gives reports whether the worker runs no subtasks.
func (p *Part) gives() bool { return p.Slots[p.Worker].Empty() }

// Group connects the ranks of one queue, which may be in several processes.
type Group interface {
	// Rank returns the communicator of a rank in this process.
	Rank(rank int) *collective.Comm
	// Abort ends all operations of the group, in all processes, with a cause.
	Abort(cause error)
	// Close waits for the group's goroutines. It is called when all ranks of this process have
	// closed.
	Close() error
}

// JointSink is a Sink whose output becomes visible together with the outputs of the other
// JointSinks of its run, or not at all. Several workers may write the output. The methods of
// other Sinks are called only on worker 0; the other workers only run their operators.
//
// When all subtasks have succeeded, the sinks of a run go through these steps on worker 0, each
// step on all sinks before the next step begins:
//
//	Complete   the output is complete and durable, but not yet visible
//	Decide     a record on disk says that all outputs become visible, unless the caller has such a record
//	Place      the output is visible
//	Finish     files that only the previous steps needed are removed
//
// Sinks that are not JointSinks commit after Place. If such a commit or a step before Finish
// fails, TakeBack undoes Place, and then Abort is called. If the process ends before Decide,
// nothing becomes visible. If it ends later, the next run that writes any of the outputs
// finishes the commit.
type JointSink interface {
	Sink
	// Join is called on every worker other than 0, in place of Begin. Begin has then
	// returned on worker 0.
	Join() error
	// Written returns a description of the temporary output that this worker wrote, for
	// Complete. It is called when all subtasks of the worker have succeeded.
	Written() ([]byte, error)
	// Leave releases what this process holds, and does not change files. It is called on
	// workers other than 0 after Join, as only worker 0 removes the temporary output. It is
	// also called after a resumed commit has failed.
	Leave() error
	// Aside returns the directory to which the output is written before it is visible. The
	// directory identifies the output among the outputs of a run. It is known after Begin. It is
	// "" if the sink makes no output of this process visible.
	Aside() string
	// Complete verifies what was written and assembles the output. If files cannot be read from
	// this machine, its error says where they were written.
	Complete(c Completion) error
	// Decide records on disk that all outputs become visible. It is called only if
	// Completion.Set is not nil, and only on the first sink of the set.
	Decide() error
	// Place makes the output visible, atomically if the system can do so. A second call
	// does nothing.
	Place() error
	// TakeBack undoes what Place has done, if anything. It is called on all sinks on which
	// Complete was called, beginning with the first sink of the set.
	TakeBack() error
	// Finish removes the files that only Place and TakeBack needed. The output remains visible.
	// Files that cannot be removed are left to the next run.
	Finish()
	// Settle is called after Finish, once no process will resume the commit any more. It removes
	// the record that says that the commit is finished.
	Settle() error
}

// Completion tells Complete how to complete a JointSink.
type Completion struct {
	// Written[i] is the description that Written returned on worker i, including this worker.
	// Written is nil if the run is in one part.
	Written [][]byte
	// Set lists the directories Aside of all sinks of the run. The first directory belongs to
	// the sink whose Decide is called. Set is nil if there is only one directory, or if
	// Recorded is true, as Decide is not needed then.
	Set []string
	// Recorded says that the caller has recorded that the run commits, and lets another process
	// finish the commit if this process is lost. The subtasks' output is then already on disk,
	// as Written describes it.
	Recorded bool
	// Resumed says that this process finishes the commit of another process, and has neither
	// begun nor joined the sink. Complete continues at the step that the other process had
	// reached. It may be called again, even after everything has succeeded. If it cannot find
	// out the state of this run's output, it fails.
	Resumed bool
}

// ResumeSink is a Sink, other than a JointSink, whose commit can be finished by another process
// after the committing process has ended at an unknown point.
type ResumeSink interface {
	Sink
	// Resume finishes the commit. It is called instead of Commit, in a process that has not begun
	// the sink.
	Resume() error
}

// OverlapSink is a Sink that says whether another attempt of a job on a cluster may begin the same
// sink, and commit it, while processes of this attempt still run, on a machine that the cluster
// has lost. These processes may then begin or join the sink late, write, leave or abort, but do not
// commit. They must not change anything that the next attempt writes or makes visible.
type OverlapSink interface {
	Sink
	// Overlaps reports whether that is so. Without it, the next attempt begins only when the
	// processes of this one must have ended.
	Overlaps() bool
}

// HeldSink is a Sink whose output may be invisible after its commit, such as a Sink that keeps
// rows for the caller of the run.
type HeldSink interface {
	Sink
	// Held reports whether the output is invisible after the commit in this process.
	Held() bool
}
