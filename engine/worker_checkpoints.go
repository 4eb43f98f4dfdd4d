package engine

import (
	"context"
	"errors"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workerCheckpoints are the checkpoints of a worker. They implement task.Checkpointer. The worker
// makes them when it builds the job, and opens them later: worker 0 before the sinks begin, and the
// others when they start, as they need to know the checkpoint that worker 0 has chosen. Worker 0
// removes the checkpoints after it has committed, and so does a worker that finishes a commit.
type workerCheckpoints struct {
	*saver // nil until the checkpoints are open
	config *config
	run    *checkpointed
}

// newCheckpoints returns the checkpoints of a worker, or nil if the job has none.
func (j *workerJob) newCheckpoints(c *config) *workerCheckpoints {
	if c.checkpoints.dir == "" {
		return nil
	}
	d := j.deployment
	return &workerCheckpoints{config: c, run: &checkpointed{
		graph: j.builder.graph, plan: j.plan, args: d.Spec.Args, part: task.Part{Worker: d.Worker, Slots: slotRanges(d)},
		job: d.Job, attempt: d.Attempt,
	}}
}

// openCheckpoints opens the checkpoints on worker 0.
func (j *workerJob) openCheckpoints(ctx context.Context) (*wire.Origin, error) {
	c := j.checkpoints
	if c == nil {
		return nil, nil
	}
	c.run.report = (&checkpointLog{tell: j.progress.checkpointed}).add
	var err error
	if c.saver, err = c.config.openCheckpoints(ctx, c.run, j.failCheckpoints); err != nil {
		return nil, err
	}
	return c.origin, nil
}

// joinCheckpoints opens the checkpoints on a worker other than 0.
func (j *workerJob) joinCheckpoints(ctx context.Context, from *wire.Origin) error {
	c := j.checkpoints
	if c == nil || j.deployment.Worker == 0 {
		return nil
	}
	if from == nil {
		return clusterFault(errors.New("the job has checkpoints, but worker 0 did not say where they begin"))
	}
	var err error
	c.saver, err = c.config.joinCheckpoints(ctx, c.run, from, j.failCheckpoints)
	return err
}

// failCheckpoints ends the run because of its checkpoints.
func (j *workerJob) failCheckpoints(cause error) { j.worker.cancel(cause) }

// closeCheckpoints ends the writing of checkpoints, if it has begun and not ended.
func (j *workerJob) closeCheckpoints(e ending) {
	if c := j.checkpoints; c != nil && c.saver != nil {
		c.saver.close(e)
		c.saver = nil
	}
}

// removeCheckpoints removes the checkpoints of the job after its commit.
func (j *workerJob) removeCheckpoints(ctx context.Context) {
	if j.resumed == nil {
		j.closeCheckpoints(endSucceeded)
		return
	}
	if j.checkpoints == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	if err := j.checkpoints.config.removeCheckpoints(ctx); err != nil {
		j.logger.Warn("the checkpoints of the run could not be removed", "error", err)
	}
}
