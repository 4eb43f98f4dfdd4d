package comqueue

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// IterativeComQueue describes an iterative computation. Its methods return the queue itself;
// mistakes are reported when the job is built, with the caller's line.
type IterativeComQueue struct {
	b         *engine.Builder
	name      string
	inputs    []input
	opening   []opening
	stages    []Stage
	criterion func(ctx *ComContext) (bool, error)
	close     *closer
	max       int
	failed    bool
}

// input is a dataset of the queue, either partitioned or broadcast.
type input struct {
	data        *engine.Dataset
	partitioned *PartitionedData
	broadcast   *BroadcastData
}

func (i input) name() string {
	if i.partitioned != nil {
		return i.partitioned.Name()
	}
	return i.broadcast.Name()
}

// columns returns the columns declared for the key of the input.
func (i input) columns() *declaredColumns {
	if i.partitioned != nil {
		return i.partitioned.declared
	}
	return i.broadcast.declared
}

// New begins a queue. The name appears in plan, progress and errors.
func New(b *engine.Builder, name string) *IterativeComQueue {
	q := &IterativeComQueue{b: b, name: name}
	q.mustBuild()
	if name == "" {
		q.misuse("the queue has no name")
	}
	return q
}

// mustBuild reports a misuse if the queue's builder belongs to another build.
func (q *IterativeComQueue) mustBuild() { q.b.MustBuild(fmt.Sprintf("queue %q", q.name), "builder") }

// misuse adds an error to the builder. The queue then adds nothing to the graph.
func (q *IterativeComQueue) misuse(format string, a ...any) {
	q.mustBuild()
	q.failed = true
	q.b.Errorf("queue %q: %s", q.name, fmt.Sprintf(format, a...))
}

// InitWithPartitionedData makes the rows of data available under key. Each subtask gets the
// rows of the shards that it owns, joined into one frame per shard.
func (q *IterativeComQueue) InitWithPartitionedData(key PartitionedData, data *engine.Dataset) *IterativeComQueue {
	return q.addInput(input{data: data, partitioned: &key}, key.key.Err())
}

// InitWithBroadcastData makes all rows of data available under key on every subtask. Each
// process has one immutable copy.
func (q *IterativeComQueue) InitWithBroadcastData(key BroadcastData, data *engine.Dataset) *IterativeComQueue {
	return q.addInput(input{data: data, broadcast: &key}, key.key.Err())
}

func (q *IterativeComQueue) addInput(in input, err error) *IterativeComQueue {
	switch {
	case err != nil:
		q.misuse("%v", err)
	case in.data == nil:
		q.misuse("the dataset for %q is nil", in.name())
	case in.data.Builder() != q.b:
		q.misuse("the dataset for %q belongs to another job or to an earlier build of this one; a job function must not keep datasets between calls", in.name())
	case slices.ContainsFunc(q.inputs, func(i input) bool { return i.name() == in.name() }):
		q.misuse("the key %q is given two datasets", in.name())
	case in.data.Poisoned(): // the mistake is already recorded
		q.failed = true
	default:
		if err := in.columns().check(in.schema()); err != nil {
			q.misuse("the dataset for %q: %v", in.name(), err)
			return q
		}
		q.inputs = append(q.inputs, in)
	}
	return q
}

// Add appends a stage that was made by ForEachShard, by Repeat, or by a communicate function
// such as AllReduce.
func (q *IterativeComQueue) Add(stage Stage) *IterativeComQueue {
	if err := checkStage(stage); err != nil {
		q.misuse("%v", err)
		return q
	}
	q.stages = append(q.stages, stage)
	return q
}

// Do appends a compute function as a stage. All subtasks of a process call the same function
// concurrently; it must keep its state in the objects of the context.
func (q *IterativeComQueue) Do(f func(ctx *ComContext) error) *IterativeComQueue { return q.Add(Do(f)) }

// AddNew appends a compute stage of which every subtask has its own instance, made by new. If
// results depend on fields that the instance has set in an earlier superstep, the instance must
// be a Snapshotter. An instance that is no Snapshotter may be replaced by a new instance
// between supersteps, and must then compute its fields again. If such instances have fields, the
// state of the queue is not saved, as nobody knows whether results depend on them: if subtasks are
// lost, the queue begins at superstep 1 again, and the option engine.RequireCheckpoints refuses
// it. AddNew calls new once, to find out whether the instances are Snapshotters and have fields.
func (q *IterativeComQueue) AddNew(new func() Compute) *IterativeComQueue {
	if new == nil {
		q.misuse("AddNew: the factory is nil")
		return q
	}
	instance := new()
	_, snapshots := instance.(Snapshotter)
	q.stages = append(q.stages, computeStage{
		name: functionName(new), identity: new, factory: new, instance: fmt.Sprintf("%T", instance), site: q.b.Site(),
		snapshot: snapshots, unkept: !snapshots && hasFields(instance),
	})
	return q
}

