package engine

import (
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// The types of rows, for operators that work on columns.
type (
	// Schema lists the columns of rows; see columnar.Schema.
	Schema = columnar.Schema
	// Column describes a column: its name, its type as text, and whether values may be missing.
	Column = columnar.Column
	// Batch holds rows of one schema, stored by column; see columnar.Batch.
	Batch = columnar.Batch
)

// The types of an operator. They are declared here too, so that operators need not import the
// packages that run operators.
type (
	// Source produces the rows of shards; see task.Source.
	Source = task.Source
	// Operator transforms rows; see task.Operator.
	Operator = task.Operator
	// BaseOperator is embedded in an operator to supply empty methods for those that it does not
	// implement; see task.BaseOperator.
	BaseOperator = task.BaseOperator
	// Output receives the rows that a source or an operator emits; see task.Output.
	Output = task.Output
	// Context is the environment of one operator of one subtask; see task.Context.
	Context = task.Context
	// Sink makes the output of its subtasks visible, or removes it; see task.Sink.
	Sink = task.Sink
	// JointSink is a Sink that several workers can write and whose output becomes visible
	// together with the output of other JointSinks; see task.JointSink.
	JointSink = task.JointSink
	// OverlapSink is a Sink that says whether attempts of a job may overlap; see task.OverlapSink.
	OverlapSink = task.OverlapSink
	// Completion tells a JointSink how to complete its output; see task.Completion.
	Completion = task.Completion
	// RowError says what is wrong with a row; see task.RowError.
	RowError = task.RowError
	// RowsOf identifies the rows of one shard of one input; see task.RowsOf.
	RowsOf = task.RowsOf
	// Cure says what could be done about rows that are refused; see task.Cure.
	Cure = task.Cure
	// Locator is a Source that can say where a row is in the files that it reads; see
	// task.Locator.
	Locator = task.Locator
	// Partition computes the destination shard of every row of a batch; see task.Partition.
	Partition = task.Partition
)

// The values of Cure.
const (
	NoCure         = task.NoCure
	LeaveOut       = task.LeaveOut
	FillOrLeaveOut = task.FillOrLeaveOut
)

// The types of a queue; see AddQueue.
type (
	// OpenLoops makes the loops of a queue in one process; see task.OpenLoops.
	OpenLoops = task.OpenLoops
	// GangSpec says for which subtasks of a queue OpenLoops makes loops; see task.GangSpec.
	GangSpec = task.GangSpec
	// KeptRows are rows of a queue that a process keeps from one run to the next; see task.KeptRows.
	KeptRows = task.KeptRows
	// Cut is the state of a queue after a superstep, from which it can continue; see task.Cut.
	Cut = task.Cut
	// CutPart is the part of a Cut that one subtask hands over; see task.CutPart.
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

// The kinds of stage that a StageSpec may have.
const (
	StageCompute     = plan.Compute
	StageSend        = plan.Send
	StageSum         = plan.Sum
	StageRecv        = plan.Recv
	StageRepeatBegin = plan.RepeatBegin
	StageRepeatEnd   = plan.RepeatEnd
	StageCommunicate = plan.Communicate
)

// The types of a graph that operators use.
type (
	// NodeID is the number of an operator of a graph. Operators are numbered in the order in
	// which they were added.
	NodeID = plan.NodeID
	// Attr is one printable parameter of an operator.
	Attr = plan.Attr
	// Partitioner says where the rows of an edge go; see plan.Partitioner.
	Partitioner = plan.Partitioner
	// Reduction says in which order floating-point values are reduced; see plan.Reduction.
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
