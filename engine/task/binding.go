package task

import "github.com/superstep-ml/superstep/engine/plan"

// Bindings connects the nodes of a plan to code. A node has exactly one of a
// Source, an Operator or a queue's Loop.
type Bindings struct {
	Sources   map[plan.NodeID]func() Source
	Operators map[plan.NodeID]func() Operator
	// Partitions holds the row placement of custom and range edges, by receiving
	// node and port. Hash edges without an entry use the documented hash.
	Partitions map[Port]Partition
	Sinks      map[plan.NodeID]Sink
	// Loops holds the body of each queue, by name.
	Loops map[string]Loop
}

// Port names an input of a node.
type Port struct {
	Node plan.NodeID
	Port int
}