// SetCompareCriterionOfNode0 sets the function that decides after each superstep,
// on subtask 0, whether the queue stops: true stops. The verdict is broadcast.
func (q *IterativeComQueue) SetCompareCriterionOfNode0(stop func(ctx *ComContext) (bool, error)) *IterativeComQueue {
	if stop == nil {
		q.misuse("the criterion is nil")
		return q
	}
	q.criterion = stop
	return q
}

// SetMaxIter sets the largest number of supersteps.
func (q *IterativeComQueue) SetMaxIter(n int) *IterativeComQueue {
	if n < 1 {
		q.misuse("the maximum of supersteps is %d; it must be at least 1", n)
		return q
	}
	q.max = n
	return q
}

// CloseOnNode0 sets the Closer, which makes the queue's rows once, on subtask 0. The Closer
// must make them from kept objects and from what Init makes, as a subtask that joined after the
// last superstep has run no superstep.
func (q *IterativeComQueue) CloseOnNode0(rows Closer) *IterativeComQueue {
	if rows == nil {
		q.misuse("CloseOnNode0: nil")
		return q
	}
	c, err := rows.closer()
	return q.setClose(c, err)
}

// CloseWith sets the ShardCloser, which makes the queue's rows per shard; they are emitted in
// shard order. See CloseOnNode0 for the objects from which the rows may be made.
func (q *IterativeComQueue) CloseWith(rows ShardCloser) *IterativeComQueue {
	if rows == nil {
		q.misuse("CloseWith: nil")
		return q
	}
	c, err := rows.shardCloser()
	c.perShard = true
	return q.setClose(c, err)
}

func (q *IterativeComQueue) setClose(c closer, err error) *IterativeComQueue {
	switch {
	case err != nil:
		q.misuse("%v", err)
	case q.close != nil:
		q.misuse("CloseOnNode0 or CloseWith is set twice")
	default:
		q.close = &c
	}
	return q
}

// Exec adds the queue to the job and returns the dataset of its rows. It does not
// change the queue.
func (q *IterativeComQueue) Exec() *engine.Dataset {
	q.mustBuild()
	if !q.failed && q.criterion == nil && q.max == 0 {
		q.misuse("neither SetCompareCriterionOfNode0 nor SetMaxIter is set, so the queue would never end")
	}
	if !q.failed && q.close == nil {
		q.misuse("neither CloseOnNode0 nor CloseWith is set, so the queue would have no result")
	}
	var l *layout
	if !q.failed {
		var err error
		if l, err = newLayout(slices.Clone(q.stages)); err != nil {
			q.misuse("%v", err)
		}
	}
	for _, in := range q.inputs {
		if err := in.columns().check(in.schema()); !q.failed && err != nil { // columns may have been added since the input was added
			q.misuse("the dataset for %q: %v", in.name(), err)
		}
	}
	if q.failed {
		return q.b.Poisoned("IterativeComQueue")
	}
	frozen := *q // later changes of the queue must not reach this run
	frozen.inputs, frozen.opening, frozen.stages = slices.Clone(q.inputs), slices.Clone(q.opening), slices.Clone(q.stages)
	spec := engine.QueueSpec{
		Name: q.name, MaxSupersteps: q.max, HasCriterion: q.criterion != nil,
		Opening: describeOpening(q.opening), CloseFunc: q.close.function, Schema: arrowrows.Schema(q.close.schema),
	}
	if q.criterion != nil {
		spec.CriterionFunc = q.criterion
	}
	for _, in := range q.inputs {
		port := engine.Port{From: in.data, Partitioner: engine.Forward}
		if in.broadcast != nil {
			port.Partitioner, port.Side = engine.Broadcast, true
		}
		spec.Inputs = append(spec.Inputs, port)
	}
	position := 0
	for _, s := range q.stages {
		spec.Stages = append(spec.Stages, s.describe(l, position)...)
		position = l.last(position, s) + 1
	}
	spec.Loop = func(nodes []engine.NodeID) engine.OpenLoops { return openGang(&frozen, l, nodes, spec.Stages) }
	return q.b.AddQueue(spec)
}

// schema returns the schema of the input's rows.
func (i input) schema() *arrow.Schema { return arrowrows.Arrow(i.data.Schema()) }
