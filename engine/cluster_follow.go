package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/wire"
)

// cancelWait is how long the client waits for a cancelled job to end.
const cancelWait = 30 * time.Second

// cancelRequestWait limits the time of the request that cancels a job.
const cancelRequestWait = 10 * time.Second

// followToEnd follows the job to its end. If ctx ends, it cancels the job and continues to
// follow it, so that the actual cause of the end is reported.
func (r *clusterRun) followToEnd(ctx context.Context) (*Result, error) {
	following, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	var canceller sync.WaitGroup
	canceller.Go(func() {
		select {
		case <-following.Done():
		case <-ctx.Done():
			leave(r.cancelled(following, context.Cause(ctx)))
		}
	})
	var refused error // the error with which an event was refused
	info, err := r.client.FollowToEnd(following, r.id, true, func(e *wire.Event) error {
		refused = r.event(e)
		return refused
	})
	leave(nil)
	canceller.Wait()
	switch {
	case refused != nil:
		return nil, r.abandon(ctx, refused)
	case err != nil:
		return nil, err
	case info.State == wire.JobFinished:
		return r.result(ctx, info)
	case info.State == wire.JobCancelled && info.Failure == nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, newJobError(info)
}

// event handles one event of the job.
func (r *clusterRun) event(e *wire.Event) error {
	switch {
	case e.State != nil:
		return r.state(e.State)
	case e.Progress != nil:
		r.watch.cluster(e.Progress)
		r.warnUncopied(e.Progress)
	case e.Collected != nil:
		if err := r.collect(e.Collected); err != nil {
			return fmt.Errorf("take collected rows: %w", err)
		}
	case e.Output != nil:
		if _, err := r.c.stdout.Write(e.Output.Text); err != nil {
			return fmt.Errorf("write what operators print: %w", err)
		}
	}
	return nil
}

// warnUncopied logs, once for each queue, that its state is not copied.
func (r *clusterRun) warnUncopied(p *wire.Progress) {
	for _, u := range p.Uncopied {
		if !slices.Contains(r.uncopied, u.Queue) {
			r.uncopied = append(r.uncopied, u.Queue)
			r.c.logger.Warn(u.String())
		}
	}
}

// state handles a new state of the job.
func (r *clusterRun) state(info *wire.JobInfo) error {
	if info.Attempt > r.attempt {
		if r.attempt > 0 && info.State != wire.JobCommitting {
			r.store.release() // drops the rows of a lost attempt; a commit that is resumed needs its rows
			r.watch.again()
		}
		r.attempt = info.Attempt
	}
	if r.plan == nil && len(info.Plan) > 0 {
		if err := r.planned(info.Plan, info.Graph); err != nil {
			return err
		}
	}
	if r.plan != nil && info.Attempt > 0 && info.Parallelism > 0 && info.Parallelism != r.plan.Parallelism {
		if err := r.planAnew(info.Parallelism); err != nil {
			return err
		}
	}
	r.watch.enter(info.State.String(), info.Detail)
	return nil
}

// planned handles the plan, which is known once the job is scheduled. graph is not empty if the
// cluster has resolved the facts.
func (r *clusterRun) planned(data, graph []byte) error {
	p, err := plan.DecodePlan(data)
	if err != nil {
		return fmt.Errorf("the plan that the job manager made cannot be read: %w", err)
	}
	inferred := r.graph == nil && len(graph) == 0
	switch {
	case inferred:
		err = r.infer(p)
	case r.graph == nil:
		err = r.resolved(graph)
	}
	if err != nil {
		return err
	}
	if want := r.graph.Fingerprint(); !inferred && p.Fingerprint != want {
		return fmt.Errorf("the job manager made a plan of another job (fingerprint %s instead of %s)", p.Fingerprint, want)
	}
	r.plan = p
	r.watch.made(p)
	return nil
}

// planAnew makes the plan for the parallelism of the current attempt.
func (r *clusterRun) planAnew(parallelism int) error {
	p, err := plan.Compile(r.graph, parallelism)
	if err != nil {
		return fmt.Errorf("make the plan for the attempt with %d subtasks: %w", parallelism, err)
	}
	r.plan = p
	r.watch.planned(p)
	return nil
}

// resolved handles the graph with the facts that the cluster has resolved, and builds
// the job from these facts.
func (r *clusterRun) resolved(data []byte) error {
	g, err := plan.DecodeGraph(data)
	if err != nil {
		return fmt.Errorf("the graph that the cluster resolved cannot be read: %w", err)
	}
	b, err := r.rebuild(g.Facts)
	if err != nil {
		return fmt.Errorf("build the job from what the cluster resolved: %w", err)
	}
	r.setBuilder(b)
	return tryOutputs(r.outputs)
}

// infer derives both the collected results and a graph without facts from the plan. It is for
// job managers that do not send the graph.
func (r *clusterRun) infer(p *plan.Plan) error {
	for i := range p.Nodes {
		for _, a := range p.Nodes[i].Attrs {
			if p.Nodes[i].Sink && strings.HasPrefix(a.Value, ClientPath) {
				return fmt.Errorf("%s: the output %s cannot be written here, as the job manager did not tell the facts that the job rests on: upgrade it", p.Nodes[i].Op, a.Value)
			}
		}
	}
	if err := r.store.collectsOf(p); err != nil {
		return err
	}
	r.limitResults()
	r.graph = &plan.Graph{Job: p.Job, Shards: p.Shards, Seed: p.Seed, Nodes: p.Nodes, Queues: p.Queues}
	return nil
}

// collectsOf adds a result to the store for each Collect of a plan.
func (s *resultStore) collectsOf(p *plan.Plan) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op != collectOp || !n.Sink || len(n.Inputs) != 1 {
			continue
		}
		from := n.Inputs[0].From
		if from < 0 || int(from) >= len(p.Nodes) {
			return fmt.Errorf("the plan's operator %d has an input that does not exist", n.ID)
		}
		var columns []batch.Column
		for _, c := range p.Nodes[from].Schema {
			columns = append(columns, batch.Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
		}
		schema, err := batch.Schema(columns)
		if err != nil {
			return fmt.Errorf("the columns of the result %q: %w", n.Name, err)
		}
		s.add(n.ID, n.Name, schema, p.Shards)
	}
	return nil
}

