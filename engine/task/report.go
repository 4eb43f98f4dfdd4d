package task

import (
	"time"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
)

// Report is the record of one run.
type Report struct {
	Elapsed  time.Duration
	Vertices []VertexReport // in plan order
	Queues   []QueueReport  // in plan order
	// Accumulators holds the folded value of each accumulator, sorted by name.
	Accumulators []Accumulator
	// PeakMemory and Spilled are the bytes that exchanges and operators held and wrote to disk.
	PeakMemory int64
	Spilled    int64
}

// VertexReport says what the subtasks of a vertex did.
type VertexReport struct {
	ID       plan.VertexID
	Name     string
	Subtasks []SubtaskReport
}

// SubtaskReport says what one subtask did.
type SubtaskReport struct {
	RowsIn  int64 // rows received from edges
	RowsOut int64 // rows emitted onto edges or into a sink
	Shards  int   // owned
	// Busy is the time spent in operators, Waiting the time spent for inputs and peers.
	Busy, Waiting time.Duration
	Operators     []OperatorReport // in chain order
}

// OperatorReport counts the rows of one operator of a chain.
type OperatorReport struct {
	Node            plan.NodeID
	RowsIn, RowsOut int64
	// Counters are operator-specific, such as "skipped" rows of a reader, sorted by name.
	Counters []Counter
}

// Counter is a named count.
type Counter struct {
	Name  string
	Value int64
}

// Accumulator is a named value folded over shards.
type Accumulator struct {
	Name  string
	Value float64
}

// QueueReport says how a queue ran.
type QueueReport struct {
	Name       string
	Supersteps int
	// Stopped says that the criterion, not the maximum, ended the queue.
	Stopped bool
	// Series holds the values reported per superstep, in the order first reported.
	Series []Series
	Stages []StageReport // in plan order
	// Elapsed is the wall time of the supersteps on subtask 0.
	Elapsed time.Duration
	// Steps is the cost of each superstep on subtask 0; index 0 is superstep 1.
	Steps []StepReport
}

// StepReport is the cost of a superstep on one subtask.
type StepReport struct {
	Elapsed time.Duration // wall time, from the end of the one before
	Bytes   int64         // sent by the subtask
}

// Series is one reported value over the supersteps; missing values are NaN.
type Series struct {
	Name   string
	Values []float64 // index 0 is superstep 1
}

// StageReport is the cost of a stage.
type StageReport struct {
	Node    plan.NodeID
	Name    string
	Program string // of communication stages: algorithm and executor that ran
	Calls   int64  // summed over subtasks
	Bytes   int64
	Busy    time.Duration
}

// Collector takes the rows of Collect sinks as they finish, in shard order.
type Collector interface {
	Collect(node plan.NodeID, shard int, rows columnar.Batch) error
}
