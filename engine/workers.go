package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Workers runs the job with n workers within this process, as a cluster runs it in n processes;
// the results are the same, bit for bit. It is for tests of jobs, operators and queues. Each
// worker builds the job by itself, from encoded arguments and facts. This reveals jobs whose
// subtasks share objects of one build, which they cannot do in several processes.
//
// If the job has fewer slots than n, there is a worker for each slot. 0, the default, runs the
// job as a whole. An anonymous job can be run in this way too, but the workers then share what
// its closure captures.
func Workers(n int) Option {
	return func(c *config) {
		if c.workers = n; n != 0 {
			c.cluster.address = ""
		}
	}
}

// Retaining makes the workers of Workers keep the rows of queues if the run fails, and begin with what
// they have kept of an earlier run of the job, as the processes of a cluster do: worker i has kept[i].
// It is for tests. Its owner calls Close of each.
func Retaining(kept []*task.Retained) Option { return func(c *config) { c.retained = kept } }

// workersRun is one run of a job by several workers in this process.
type workersRun struct {
	c    *config
	job  Runnable
	args []byte
	// client is the builder of the client, which is the process that called Run. Its operators
	// do not run, but it receives the collected rows.
	client *Builder
	graph  []byte // the client's graph as JSON, as a client sends it to a cluster
	plan   *plan.Plan
	slots  []sharding.Range // slots of each worker

	fail   context.CancelCauseFunc // ends the run
	savers []*saver                // of each worker so far, if the run has checkpoints
}

// runAsWorkers runs a job with several workers in this process.
func runAsWorkers[A any](ctx context.Context, job *Job[A], args A, c *config) (*Result, error) {
	r, err := newWorkersRun(job, args, c)
	if err != nil {
		return nil, err
	}
	result, err := r.run(ctx)
	if err != nil {
		r.client.store.release()
		return nil, fmt.Errorf("%s: %w", job.title(), err)
	}
	return result, nil
}

