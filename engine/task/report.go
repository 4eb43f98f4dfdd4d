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
	// PeakMemory is the largest number of bytes that exchanges and operators held at one time,
	// summed over the workers. Spilled is the number of bytes that exchanges wrote to disk.
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
	Shards  int   // number of shards owned
	// Busy is the time spent in operators. Waiting is the time spent waiting for inputs and for
	// other subtasks.
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
	// Series holds the values reported in each superstep, in the order of their first report.
	Series []Series
	Stages []StageReport // in plan order
	// Elapsed is the wall time of the supersteps on subtask 0.
	Elapsed time.Duration
	// Steps is the cost of each superstep on subtask 0; index 0 is superstep 1.
	Steps []StepReport
}

// StepReport is the cost of a superstep on one subtask.
type StepReport struct {
	Elapsed time.Duration // wall time since the end of the previous superstep
	Bytes   int64         // bytes of partial results that the stages of the subtask moved
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
	Program string // for stages that communicate: the algorithm and the executor that ran
	Calls   int64  // summed over subtasks, as are Bytes and Busy
	Bytes   int64
	Busy    time.Duration
}

// Collector receives the rows of Collect sinks. The rows of a subtask come in shard order.
type Collector interface {
	Collect(node plan.NodeID, shard int, rows columnar.Batch) error
}
