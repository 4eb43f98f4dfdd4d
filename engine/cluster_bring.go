package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// ClientPath begins the path of an output that is to be written where the program was
// started, whichever machines run the job: "client:model.csv".
const ClientPath = "client:"

// detachedOutputs is what is wrong with such an output of a job that nobody waits for.
const detachedOutputs = "--detach leaves before the job has ended, and outputs at \"" + ClientPath + "\" are written by the client when it has: give them paths of the workers, or stay"

// bringBack makes the sink of a specification one whose output is written by the
// program that called Run. In one process nothing changes; on a cluster the workers
// send the rows there, as those of a Collect, and a second run there, of the sink
// alone, writes them when the job has finished.
func (b *Builder) bringBack(node plan.NodeID, spec *Spec) {
	back := &broughtBack{
		held: b.store.add(node, "", spec.Inputs[0].From.schema, b.config.shards),
		op:   spec.Op, operator: spec.Operator, sink: spec.Sink,
	}
	b.outputs = append(b.outputs, back)
	b.bind.Operators[node] = back.newOperator
	b.bind.Sinks[node] = back
}

// broughtBack is one output that is written at the client.
type broughtBack struct {
	held     *collected // the rows, at the client of a cluster
	op       string
	operator func() Operator
	sink     Sink
}

// away reports whether this process is not the one that writes.
func (s *broughtBack) away() bool { return s.held.store.stream != nil }

// newOperator returns what one subtask runs.
func (s *broughtBack) newOperator() Operator {
	if s.away() {
		return &collector{store: s.held.store}
	}
	return s.operator()
}

// Begin, Commit and Abort are the sink's own where this process writes.
func (s *broughtBack) Begin() error {
	if s.away() {
		return nil
	}
	return s.sink.Begin()
}

func (s *broughtBack) Commit() error {
	if s.away() {
		return nil
	}
	return s.sink.Commit()
}

// Resume has nothing to do: the rows were sent before any worker had finished, and
// the client writes them.
func (s *broughtBack) Resume([][]byte) error { return nil }
func (s *broughtBack) Settle() error         { return nil }

func (s *broughtBack) Abort() error {
	if s.away() {
		return nil
	}
	return s.sink.Abort()
}

// tryOutputs finds out whether the outputs that this client is to write could be
// begun, so that one that exists is known before the job runs.
func tryOutputs(outputs []*broughtBack) error {
	for _, out := range outputs {
		err := out.sink.Begin()
		if err == nil {
			err = out.sink.Abort()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", out.op, err)
		}
	}
	return nil
}

// writeOutputs writes the outputs that are this client's to write, each by a job of
// its own: their rows, and the sink. All of them are written; what fails is told.
func writeOutputs(ctx context.Context, outputs []*broughtBack, c *config) error {
	var failed error
	for _, out := range outputs {
		job := Anonymous(func(b *Builder) error {
			rows := b.Add(Spec{Op: "Brought back", Schema: out.held.schema, Source: func() Source { return heldRows{out.held} }})
			b.Add(Spec{Op: out.op, Inputs: []Port{{From: rows}}, Operator: out.operator, Sink: out.sink})
			return nil
		})
		here := *c
		here.cluster, here.onProgress, here.parallelism = clusterConfig{}, nil, 1
		made, err := prepare(job, struct{}{}, &here)
		if err == nil {
			_, err = made.run(ctx, &here)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("the job finished, but its output could not be written here: %w", err))
		}
		out.held.drop()
	}
	return failed
}

// heldRows is a source of rows that were brought back.
type heldRows struct{ held *collected }

func (heldRows) Open(*Context) error { return nil }
func (heldRows) Close() error        { return nil }

func (h heldRows) ReadShard(_ *Context, shard int, out task.Output) error {
	for _, rows := range h.held.shards[shard] {
		if err := out.Emit(shard, rows); err != nil {
			return err
		}
	}
	return nil
}

// drop gives up the rows of one result.
func (c *collected) drop() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for shard, recs := range c.shards {
		for _, rec := range recs {
			rec.Release()
		}
		c.shards[shard] = nil
	}
}
