package engine

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Dataset represents the rows that an operator of the graph will emit. It is an
// immutable handle without data, and is valid only within the build that made it.
type Dataset struct {
	builder  *Builder
	node     plan.NodeID
	schema   *arrow.Schema
	poisoned bool
}

// Schema returns the schema of the rows. A poisoned dataset has no columns.
func (d *Dataset) Schema() Schema { return arrowrows.Schema(d.schema) }

// Builder returns the builder that the dataset belongs to.
func (d *Dataset) Builder() *Builder { return d.builder }

// Poisoned reports whether the operator was refused. Operators on a poisoned dataset cannot be
// checked, and must not report mistakes, as the cause has been reported already.
func (d *Dataset) Poisoned() bool { return d.poisoned }

// Node returns the operator's number in the graph, or -1 if the dataset is
// poisoned.
func (d *Dataset) Node() NodeID { return d.node }

// AfterQueue reports whether the dataset depends, directly or indirectly, on rows that a queue
// emits.
func (d *Dataset) AfterQueue() bool {
	if d.poisoned {
		return false
	}
	nodes := d.builder.graph.Nodes
	seen := make([]bool, len(nodes))
	next := []plan.NodeID{d.node}
	for len(next) > 0 {
		n := &nodes[next[len(next)-1]]
		next = next[:len(next)-1]
		if n.Queue != "" {
			return true
		}
		for _, in := range n.Inputs {
			if !seen[in.From] {
				seen[in.From] = true
				next = append(next, in.From)
			}
		}
	}
	return false
}

// Named labels the operator that emits the rows, for plans, progress and
// messages, and returns d.
func (d *Dataset) Named(label string) *Dataset {
	if d != nil && !d.poisoned && !d.builder.unusable() {
		d.builder.graph.Nodes[d.node].Name = label
	}
	return d
}