// newWorkersRun builds the job as the client of a cluster would do.
func newWorkersRun[A any](job *Job[A], args A, c *config) (*workersRun, error) {
	client, err := buildTwice(job, args, c)
	if err != nil {
		return nil, err
	}
	r := &workersRun{c: c, job: job, client: client}
	if err := c.checkUnkept(client.graph); err != nil {
		return nil, err
	}
	if r.args, err = encodeArgs(args); err == nil {
		r.graph, err = client.graph.JSON()
	}
	if err == nil {
		r.plan, err = plan.Compile(client.graph, c.parallelism)
	}
	if c.observer != nil {
		client.outputs = nil
	}
	if err == nil {
		err = tryOutputs(client.outputs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", job.title(), err)
	}
	workers := min(c.workers, max(r.plan.Slots, 1))
	for w := range workers {
		r.slots = append(r.slots, sharding.Split(max(r.plan.Slots, 1), workers, w))
	}
	if client.store.limit == 0 {
		client.store.limit = task.DefaultBudget()
	}
	return r, nil
}

// run runs the workers to their end and writes the outputs of the client.
func (r *workersRun) run(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.fail = cancel
	smallPages := r.c.hugePages()
	defer smallPages()
	watch := startWatch(r.plan, r.c, cancel)
	progress := newWorkersProgress(len(r.plan.Vertices), len(r.slots), watch)
	report, err := task.RunParts(ctx, r.plan, r.client.graph, r.slots, func(worker int) (task.Bindings, task.Env, error) {
		return r.worker(ctx, worker, progress)
	})
	r.closeCheckpoints(err)
	err = tellOutputs(err)
	if err == nil {
		err = writeOutputs(ctx, r.client.outputs, r.c)
	}
	if undelivered := watch.stop(report, err); undelivered != nil && !errors.Is(err, undelivered) {
		err = errors.Join(err, undelivered)
	}
	if err != nil {
		return nil, err
	}
	return &Result{Report: report, Plan: r.plan, Graph: r.client.graph, store: r.client.store}, nil
}

// worker builds the job for one worker.
func (r *workersRun) worker(ctx context.Context, worker int, progress *workersProgress) (task.Bindings, task.Env, error) {
	b, err := rebuild(r.job, &wire.Deployment{Spec: wire.JobSpec{Args: r.args, Graph: r.graph}}, r.c)
	if err != nil {
		return task.Bindings{}, task.Env{}, err
	}
	b.store.stream = &resultSender{to: r.client.store, mem: r.c.allocator}
	env := task.Env{
		Allocator:    r.c.allocator,
		RowAllocator: r.c.rowAllocator,
		BatchRows:    r.c.batchRows,
		MemoryBudget: r.memory(worker),
		SpillDir:     r.c.spillDir,
		Disk:         r.c.disk,
		Logger:       r.c.logger,
		Collector:    b.store,
		CheckRows:    r.c.checkRows,
		Turns:        r.c.turns,
	}
	if worker < len(r.c.retained) {
		env.Retained = r.c.retained[worker]
	}
	if r.c.observer != nil {
		env.Observer = r.c.observer
		dropOutputs(b.graph, &b.bind)
	}
	if r.c.checkpoints.on() {
		s, err := r.openCheckpoints(ctx, worker)
		if err != nil {
			return task.Bindings{}, task.Env{}, err
		}
		env.Checkpoints, env.Unsaved = s, r.c.checkpoints.unsaved
	}
	if progress != nil {
		env.Progress = func(e task.Progress) { progress.event(worker, e) }
	}
	return b.bind, env, nil
}

// openCheckpoints opens the checkpoints on a worker. Worker 0 comes first.
func (r *workersRun) openCheckpoints(ctx context.Context, worker int) (s *saver, err error) {
	run := &checkpointed{graph: r.client.graph, plan: r.plan, args: r.args, part: task.Part{Worker: worker, Slots: r.slots}}
	if worker == 0 {
		s, err = r.c.openCheckpoints(ctx, run, r.fail)
	} else {
		s, err = r.c.joinCheckpoints(ctx, run, r.savers[0].origin, r.fail)
	}
	if err == nil {
		r.savers = append(r.savers, s)
	}
	return s, err
}

// closeCheckpoints closes the checkpoints of all workers. err is the error of the run.
func (r *workersRun) closeCheckpoints(err error) {
	for worker, s := range slices.Backward(r.savers) { // worker 0 removes what all have written
		e := endLeft
		if err == nil && worker == 0 {
			e = endSucceeded
		}
		s.close(e)
	}
}

// memory returns a worker's share of the run's memory budget, in proportion to its slots.
func (r *workersRun) memory(worker int) int64 {
	budget := r.c.memory
	if budget == 0 {
		budget = task.DefaultBudget()
	}
	return max(budget/int64(max(r.plan.Slots, 1)), 1) * int64(r.slots[worker].Len())
}

// resultSender passes the rows that a worker collects to the store of the client. It encodes and
// decodes them, as on a cluster.
type resultSender struct {
	to  *resultStore
	mem memory.Allocator
}

func (h *resultSender) send(_ context.Context, node plan.NodeID, shard int, rows arrow.Record) error {
	if rows.NumRows() == 0 {
		return nil
	}
	data, err := encodeRows(rows, h.mem)
	if err != nil {
		return err
	}
	return h.to.take(&wire.Collected{Node: int(node), Shard: shard, Rows: data}, h.mem)
}

// workersProgress adds up the progress of the workers of a run for a watch.
type workersProgress struct {
	watch *watch

	mu    sync.Mutex
	parts [][]vertexShare // by vertex and worker
}

// vertexShare is the progress of a vertex on one worker.
type vertexShare struct {
	rows   int64
	shards int
}

// newWorkersProgress returns a workersProgress for watch w, or nil if w is nil.
func newWorkersProgress(vertices, workers int, w *watch) *workersProgress {
	if w == nil {
		return nil
	}
	s := &workersProgress{watch: w, parts: make([][]vertexShare, vertices)}
	for i := range s.parts {
		s.parts[i] = make([]vertexShare, workers)
	}
	return s
}

// event handles one event of a worker. Events may come in any order. Only the worker that has
// subtask 0 reports the queues, as on a cluster.
func (s *workersProgress) event(worker int, e task.Progress) {
	if e.Queue != "" {
		if worker == 0 {
			s.watch.event(e)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := s.parts[e.Vertex]
	mine := &parts[worker]
	mine.rows, mine.shards = max(mine.rows, e.Rows), max(mine.shards, e.ShardsDone)
	e.Rows, e.ShardsDone = 0, 0
	for _, p := range parts {
		e.Rows += p.rows
		e.ShardsDone += p.shards
	}
	s.watch.event(e)
}
