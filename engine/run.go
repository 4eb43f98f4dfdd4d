package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// Run builds the job's graph, compiles it and runs it to its end, in this process or on a
// Cluster. If ctx is cancelled, the run ends: nothing continues to run, and sinks remove what
// they have written. The caller must release the result.
//
// Mistakes in the graph are returned as a *BuildError, before anything runs. The failure of a
// job on a cluster is returned as a *JobError.
func Run[A any](ctx context.Context, job *Job[A], args A, opts ...Option) (*Result, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if c.cluster.address != "" {
		return runOnCluster(ctx, job, args, c)
	}
	if c.workers > 0 {
		return runAsWorkers(ctx, job, args, c)
	}
	made, err := prepare(job, args, c)
	if err != nil {
		return nil, err
	}
	result, err := made.run(ctx, c)
	return result, tellOutputs(err)
}

// tellOutputs adds to the error of a failed commit a text that says which outputs are visible.
func tellOutputs(err error) error {
	var failed *task.CommitError
	if errors.As(err, &failed) {
		return fmt.Errorf("%w; %s", err, failed.Outputs())
	}
	return err
}

// Compile builds the job's graph and compiles it, but does not run it. It resolves the
// facts on which the graph depends, such as lists of files.
func Compile[A any](job *Job[A], args A, opts ...Option) (*plan.Plan, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	made, err := prepare(job, args, c)
	if err != nil {
		return nil, err
	}
	return made.plan, nil
}

// BuildGraph builds the job's graph, but does not compile it.
func BuildGraph[A any](job *Job[A], args A, opts ...Option) (*plan.Graph, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	b, err := buildTwice(job, args, c)
	if err != nil {
		return nil, err
	}
	return b.graph, nil
}

// prepared is a job ready to run.
type prepared struct {
	plan  *plan.Plan
	graph *plan.Graph
	args  any // arguments of the job
	bind  task.Bindings
	store *resultStore

	advise func(e *RowError) string
}

// prepare builds and compiles a job.
func prepare[A any](job *Job[A], args A, c *config) (*prepared, error) {
	b, err := buildTwice(job, args, c)
	if err != nil {
		return nil, err
	}
	parallelism := c.parallelism
	if parallelism == 0 { // the options are for a cluster, whose slots are not known here
		parallelism = c.localParallelism()
	}
	p, err := plan.Compile(b.graph, parallelism)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", job.title(), err)
	}
	return &prepared{plan: p, graph: b.graph, args: args, bind: b.bind, store: b.store, advise: b.advise}, nil
}

// buildTwice builds the graph and resolves its facts, and then builds it again from these facts,
// as every other process of a run will do. If the graphs differ, it fails, as the processes would
// not run the same job. It returns the second build, so that the run uses the replayed facts.
func buildTwice[A any](job *Job[A], args A, c *config) (*Builder, error) {
	first, err := build(job, args, c, resolving())
	if err != nil {
		return nil, err
	}
	if err := first.graph.Validate(); err != nil {
		return nil, validateError(job.name, err)
	}
	second, err := build(job, args, c, replaying(first.graph.Facts))
	if err != nil {
		return nil, fmt.Errorf("building the job a second time from the same arguments, as every process of a run does, failed, though the first time went well (%s): %w", whyBuildsDiffer, err)
	}
	if first.graph.Fingerprint() != second.graph.Fingerprint() {
		return nil, &DifferenceError{Job: job.name, Diff: plan.Diff(first.graph, second.graph)}
	}
	second.warnUnread()
	second.warnUnkept()
	return second, nil
}

// warnUnread logs a warning for each dataset that nothing reads. The usual cause is a forgotten
// sink, or that the wrong dataset was used. The operator of such a dataset does not run, unless
// the job has neither a sink nor a queue. A queue whose rows nothing reads is logged too,
// although queues always run, as their functions may report values.
func (b *Builder) warnUnread() {
	nodes := b.graph.Nodes
	needed := plan.Needed(nodes)
	read, used := make([]bool, len(nodes)), make([]bool, len(nodes))
	for i := range nodes {
		for _, in := range nodes[i].Inputs {
			read[in.From] = true
			used[in.From] = used[in.From] || needed[i]
		}
	}
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.Site == "" || n.Sink:
		case n.Stage == plan.QueueClose && !used[i]:
			b.config.logger.Warn(fmt.Sprintf("%s: nobody reads the rows of queue %q, for example a trained model. The queue still runs, as its functions may report values: write or collect the rows, or leave the queue out", n.Site, n.Queue))
		case n.Queue != "" || read[i]:
		default:
			so := ""
			if !needed[i] {
				so = ", which does not run"
			}
			b.config.logger.Warn(fmt.Sprintf("%s: nobody reads the rows of %s%s: write or collect them, or leave the operator out", n.Site, n.Title(), so))
		}
	}
}

