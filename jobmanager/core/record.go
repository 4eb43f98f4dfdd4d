package core

import "github.com/superstep-ml/superstep/internal/wire"

// record emits the effects that persist the job's current state and send it to its followers.
func (c *Core) record(j *job, barrier bool) { c.persist(j, Persist{Barrier: barrier}) }

// recordDeployment does the same for a job whose workers have been placed. They are deployed
// when the record is on disk.
func (c *Core) recordDeployment(j *job) { c.persist(j, Persist{Barrier: true, Retry: true}) }

// persist completes e, which has the barrier, and emits it.
func (c *Core) persist(j *job, e Persist) {
	info := j.snapshot()
	if j.info.State == wire.JobCommitting || j.info.State == wire.JobFinished {
		info.Outcomes = j.outcomes
	}
	e.Job = info
	if j.info.Parallelism != j.planned && j.spec.Graph != nil {
		e.Graph, j.planned = j.spec.Graph, j.info.Parallelism
	}
	if !info.State.Ended() {
		e.Continuation = c.continuation(j)
		if !j.specRecorded {
			spec := j.spec
			e.Spec, j.specRecorded = &spec, true
		}
	}
	c.emit(e)
	c.emit(Changed{Job: info})
}

// persisted is called after the attempt to write a record with a barrier. It deploys the workers
// of an attempt, sends givers that are not needed the command to exit, or sends worker 0 the
// command to commit. If the record could not be written, it fails the job.
func (c *Core) persisted(e Persisted) {
	j := c.jobs[e.ID]
	if j == nil || e.Attempt != j.info.Attempt {
		return
	}
	commits := e.State == wire.JobCommitting && j.info.State == wire.JobCommitting && !j.recorded
	if !commits && j.onRecord == e.Attempt {
		if e.Err == nil {
			c.exitGivers(j)
		}
		return
	}
	if e.Err != nil {
		c.fail(j, &wire.Failure{Kind: wire.ClusterFailure, Message: "the job manager could not put the job on record: " + e.Err.Error(), Worker: -1, ExitCode: -1})
		return
	}
	if commits {
		c.recordedCommit(j)
		return
	}
	j.onRecord = e.Attempt
	c.phaseEnds(j, wire.RecoveryPlaced, 1)
	c.release(j.resolver)
	for w := range j.all() {
		c.release(w)
	}
}

// recordedCommit sends worker 0 the command to commit, as the job is on record as committing.
func (c *Core) recordedCommit(j *job) {
	j.recorded = true
	if j.resume.due { // worker 0 was lost while the record was being written
		c.rethink = true
		return
	}
	j.committing = true
	c.command(j.workers[0], wire.WorkerCommand{Commit: &wire.Commit{Outcomes: j.outcomes}})
}
