package engine

import (
	"context"
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

func (s *broughtBack) Abort() error {
	if s.away() {
		return nil
	}
	return s.sink.Abort()
}

// Commit is that of a sink that does not become visible with others.
func (s *broughtBack) Commit() error { return s.sink.Commit() }

// joint returns the sink as one whose output becomes visible with that of others, or nil
// where it is none or another process writes.
func (s *broughtBack) joint() JointSink {
	joint, ok := s.sink.(JointSink)
	if !ok || s.away() {
		return nil
	}
	return joint
}

// What follows makes it a JointSink, which the sink behind it is as a rule. It is never
// written in parts: its rows were sent before any worker had finished, and the client
// writes them.

func (s *broughtBack) Join() error              { return nil }
func (s *broughtBack) Leave() error             { return nil }
func (s *broughtBack) Written() ([]byte, error) { return nil, nil }

func (s *broughtBack) Aside() string {
	if joint := s.joint(); joint != nil {
		return joint.Aside()
	}
	return ""
}

func (s *broughtBack) Complete(c Completion) error {
	if joint := s.joint(); joint != nil {
		return joint.Complete(c)
	}
	return nil
}

func (s *broughtBack) Decide() error { return s.joint().Decide() }

// Place commits a sink that cannot be placed.
func (s *broughtBack) Place() error {
	if joint := s.joint(); joint != nil {
		return joint.Place()
	}
	if s.away() {
		return nil
	}
	return s.sink.Commit()
}

func (s *broughtBack) TakeBack() error {
	if joint := s.joint(); joint != nil {
		return joint.TakeBack()
	}
	return nil
}

func (s *broughtBack) Finish() {
	if joint := s.joint(); joint != nil {
		joint.Finish()
	}
}

func (s *broughtBack) Settle() error {
	if joint := s.joint(); joint != nil {
		return joint.Settle()
	}
	return nil
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

// writeOutputs writes the outputs that are this client's to write, by a job of its own:
// their rows, and the sinks, which make all of them visible or none.
func writeOutputs(ctx context.Context, outputs []*broughtBack, c *config) error {
	if len(outputs) == 0 {
		return nil
	}
	job := Anonymous(func(b *Builder) error {
		for _, out := range outputs {
			rows := b.Add(Spec{Op: "Brought back", Schema: out.held.schema, Source: func() Source { return heldRows{out.held} }})
			b.Add(Spec{Op: out.op, Inputs: []Port{{From: rows}}, Operator: out.operator, Sink: out.sink})
		}
		return nil
	})
	here := *c
	here.cluster, here.onProgress, here.parallelism = clusterConfig{}, nil, 1
	made, err := prepare(job, struct{}{}, &here)
	if err == nil {
		_, err = made.run(ctx, &here)
	}
	for _, out := range outputs {
		out.held.drop()
	}
	if err != nil {
		return fmt.Errorf("the job finished, but its outputs could not be written here: %w", err)
	}
	return nil
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
