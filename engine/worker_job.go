package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workerJob is the job that a worker runs. Its methods are not called concurrently.
type workerJob struct {
	worker     *worker
	deployment *wire.Deployment
	logger     hclog.Logger
	noDir      error // why the client's working directory could not be entered, or nil

	builder  *Builder
	plan     *plan.Plan
	plane    dataPlane
	part     subtasks
	resumed  *task.Resumption // set in place of plane, part and progress if the worker only finishes a commit
	progress *workerProgress

	checkpoints *workerCheckpoints // nil if the job has none
	copies      *workerCopies      // nil if there are none
	precopy     *workerPrecopy     // nil if no rows are copied ahead of an attempt

	smallPages func() // ends the effect of config.hugePages; nil before it is called
}

func newWorkerJob(w *worker, d *wire.Deployment) *workerJob {
	level := hclog.LevelFromString(d.Spec.Run.LogLevel)
	if level == hclog.NoLevel {
		level = hclog.Warn
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "worker", Level: level, Output: w.env.stderr})
	return &workerJob{
		worker: w, deployment: d,
		logger: logger.With("job", string(d.Job), "attempt", d.Attempt, "worker", d.Worker),
	}
}

// build calls the job's function, as the client did, and opens the data plane. In a worker that
// is only to resolve facts, it resolves the facts of the job and does nothing else.
func (j *workerJob) build(ctx context.Context) workOutcome {
	d := j.deployment
	failed := func(err error) workOutcome { return workOutcome{event: workerlife.WorkFailed, err: err} }
	if err := checkDeployment(d); err != nil {
		return failed(clusterFault(err))
	}
	if dir := j.dir(); dir != "" {
		var err error
		if j.noDir, err = j.worker.env.enter(dir, d.WorkDir); err != nil {
			return failed(clusterFault(fmt.Errorf("%v; leave the directory of the task manager: %w", j.noDir, err)))
		}
	}
	job, err := findJob(j.worker.env.jobs, d.Spec.Name)
	if err != nil {
		return failed(misused(err))
	}
	c, err := j.config()
	if err != nil {
		return failed(misused(err))
	}
	if d.Mode == wire.ResolveMode {
		graph, err := resolveGraph(job, d, c)
		if err != nil {
			return failed(misused(err))
		}
		return workOutcome{event: workerlife.WorkResolved, answer: &wire.FromWorker{Resolved: &wire.Resolved{Graph: graph}}}
	}
	if j.builder, err = rebuild(job, d, c); err != nil {
		return failed(misused(err))
	}
	if j.plan, err = plan.Compile(j.builder.graph, d.Spec.Parallelism); err != nil {
		return failed(misused(err))
	}
	if ctx.Err() != nil { // the job's function has no context, so it did not end with ctx
		return failed(context.Cause(ctx))
	}
	j.checkpoints, j.copies = j.newCheckpoints(c), j.newCopies()
	if d.Mode == wire.CommitMode {
		return j.resume()
	}
	if err := j.connect(c); err != nil {
		return failed(err)
	}
	ready, err := j.readiness()
	if err != nil {
		return failed(err)
	}
	return workOutcome{event: workerlife.WorkDone, answer: &wire.FromWorker{Ready: ready}}
}

// dir returns the directory to which the worker changes, or "" if it stays where it is. The directory
// in which the process was started is removed after its first attempt.
func (j *workerJob) dir() string {
	if d := j.deployment; d.Spec.Dir != "" || j.worker.attempts == 1 {
		return d.Spec.Dir
	}
	return j.deployment.WorkDir
}

// resume prepares to finish the commit of a run whose workers have ended. No part of the job
// runs, so there is no data plane.
func (j *workerJob) resume() workOutcome {
	j.builder.store.stream = &rowSender{sender: j.worker.sender} // nothing is sent, but the client's outputs are not written here
	var err error
	if j.resumed, err = task.NewResumption(j.plan, j.builder.bind, j.logger); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: clusterFault(err)}
	}
	return workOutcome{event: workerlife.WorkDone, answer: &wire.FromWorker{Ready: &wire.Ready{Fingerprint: j.builder.graph.Fingerprint()}}}
}

// checkDeployment checks those fields of a deployment on which the methods of workerJob rely.
func checkDeployment(d *wire.Deployment) error {
	switch {
	case d.Mode != wire.RunMode && d.Mode != wire.ResolveMode && d.Mode != wire.CommitMode:
		return fmt.Errorf("the deployment has mode %d, which this version does not know", d.Mode)
	case d.Mode == wire.ResolveMode:
		return nil
	case d.Worker < 0 || d.Worker >= len(d.Slots):
		return fmt.Errorf("the deployment is for worker %d of %d", d.Worker, len(d.Slots))
	case d.Attempt < 1 || d.Memory < 0:
		return fmt.Errorf("the deployment has attempt %d and %d bytes of memory", d.Attempt, d.Memory)
	}
	next := 0
	for i, s := range d.Slots[:max(1, running(d))] {
		if s.Lo != next || s.Hi <= s.Lo {
			return fmt.Errorf("the deployment gives worker %d the slots %d to %d, after %d others", i, s.Lo, s.Hi-1, next)
		}
		next = s.Hi
	}
	return nil
}

