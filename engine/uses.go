package engine

import (
	"github.com/superstep-ml/superstep/engine/plan"
)

// ColumnUse says which columns of an input an operator makes use of, so that sources can leave
// out what nobody looks at. The zero value stands for all of them, whatever the operator does.
// A column that is not used holds any values of its type.
type ColumnUse struct {
	// Some says that what follows is all that the operator makes use of, besides the Keys of the
	// port.
	Some bool
	// Reads names the columns whose values the operator looks at.
	Reads []string
	// Passes tells, for each column that the operator emits, which column of the input it hands on
	// as it is, by number; negative where it makes the column itself. nil stands for none handed on.
	Passes []int
}

// NeededColumns tells, by number, which columns of the rows are looked at by anybody: by an
// operator, a sink or a queue that the run needs. It is for sources, while they run; before the
// job's function has returned it is nil, as others may look at the rest.
func (d *Dataset) NeededColumns() []bool {
	if d.poisoned || !d.builder.sealed {
		return nil
	}
	return d.builder.neededColumns()[d.node]
}

// columnsNeeded tells, by node and column, what anybody looks at. It is a pure function of the
// graph, and of how operators use their inputs, by node and port.
func columnsNeeded(nodes []plan.Node, uses map[plan.NodeID][]ColumnUse) [][]bool {
	runs := plan.Needed(nodes)
	needed := make([][]bool, len(nodes))
	for i := range nodes {
		needed[i] = make([]bool, len(nodes[i].Schema))
	}
	for i := len(nodes) - 1; i >= 0; i-- { // readers stand behind what they read
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

// add notes which columns of an input are needed, emitted being those of the outcome that are.
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
