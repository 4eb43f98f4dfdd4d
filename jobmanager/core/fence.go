package core

import "github.com/superstep-ml/superstep/internal/wire"

// If a task manager is lost, its workers may still run: the task manager may be cut off from the job
// manager. It kills them when its lease has lapsed. The next attempt of their job does not wait for
// that if the workers have said that attempts may overlap (wire.Ready.Overlaps). Then
//
//   - sinks write to files that belong to an attempt, and a worker of an earlier attempt cannot
//     change or remove the files of a later one;
//   - checkpoints belong to an attempt too, and an earlier attempt removes none that a later one
//     has loaded;
//   - workers of different attempts do not accept connections from each other, as each attempt has a
//     secret of its own;
//   - rows, text and reports of an earlier attempt are ignored, as its number is not that of the job;
//   - only the last attempt gets the command to commit, as an attempt whose results are complete is
//     not followed by another attempt that computes them. If the worker that commits is lost, another
//     one finishes the commit, and waits for the lease (resume.go).
//
// Otherwise, for example because the job has a sink of the user that does not know attempts, a worker
// on a lost task manager counts as ended when the time of a lease has passed since the last message
// from the task manager. A job whose workers were never told to prepare the sinks does not wait: its
// workers have written nothing, and do not begin to. Nor does it wait for a worker that resolves its graph,
// or for a giver or a taker, which join no sinks.

// fence records until when worker w, whose task manager was lost, may disturb the next attempt. A
// task manager that left has no workers.
func (c *Core) fence(w *worker) {
	j := w.job
	if w.taskManager.state == TaskManagerLeft || j.overlaps || w.mode == wire.ResolveMode || w.gives() || w.takes {
		return
	}
	if began := j.preparing || j.started > 0 || j.adopted; !began && w.mode == wire.RunMode {
		return
	}
	j.fencedUntil = max(j.fencedUntil, w.taskManager.heard+max(c.config.Lease+c.config.Slack, w.taskManager.patience))
}