// findJob returns the job with the given name.
func findJob(jobs []Runnable, name string) (Runnable, error) {
	var names []string
	var found Runnable
	for _, j := range jobs {
		if !usable(j) {
			continue
		}
		if slices.Contains(names, j.Name()) {
			return nil, fmt.Errorf("the program has two jobs named %q: give each a name of its own in engine.Define", j.Name())
		}
		names = append(names, j.Name())
		if j.Name() == name {
			found = j
		}
	}
	if found != nil {
		return found, nil
	}
	slices.Sort(names)
	hint := ""
	if near := spelling.Near(name, names); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return nil, fmt.Errorf("the program has no job %q (it has: %s)%s", name, listNames(names), hint)
}

// config returns those settings of the client that apply to a worker.
func (j *workerJob) config() (*config, error) {
	d, run := j.deployment, &j.deployment.Spec.Run
	exists := Fail
	switch run.IfExists {
	case "", Fail.String():
	case Replace.String():
		exists = Replace
	default:
		return nil, fmt.Errorf("--if-exists is %q: want fail or replace", run.IfExists)
	}
	opts := []Option{
		Parallelism(d.Spec.Parallelism), Shards(d.Spec.Shards), Seed(d.Spec.Seed), IfExists(exists),
		CheckBroadcasts(run.CheckBroadcasts), CheckState(run.CheckState), SpillDir(d.WorkDir), Logger(j.logger), Allocator(j.worker.env.allocator),
		Stdout(&textSender{sender: j.worker.sender, ctx: j.worker.context}),
	}
	if s := run.Checkpoints; s != nil {
		opts = append(opts, CheckpointDir(s.Dir), CheckpointEvery(s.Every), CheckpointSupersteps(s.Supersteps), CheckpointFailAfter(s.FailAfter), Resume(s.Dir != "" && (s.Resume || d.Resume)), FromSavepoint(s.Savepoint))
		if s.MTBF != 0 {
			opts = append(opts, CheckpointAuto(s.MTBF))
		}
	}
	if run.BatchRows != 0 {
		opts = append(opts, BatchRows(run.BatchRows))
	}
	if d.Mode == wire.RunMode {
		opts = append(opts, MemoryBudget(j.memory()))
	}
	c, err := newConfig(opts)
	if err == nil {
		c.attempt = attemptOf(d)
		c.checkpoints.require = run.RequireCheckpoints // not an option, as this process does not know the copies
	}
	return c, err
}

// memory returns the memory budget of the worker: the budget that the user gives each slot,
// for all slots of the worker, or else the memory that the task manager gives the worker.
func (j *workerJob) memory() int64 {
	d := j.deployment
	if d.Spec.Run.Memory > 0 {
		return d.Spec.Run.Memory * int64(max(1, d.Taken())) // a worker without slots may only send
	}
	return d.Memory
}

// rebuild builds the job from the client's facts and compares the graphs. A worker whose graph
// differs must not run.
func rebuild(job Runnable, d *wire.Deployment, c *config) (*Builder, error) {
	theirs, err := plan.DecodeGraph(d.Spec.Graph)
	if err != nil {
		return nil, err
	}
	b, err := job.rebuild(d.Spec.Args, c, replaying(theirs.Facts))
	if err != nil {
		return nil, err
	}
	if b.graph.Fingerprint() != theirs.Fingerprint() {
		return nil, fmt.Errorf("the worker's program builds another graph from the same arguments than the client's (likely causes: a --worker-binary of other sources, or a job function that depends on more than its arguments, such as the environment or the machine):\n%s",
			plan.Diff(theirs, b.graph))
	}
	return b, nil
}

// resolveGraph builds the job on a machine that has its data, and returns the graph with its
// facts as JSON. It builds the job twice, as a client that has the data does.
func resolveGraph(job Runnable, d *wire.Deployment, c *config) ([]byte, error) {
	at := func(err error) error {
		return fmt.Errorf("on task manager %s, which was asked because the client cannot see the inputs: %w", d.TaskManager, untitled{err, job.Name()})
	}
	first, err := job.rebuild(d.Spec.Args, c, resolving())
	if err != nil {
		return nil, at(err)
	}
	if err := first.graph.Validate(); err != nil {
		return nil, validateError(job.Name(), err)
	}
	second, err := job.rebuild(d.Spec.Args, c, replaying(first.graph.Facts))
	if err != nil {
		return nil, at(fmt.Errorf("building the job a second time from the same arguments failed (%s): %w", whyBuildsDiffer, err))
	}
	if first.graph.Fingerprint() != second.graph.Fingerprint() {
		return nil, &DifferenceError{Job: job.Name(), Diff: plan.Diff(first.graph, second.graph)}
	}
	if len(second.outputs) > 0 && !d.Spec.Attached {
		return nil, errors.New(detachedOutputs) // the client could not build the job, so it could not check this
	}
	return second.graph.JSON()
}

