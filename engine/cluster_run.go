package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// clusterRun is one run of a job on a cluster, as its client sees it.
type clusterRun struct {
	c    *config
	name string // name of the job
	args []byte
	// graph is nil if the client cannot read the files on which its facts depend. The cluster
	// then resolves the facts, and the plan says which results are collected.
	graph   *plan.Graph
	store   *resultStore
	outputs []*clientSink // outputs that this process writes
	// rebuild builds the job from facts that the cluster has resolved.
	rebuild func(known []plan.Fact) (*Builder, error)
	watch   *watch
	client  *client.Client
	id      wire.JobID
	// artifact is the SHA-256 of the executable that all workers run.
	artifact string
	attempt  int
	plan     *plan.Plan // nil until the cluster has sent it
	uncopied []string   // queues of which was logged that their states are not copied
}

// runOnCluster runs a job on the cluster that the options name.
func runOnCluster[A any](ctx context.Context, job *Job[A], args A, c *config) (*Result, error) {
	r, err := newClusterRun(job, args, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.watch = newWatch(job.name, c, cancel)
	result, err := r.run(ctx)
	if err != nil && r.id == "" && ctx.Err() != nil {
		err = context.Cause(ctx) // the error of a pending request may hide the cause
	}
	var report *task.Report
	if err == nil {
		report = result.Report
	}
	if undelivered := r.watch.stop(report, err); undelivered != nil && !errors.Is(err, undelivered) {
		err = errors.Join(err, undelivered)
	}
	if err != nil {
		r.store.release()
		var ended *JobError
		if errors.As(err, &ended) {
			return nil, err // err already names the job
		}
		return nil, fmt.Errorf("%s: %w", jobTitle(job.name), err)
	}
	return result, nil
}

// newClusterRun builds the job, as every process of the run will do.
func newClusterRun[A any](job *Job[A], args A, c *config) (*clusterRun, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	if job.name == "" {
		return nil, errors.New("an anonymous job runs in its own process only, as no other could tell which function it is: give it a name with engine.Define to run it on a cluster")
	}
	if err := checkOffered(job.name); err != nil {
		return nil, err
	}
	r := &clusterRun{c: c, name: job.name, store: newResultStore(c.memory)}
	r.rebuild = func(known []plan.Fact) (*Builder, error) { return build(job, args, c, replaying(known)) }
	var err error
	if r.args, err = encodeArgs(args); err != nil {
		return nil, fmt.Errorf("%s: %w", job.title(), err)
	}
	b, err := buildTwice(job, args, c)
	switch {
	case err == nil:
		r.setBuilder(b)
		if len(r.outputs) > 0 && c.cluster.detach {
			return nil, &optionError{detachedOutputs}
		}
		if err := tryOutputs(r.outputs); err != nil {
			return nil, fmt.Errorf("%s: %w", job.title(), err)
		}
	case !onlyMissingFiles(err):
		return nil, err
	default:
		c.logger.Info("the job's inputs are not here, the cluster looks for them", "job", job.name, "error", err)
		c.cluster.hooks.tell("inputs that are not here are looked for on the cluster: " + firstMisuse(err))
	}
	return r, nil
}

// setBuilder uses the graph, the results and the outputs of builder b for the run.
func (r *clusterRun) setBuilder(b *Builder) {
	r.graph, r.store, r.outputs = b.graph, b.store, b.outputs
	r.limitResults()
}

// limitResults sets the memory limit of the results if the options have not set it. In a local run the
// operators of Collect set it when they open, but they do not open in this process.
func (r *clusterRun) limitResults() {
	if r.store.limit == 0 {
		r.store.limit = task.DefaultBudget()
	}
}

// onlyMissingFiles reports whether all mistakes of a job are missing files. The files may exist on the
// cluster's machines.
func onlyMissingFiles(err error) bool {
	var built *BuildError
	if !errors.As(err, &built) || len(built.Misuses) == 0 {
		return false
	}
	for _, m := range built.Misuses {
		if !errors.Is(m.Err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// firstMisuse returns the message of the first misuse in err, or of err itself if it has none.
func firstMisuse(err error) string {
	var built *BuildError
	if errors.As(err, &built) && len(built.Misuses) > 0 {
		return built.Misuses[0].Error()
	}
	return err.Error()
}

// run connects to the job manager, submits the job and, unless it is detached, follows it.
func (r *clusterRun) run(ctx context.Context) (result *Result, err error) {
	hooks := &r.c.cluster.hooks
	if r.client, err = client.Dial(ctx, r.c.cluster.options(r.c)); err != nil {
		return nil, err
	}
	defer func() {
		if closed := r.client.Close(); closed != nil && err == nil {
			err = fmt.Errorf("close the connection to the job manager: %w", closed)
		}
	}()
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	exe, err := r.executable(ctx)
	if err != nil {
		return nil, err
	}
	defer exe.remove()
	hooks.begin()
	spec.Platform, spec.Build = exe.platform, exe.build
	if spec.Artifact, err = r.upload(ctx, exe); err != nil {
		return nil, err
	}
	r.artifact = spec.Artifact
	if err := r.submit(ctx, spec); err != nil {
		return nil, err
	}
	if r.c.cluster.detach {
		r.watch.enter(detachedState, "")
		r.store.release()
		return &Result{Report: &task.Report{}, Graph: r.graph, JobID: string(r.id), Executable: r.artifact, store: newResultStore(0), detached: true}, nil
	}
	return r.followToEnd(ctx)
}

// spec returns the job to submit, without the executable.
func (r *clusterRun) spec() (*wire.JobSpec, error) {
	c := r.c
	parallelism, err := r.parallelism()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory, which relative paths start from: %w", err)
	}
	spec := &wire.JobSpec{
		Name: r.name, Args: r.args, Dir: dir,
		Parallelism: parallelism, MinParallelism: c.minParallelism, Shards: c.shards, Seed: c.seed,
		Attached: !c.cluster.detach, Priority: c.cluster.priority, WaitTimeout: c.cluster.waitTimeout, Restart: c.cluster.restart, Version: wire.Version,
		Run: wire.RunOptions{
			BatchRows: c.batchRows, IfExists: c.ifExists.String(), CheckBroadcasts: c.checkBroadcasts, CheckState: c.checkState,
			LogLevel: logLevel(c.logger), Copies: c.cluster.wireCopies(), RequireCheckpoints: c.checkpoints.require,
		},
	}
	if spec.Run.Checkpoints, err = c.checkpoints.wire(); err != nil {
		return nil, err
	}
	if c.memory > 0 {
		spec.Run.Memory = max(c.memory/int64(parallelism), 1)
	}
	if r.graph != nil {
		if n := plan.OneParallelism(r.graph.Nodes); n != nil && spec.Allowed().Elastic() {
			return nil, &optionError{fmt.Sprintf("--parallelism %s: %s binds the job to one parallelism: give one number", spec.Allowed(), n.Title())}
		}
		if err := c.checkUnkept(r.graph); err != nil {
			return nil, err
		}
		if _, err := plan.Compile(r.graph, parallelism); err != nil {
			return nil, err // the job manager would refuse the job too, but only after an upload
		}
		if spec.Graph, err = r.graph.JSON(); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// parallelism returns the parallelism that the options give or, without one, the number of the
// cluster's slots, but at most the number of shards.
func (r *clusterRun) parallelism() (int, error) {
	if r.c.parallelism > 0 {
		return r.c.parallelism, nil
	}
	if slots := r.client.Cluster().Slots; slots > 0 {
		return min(slots, r.c.shards), nil
	}
	return 0, fmt.Errorf("the cluster at %s has no slots yet, and without --parallelism a job gets as many subtasks as there are: start a task manager (`superstep taskmanager`), or give --parallelism to wait for one", r.client.Address())
}

// upload sends the executable to the job manager, and returns the SHA-256 of its content.
func (r *clusterRun) upload(ctx context.Context, e *executable) (string, error) {
	return r.client.Upload(ctx, e.path, e.name, func(sent, total int64) {
		r.watch.enter(uploadingState, fmt.Sprintf("%s of %s", humanize.Bytes(sent), humanize.Bytes(total)))
	})
}

// submitWait limits the time that the job manager may take to accept a job.
const submitWait = 30 * time.Second

// submit submits the job. The request is not ended when ctx ends: without its reply the name of
// the job is unknown, and the job could not be cancelled.
func (r *clusterRun) submit(ctx context.Context, spec *wire.JobSpec) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitWait)
	defer cancel()
	reply, err := r.client.Submit(bounded, &wire.SubmitRequest{Spec: *spec})
	if err != nil {
		return r.client.Explain(err)
	}
	r.id = reply.Job
	r.watch.submitted(string(r.id))
	return nil
}

// result writes the outputs of this process, and returns the result of a finished job.
func (r *clusterRun) result(ctx context.Context, info *wire.JobInfo) (*Result, error) {
	if r.plan == nil {
		return nil, fmt.Errorf("the job %s finished, but the job manager did not tell its plan", r.id)
	}
	report, err := task.MergeOutcomes(r.plan, info.Outcomes)
	if err != nil {
		return nil, fmt.Errorf("the job %s finished, but what its workers report cannot be read: %w", r.id, err)
	}
	if err := writeOutputs(ctx, r.outputs, r.c); err != nil {
		return nil, err
	}
	return &Result{Report: report, Plan: r.plan, Graph: r.graph, JobID: string(r.id), Executable: r.artifact, store: r.store}, nil
}

// begin calls the hook began.
func (h *clusterHooks) begin() {
	if h.began != nil {
		h.began()
	}
}

// tell calls the hook say with a line.
func (h *clusterHooks) tell(line string) {
	if h.say != nil {
		h.say(line)
	}
}
