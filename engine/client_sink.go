package engine

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// ClientPath begins the path of an output that is to be written on the machine on which
// the program was started, whichever machines run the job: "client:model.csv".
const ClientPath = "client:"

// detachedOutputs is the error of a detached job with an output at ClientPath.
const detachedOutputs = "--detach leaves before the job has ended, and outputs at \"" + ClientPath + "\" are written by the client when it has: give them paths of the workers, or stay"

// addClientSink replaces the sink of a specification by a sink whose output is written by the
// program that called Run. If the job runs in that process, nothing changes. On a cluster the
// workers send the rows to the program, as they do for Collect. When the job has finished,
// writeOutputs writes them in the program, in a second run that has only the outputs.
func (b *Builder) addClientSink(node plan.NodeID, spec *Spec) {
	out := &clientSink{
		held: b.store.add(node, "", spec.Inputs[0].From.schema, b.config.shards),
		op:   spec.Op, operator: spec.Operator, sink: spec.Sink,
	}
	b.outputs = append(b.outputs, out)
	b.bind.Operators[node] = out.newOperator
	b.bind.Sinks[node] = out
	if joint, ok := spec.Sink.(JointSink); ok {
		b.bind.Sinks[node] = &jointClientSink{out, joint}
	}
}

// clientSink is one output that is written at the client.
type clientSink struct {
	held     *collected // the rows, on the client of a cluster
	op       string
	operator func() Operator
	sink     Sink
}

// remote reports whether another process writes the output.
func (s *clientSink) remote() bool { return s.held.store.stream != nil }

// newOperator returns the operator of one subtask.
func (s *clientSink) newOperator() Operator {
	if s.remote() {
		return &collector{store: s.held.store}
	}
	return s.operator()
}

// Begin, Commit and Abort call the sink if this process writes the output, and otherwise do
// nothing.

func (s *clientSink) Begin() error {
	if s.remote() {
		return nil
	}
	return s.sink.Begin()
}

func (s *clientSink) Commit() error {
	if s.remote() {
		return nil
	}
	return s.sink.Commit()
}

// Resume does nothing: only the client writes the output, and it does so once it has the rows.
func (s *clientSink) Resume() error { return nil }

// Overlaps reports whether the next attempt of the job may begin while this one still runs. It may
// if the client writes the output, as the job manager passes on the rows of one attempt only.
func (s *clientSink) Overlaps() bool { return s.remote() }

// Held reports whether another process writes the output. If it does, the commit in this
// process does not make the output visible.
func (s *clientSink) Held() bool { return s.remote() }

func (s *clientSink) Abort() error {
	if s.remote() {
		return nil
	}
	return s.sink.Abort()
}

// jointClientSink is clientSink for a JointSink, whose output becomes visible together with
// other outputs. Workers do not write parts of the output, as the client has all rows and writes
// them.
type jointClientSink struct {
	*clientSink
	joint JointSink
}

func (s *jointClientSink) Join() error              { return nil }
func (s *jointClientSink) Leave() error             { return nil }
func (s *jointClientSink) Written() ([]byte, error) { return nil, nil }

func (s *jointClientSink) Aside() string {
	if s.remote() {
		return ""
	}
	return s.joint.Aside()
}

func (s *jointClientSink) Complete(c Completion) error {
	if s.remote() {
		return nil
	}
	return s.joint.Complete(c)
}

func (s *jointClientSink) Decide() error { return s.joint.Decide() }

func (s *jointClientSink) Place() error {
	if s.remote() {
		return nil
	}
	return s.joint.Place()
}

func (s *jointClientSink) TakeBack() error {
	if s.remote() {
		return nil
	}
	return s.joint.TakeBack()
}

func (s *jointClientSink) Finish() {
	if !s.remote() {
		s.joint.Finish()
	}
}

func (s *jointClientSink) Settle() error {
	if s.remote() {
		return nil
	}
	return s.joint.Settle()
}

// tryOutputs begins and aborts the outputs of this client, so that an output that exists is
// reported before the job runs.
func tryOutputs(outputs []*clientSink) error {
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

// writeOutputs writes the outputs of this client. It runs one job with a source of the held rows
// and a sink for each output, so that the outputs become visible together.
func writeOutputs(ctx context.Context, outputs []*clientSink, c *config) error {
	if len(outputs) == 0 {
		return nil
	}
	job := Anonymous(func(b *Builder) error {
		for _, out := range outputs {
			rows := b.Add(Spec{Op: "Collected rows", Schema: arrowrows.Schema(out.held.schema), Source: func() Source { return heldRows{out.held} }})
			b.Add(Spec{Op: out.op, Inputs: []Port{{From: rows}}, Operator: out.operator, Sink: out.sink})
		}
		return nil
	})
	here := *c
	here.cluster, here.onProgress, here.parallelism = clusterConfig{}, nil, 1
	here.checkpoints = checkpointConfig{} // those of the job that has finished
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

// heldRows is a source of the rows that workers sent for an output of the client.
type heldRows struct{ held *collected }

func (heldRows) Open(*Context) error { return nil }
func (heldRows) Close() error        { return nil }

func (h heldRows) ReadShard(_ *Context, shard int, out task.Output) error {
	for _, rows := range h.held.shards[shard] {
		if err := out.Emit(shard, arrowrows.Batch(rows)); err != nil {
			return err
		}
	}
	return nil
}

// drop releases the rows of one result.
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