// build calls the job's function once and returns its builder, or an error if there are mistakes.
func build[A any](job *Job[A], args A, c *config, f facts) (*Builder, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	b := newBuilder(job.name, c, f)
	defer func() { b.sealed = true }()
	switch err := job.run(b, args).(type) {
	case nil:
	case Misuse:
		b.misuses = append(b.misuses, err)
	default:
		b.misuses = append(b.misuses, Misuse{Err: err})
	}
	if len(b.misuses) == 0 && b.refused != "" {
		err := fmt.Errorf("%s returned Builder.Poisoned without an error: it must call Builder.Errorf first", b.refused)
		b.misuses = append(b.misuses, Misuse{Err: err})
	}
	if len(b.misuses) > 0 {
		return nil, &BuildError{Job: job.name, Misuses: b.misuses}
	}
	if len(b.graph.Nodes) == 0 {
		return nil, fmt.Errorf("%s: the job adds no operators, so there is nothing to run", job.title())
	}
	return b, nil
}

// validateError turns an error of plan.Graph.Validate into a BuildError, which is also the
// error for mistakes in single operators.
func validateError(job string, err error) error {
	found := plan.Misuses(err)
	if len(found) == 0 {
		return fmt.Errorf("%s: %w", jobTitle(job), err)
	}
	e := &BuildError{Job: job}
	for _, m := range found {
		said := *m
		said.Site = ""
		e.Misuses = append(e.Misuses, Misuse{Site: m.Site, Err: &said})
	}
	return e
}

const whyBuildsDiffer = "a job function must depend on its arguments alone: likely causes are the clock, random numbers, the order of a map, the environment, and variables that change between calls"

// DifferenceError says that two builds of a job from the same arguments gave
// different graphs.
type DifferenceError struct {
	Job  string
	Diff string // the difference as text of several lines; see plan.Diff
}

// Error returns the difference and the likely causes.
func (e *DifferenceError) Error() string {
	return fmt.Sprintf("%s builds differently each time (%s):\n%s", jobTitle(e.Job), whyBuildsDiffer, e.Diff)
}

// checkpointed describes the run for its checkpoints. The whole plan is in this process.
func (r *prepared) checkpointed() (*checkpointed, error) {
	args, err := encodeArgs(r.args)
	return &checkpointed{graph: r.graph, plan: r.plan, args: args, part: task.Whole(r.plan)}, err
}

// openCheckpoints opens the checkpoints of the run, and returns nil if it has none. Only a run with
// checkpoints needs arguments that can be encoded.
func (r *prepared) openCheckpoints(ctx context.Context, c *config, fail context.CancelCauseFunc) (*saver, error) {
	if !c.checkpoints.on() {
		return nil, nil
	}
	described, err := r.checkpointed()
	if err != nil {
		return nil, err
	}
	return c.openCheckpoints(ctx, described, fail)
}

// run runs the plan in this process.
func (r *prepared) run(ctx context.Context, c *config) (*Result, error) {
	if err := c.checkUnkept(r.graph); err != nil {
		r.store.release()
		return nil, err
	}
	smallPages := c.hugePages()
	defer smallPages()
	r.store.slots = int64(r.plan.Slots)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	checkpoints, err := r.openCheckpoints(ctx, c, cancel)
	if err != nil {
		r.store.release()
		return nil, fmt.Errorf("%s: %w", jobTitle(r.graph.Job), err)
	}
	watch := startWatch(r.plan, c, cancel)
	env := newEnv(c, r, watch)
	if checkpoints != nil {
		env.Checkpoints, env.Unsaved = checkpoints, c.checkpoints.unsaved
	}
	report, err := task.Run(ctx, r.plan, r.graph, r.bind, env)
	if checkpoints != nil {
		e := endFailed
		if err == nil {
			e = endSucceeded
		}
		checkpoints.close(e)
	}
	if undelivered := watch.stop(report, err); undelivered != nil && !errors.Is(err, undelivered) {
		err = errors.Join(err, undelivered) // OnProgress failed, which may have ended the run, and err does not say so
	}
	if err != nil {
		r.store.release()
		return nil, fmt.Errorf("%s: %w", jobTitle(r.graph.Job), err)
	}
	return &Result{Report: report, Plan: r.plan, Graph: r.graph, store: r.store}, nil
}
