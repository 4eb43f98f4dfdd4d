package engine

import (
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// The types of rows, for operators that work on columns.
type (
	// Schema is the columns of rows; see columnar.Schema.
	Schema = columnar.Schema
	// Column is a column of rows: its name, its type as text, whether values may be missing.
	Column = columnar.Column
	// Batch is some rows of one schema, as columns; see columnar.Batch.
	Batch = columnar.Batch
)

// The types of an operator. They are here so that operators need not import the packages that
// run them.
type (
	// Source produces the rows of shards; see task.Source.
	Source = task.Source
	// Operator transforms rows; see task.Operator.
	Operator = task.Operator
	// BaseOperator supplies, embedded, the methods that an operator does not need; see
	// task.BaseOperator.
	BaseOperator = task.BaseOperator
	// Output takes the rows that a source or operator emits; see task.Output.
	Output = task.Output
	// Context is what one operator of one subtask knows of its surroundings; see task.Context.
	Context = task.Context
	// Sink makes the output of its subtasks visible, or removes it; see task.Sink.
	Sink = task.Sink
	// JointSink is a Sink that several workers can write and whose output becomes visible
	// together with that of others; see task.JointSink.
	JointSink = task.JointSink
	// Completion is how a JointSink is to be completed; see task.Completion.
	Completion = task.Completion
	// RowError says what is wrong with a row; see task.RowError.
	RowError = task.RowError
	// RowsOf names the rows of a shard of one of several inputs; see task.RowsOf.
	RowsOf = task.RowsOf
	// Cure is what could be done about rows that are refused; see task.Cure.
	Cure = task.Cure
	// Locator is a Source that can tell where rows stand in what it reads; see task.Locator.
	Locator = task.Locator
	// Partition computes the destination shard of every row of a batch; see task.Partition.
	Partition = task.Partition
)

// The cures of rows that are refused.
const (
	NoCure         = task.NoCure
	LeaveOut       = task.LeaveOut
	FillOrLeaveOut = task.FillOrLeaveOut
)

// The types of a queue; see AddQueue.
type (
	// OpenLoops makes the loops of a queue in one process; see task.OpenLoops.
	OpenLoops = task.OpenLoops
	// GangSpec says which subtasks of a queue are to be made; see task.GangSpec.
	GangSpec = task.GangSpec
	// Cut is where a queue stands after a superstep; see task.Cut.
	Cut = task.Cut
	// CutPart is what one subtask of the queue hands over; see task.CutPart.
	CutPart = task.CutPart
	// Loop is what one subtask of a queue runs; see task.Loop.
	Loop = task.Loop
	// Stage is one step of a superstep as it runs; see task.Stage.
	Stage = task.Stage
	// Repeat is a loop within a superstep; see task.Repeat.
	Repeat = task.Repeat
	// Input reads the rows of a queue's data ports; see task.Input.
	Input = task.Input
	// StageKind says what part of a queue a node is; see plan.StageKind.
	StageKind = plan.StageKind
)

// The kinds of stage that a StageSpec may ask for.
const (
	StageCompute     = plan.Compute
	StageSend        = plan.Send
	StageSum         = plan.Sum
	StageRecv        = plan.Recv
	StageRepeatBegin = plan.RepeatBegin
	StageRepeatEnd   = plan.RepeatEnd
	StageCommunicate = plan.Communicate
)

// The parts of a graph that operators name.
type (
	// NodeID numbers the operators of a graph in the order they were added.
	NodeID = plan.NodeID
	// Attr is one printable parameter of an operator.
	Attr = plan.Attr
	// Partitioner says where the rows of an edge go; see plan.Partitioner.
	Partitioner = plan.Partitioner
	// Reduction says what the bits of a floating-point reduction depend on; see plan.Reduction.
	Reduction = plan.Reduction
)

// The partitioners of an edge.
const (
	Forward   = plan.Forward
	Rebalance = plan.Rebalance
	Hash      = plan.Hash
	Range     = plan.Range
	Broadcast = plan.Broadcast
	Custom    = plan.Custom
)

// The orders of floating-point reductions.
const (
	NoReduction = plan.NoReduction
	ShardTree   = plan.ShardTree
	RankTree    = plan.RankTree
)
