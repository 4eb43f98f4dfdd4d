package engine

import (
	"github.com/superstep-ml/superstep/engine/plan"
)

// ColumnUse says which columns of an input an operator uses, so that sources can leave out the
// other columns. The zero value means all columns. A column that is not used may hold any values
// of its type.
type ColumnUse struct {
	// Some says that the operator uses only the columns in Reads and in Passes, and the Keys of
	// the port.
	Some bool
	// Reads names the columns whose values the operator reads.
	Reads []string
	// Passes[i] is the number of the input's column that the operator passes on unchanged as
	// column i of its output. It is negative if the operator makes column i itself. If Passes is
	// nil, no column is passed on.
	Passes []int
}

// NeededColumns reports, for each column of the rows, whether an operator, a sink or a queue that
// runs reads it. It is for sources, while they run. Before the job's function has returned it
// returns nil, as operators that are added later may read any column.
func (d *Dataset) NeededColumns() []bool {
	if d.poisoned || !d.builder.sealed {
		return nil
	}
	return d.builder.neededColumns()[d.node]
}

// columnsNeeded reports, for each column of each node, whether a node that runs reads it. It is a
// pure function of the graph's nodes and of uses, the column uses by node and port.
func columnsNeeded(nodes []plan.Node, uses map[plan.NodeID][]ColumnUse) [][]bool {
	runs := plan.Needed(nodes)
	needed := make([][]bool, len(nodes))
	for i := range nodes {
		needed[i] = make([]bool, len(nodes[i].Schema))
	}
	for i := len(nodes) - 1; i >= 0; i-- { // a node comes before the nodes that read its rows
		if !runs[i] {
			continue
		}
		for port, in := range nodes[i].Inputs {
			use := ColumnUse{}
			if ports := uses[nodes[i].ID]; port < len(ports) {
				use = ports[port]
			}
			if in.From >= 0 && int(in.From) < i {
				use.add(in.Keys, needed[i], nodes[in.From].Schema, needed[in.From])
			}
		}
	}
	return needed
}

// add marks in needed the columns of an input that are needed. emitted says which columns of the
// operator's output are needed.
func (u ColumnUse) add(keys []string, emitted []bool, columns []plan.Column, needed []bool) {
	read := make(map[string]bool, len(keys)+len(u.Reads))
	for _, names := range [][]string{keys, u.Reads} {
		for _, name := range names {
			read[name] = true
		}
	}
	for i, c := range columns {
		needed[i] = needed[i] || !u.Some || read[c.Name]
	}
	for out, in := range u.Passes {
		if out < len(emitted) && emitted[out] && in >= 0 && in < len(needed) {
			needed[in] = true
		}
	}
}
