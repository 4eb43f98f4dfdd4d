package engine

import (
	"github.com/superstep-ml/superstep/engine/plan"
)

// ColumnUse says which columns of an input an operator uses, so that sources can leave out the
// others. The zero value stands for all columns. A column that is not used may hold any values
// of its type.
type ColumnUse struct {
	// Some says that the operator uses only the columns of Reads and Passes and the Keys of the
	// port.
	Some bool
	// Reads names the columns whose values the operator reads.
	Reads []string
	// Passes gives, for each column that the operator emits, the number of the input's column
	// that it passes on unchanged. It is negative for a column that the operator makes itself.
	// nil means that none is passed on.
	Passes []int
}

// NeededColumns tells, by number, which columns of the rows are read by an operator, a sink or
// a queue that the run needs. It is for sources, while they run. Before the job's function has
// returned it is nil, as operators that are added later may read any column.
func (d *Dataset) NeededColumns() []bool {
	if d.poisoned || !d.builder.sealed {
		return nil
	}
	return d.builder.neededColumns()[d.node]
}

// columnsNeeded tells, by node and column, which columns somebody reads. It is a pure function
// of the graph and of the column uses, which are given by node and port.
func columnsNeeded(nodes []plan.Node, uses map[plan.NodeID][]ColumnUse) [][]bool {
	runs := plan.Needed(nodes)
	needed := make([][]bool, len(nodes))
	for i := range nodes {
		needed[i] = make([]bool, len(nodes[i].Schema))
	}
	for i := len(nodes) - 1; i >= 0; i-- { // readers come after what they read
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

// add marks the needed columns of an input. emitted says which columns of the operator's output
// are needed.
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