// untitled is an error whose message leaves out the job's name at its beginning. It is for
// messages that are shown after the job's name.
type untitled struct {
	error
	job string
}

func (e untitled) Error() string { return strings.TrimPrefix(e.error.Error(), jobTitle(e.job)+": ") }
func (e untitled) Unwrap() error { return e.error }

// prepare opens the checkpoints, and begins the sinks. If one of them cannot begin, the cause is
// usually its path.
func (j *workerJob) prepare(ctx context.Context) workOutcome {
	inMemory, err := j.copies.inMemory(j.worker.prepare.Held)
	var origin *wire.Origin
	if err == nil {
		origin, err = j.openCheckpoints(ctx, inMemory)
	}
	if err == nil {
		origin, err = j.copies.chooseCopies(j.worker.prepare.Held, origin)
	}
	if err == nil {
		j.continues(origin)
		err = j.part.Prepare()
	}
	var store *storeError
	if errors.As(err, &store) && j.deployment.Resume {
		return workOutcome{event: workerlife.WorkFailed, err: err}
	}
	if err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: &LocalPathError{Err: err}}
	}
	return workOutcome{event: workerlife.WorkDone, answer: &wire.FromWorker{Prepared: &wire.Prepared{Origin: origin}}}
}

// run runs the worker's subtasks. When it returns, their rows and progress have been passed to
// the sender.
func (j *workerJob) run(ctx context.Context, s *wire.Start) workOutcome {
	if len(s.Addresses) != len(j.deployment.Slots) {
		err := fmt.Errorf("the worker was given %d addresses, and there are %d workers", len(s.Addresses), len(j.deployment.Slots))
		return workOutcome{event: workerlife.WorkFailed, err: clusterFault(err)}
	}
	if err := j.plane.Connect(s.Addresses); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: clusterFault(fmt.Errorf("connect to the other workers: %w", err))}
	}
	if err := j.joinCheckpoints(ctx, s.Origin); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: err}
	}
	if err := j.startCopies(ctx, s); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: err}
	}
	if err := j.continueRun(s.Held, s.Origin); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: err}
	}
	stop := j.progress.tell(ctx)
	outcome, err := j.part.Run(ctx)
	stop(err == nil)
	j.precopy.runEnded()
	if err != nil || j.deployment.Worker != 0 {
		j.closeCheckpoints(endLeft) // nothing is written after the end of all workers, as worker 0 removes the checkpoints
	}
	if err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: err}
	}
	return workOutcome{event: workerlife.WorkDone, answer: &wire.FromWorker{Finished: &wire.Finished{Outcome: outcome}}}
}

// commit makes the results visible.
func (j *workerJob) commit(c *wire.Commit) workOutcome {
	var part interface{ Commit(outcomes [][]byte) error } = j.part
	if j.resumed != nil {
		part = j.resumed
	}
	if err := part.Commit(c.Outcomes); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: err}
	}
	j.removeCheckpoints(context.Background())
	return workOutcome{event: workerlife.WorkDone, answer: &wire.FromWorker{Committed: &wire.Committed{}}}
}

// abort removes what the worker's sinks have written, if anything.
func (j *workerJob) abort() workOutcome {
	if j.part == nil {
		return workOutcome{event: workerlife.WorkDone}
	}
	if err := j.part.Abort(); err != nil {
		return workOutcome{event: workerlife.WorkFailed, err: &leftover{err}}
	}
	return workOutcome{event: workerlife.WorkDone}
}

// close releases the part and the data plane, whether they failed or not.
func (j *workerJob) close() {
	var errs []error
	if j.plane != nil && j.worker.failure != nil {
		j.plane.Abandon()
	}
	j.precopy.close()
	j.closeCheckpoints(endLeft)
	j.copies.close()
	if j.part != nil {
		j.part.Close()
	}
	if j.resumed != nil {
		j.resumed.Close()
	}
	if j.plane != nil {
		errs = append(errs, j.plane.Close())
	}
	if j.smallPages != nil {
		j.smallPages()
	}
	if err := errors.Join(errs...); err != nil {
		j.logger.Debug("the data plane did not close cleanly", "error", err)
	}
}