// collectOp is the kind of operator that Collect adds.
const collectOp = "Collect"

// collect handles rows of a Collect.
func (r *clusterRun) collect(rows *wire.Collected) error { return r.store.take(rows, r.c.allocator) }

// take decodes rows of a Collect and adds them to the store.
func (s *resultStore) take(rows *wire.Collected, mem memory.Allocator) error {
	c := s.at(plan.NodeID(rows.Node))
	if c == nil {
		return fmt.Errorf("operator %d collects rows under no name", rows.Node)
	}
	if rows.Shard < 0 || rows.Shard >= len(c.shards) {
		return fmt.Errorf("result %q: rows of shard %d, but there are %d shards", c.name, rows.Shard, len(c.shards))
	}
	in, err := batch.NewStreamReader(bytes.NewReader(rows.Rows), mem)
	if err != nil {
		return fmt.Errorf("result %q: %w", c.name, err)
	}
	defer in.Release()
	if !in.Schema().Equal(c.schema) {
		return fmt.Errorf("result %q: the columns that came are not those that were built: %v", c.name, in.Schema())
	}
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("result %q, shard %d: %w", c.name, rows.Shard, err)
		}
		err = c.put(rows.Shard, rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
}

// at returns the result of a node, or nil if the node collects no rows.
func (s *resultStore) at(node plan.NodeID) *collected {
	for _, c := range s.results {
		if c.node == node {
			return c
		}
	}
	return nil
}

// cancelled cancels the job because ctx has ended with cause, and waits until following ends. If
// that takes longer than cancelWait, it returns the error with which the client stops following.
func (r *clusterRun) cancelled(following context.Context, cause error) error {
	if hook := r.c.cluster.hooks.cancelling; hook != nil {
		hook(string(r.id))
	}
	reason := "by its client"
	if !errors.Is(cause, errInterrupted) && !errors.Is(cause, context.Canceled) {
		reason += ": " + cause.Error()
	}
	err := r.cancelJob(following, reason)
	if err != nil {
		return fmt.Errorf("%w; and the job %s could not be cancelled: %w", cause, r.id, err)
	}
	select {
	case <-following.Done():
		return nil
	case <-time.After(cancelWait):
		return fmt.Errorf("%w; the job %s was cancelled, and had not ended %v later", cause, r.id, cancelWait)
	}
}

// abandon cancels a job that this client cannot follow any more because of err. It returns err,
// with the failure to cancel if there is one.
func (r *clusterRun) abandon(ctx context.Context, err error) error {
	if failed := r.cancelJob(context.WithoutCancel(ctx), "its client cannot continue: "+err.Error()); failed != nil {
		return fmt.Errorf("%w\nthe job %s could not be cancelled: %w", err, r.id, failed)
	}
	return err
}

// cancelJob asks the job manager to cancel the job.
func (r *clusterRun) cancelJob(ctx context.Context, reason string) error {
	ctx, stop := context.WithTimeout(ctx, cancelRequestWait)
	defer stop()
	_, err := r.client.Cancel(ctx, &wire.CancelRequest{Job: r.id, Reason: reason})
	return r.client.Explain(err)
}

// logLevel returns the level of a logger as text.
func logLevel(l hclog.Logger) string {
	switch level := l.GetLevel(); level {
	case hclog.NoLevel:
		return hclog.Off.String()
	default:
		return level.String()
	}
}
