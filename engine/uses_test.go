package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

// TestColumnsNeeded requires that columnsNeeded propagates the columns that operators read back
// to the source.
func TestColumnsNeeded(t *testing.T) {
	abc := []plan.Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	node := func(id plan.NodeID, columns []plan.Column, from ...plan.NodeID) plan.Node {
		n := plan.Node{ID: id, Schema: columns}
		for _, f := range from {
			n.Inputs = append(n.Inputs, plan.Input{From: f})
		}
		return n
	}
	sink := node(2, nil, 1)
	sink.Sink = true
	hashed := node(1, abc, 0)
	hashed.Inputs[0].Partitioner, hashed.Inputs[0].Keys = plan.Hash, []string{"c"}
	identity := []int{0, 1, 2}
	for name, c := range map[string]struct {
		nodes []plan.Node
		uses  map[plan.NodeID][]ColumnUse
		want  []bool
	}{
		"nothing is said":           {[]plan.Node{node(0, abc), node(1, abc, 0), sink}, nil, []bool{true, true, true}},
		"a sink of all that is":     {[]plan.Node{node(0, abc), node(1, abc, 0), sink}, map[plan.NodeID][]ColumnUse{1: {{Some: true, Passes: identity}}}, []bool{true, true, true}},
		"a function of one":         {[]plan.Node{node(0, abc), node(1, abc[:1], 0), sink}, map[plan.NodeID][]ColumnUse{1: {{Some: true, Reads: []string{"b"}}}}, []bool{false, true, false}},
		"none at all":               {[]plan.Node{node(0, abc), node(1, abc[:1], 0), sink}, map[plan.NodeID][]ColumnUse{1: {{Some: true}}}, []bool{false, false, false}},
		"places that change":        {[]plan.Node{node(0, abc), node(1, abc[:2], 0), sink}, map[plan.NodeID][]ColumnUse{1: {{Some: true, Passes: []int{2, -1}}}}, []bool{false, false, true}},
		"keys, of what nobody sees": {[]plan.Node{node(0, abc), hashed, sink}, map[plan.NodeID][]ColumnUse{1: {{Some: true, Passes: identity}}, 2: {{Some: true}}}, []bool{false, false, true}},
		"two readers": {[]plan.Node{node(0, abc), node(1, abc, 0), sink, node(3, abc, 0), func() plan.Node { s := node(4, nil, 3); s.Sink = true; return s }()},
			map[plan.NodeID][]ColumnUse{1: {{Some: true, Reads: []string{"a"}}}, 3: {{Some: true, Reads: []string{"c"}}}}, []bool{true, false, true}},
		"a reader that does not run": {[]plan.Node{node(0, abc), node(1, abc, 0), sink, node(3, abc, 0)},
			map[plan.NodeID][]ColumnUse{1: {{Some: true, Reads: []string{"a"}}}}, []bool{true, false, false}},
		"both inputs of one": {[]plan.Node{node(0, abc), node(1, abc, 0, 0), sink},
			map[plan.NodeID][]ColumnUse{1: {{Some: true, Reads: []string{"a"}}, {Some: true, Reads: []string{"b"}}}}, []bool{true, true, false}},
	} {
		require.Equal(t, c.want, columnsNeeded(c.nodes, c.uses)[0], name)
	}
}
