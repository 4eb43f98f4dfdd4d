package task

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

// TestSidesOfProcessesThatOnlyGive requires that a process without subtasks keeps the side inputs of an
// earlier run when its run fails, as it may not have sent them yet.
func TestSidesOfProcessesThatOnlyGive(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	k := NewRetained()
	p := &plan.Plan{
		Vertices: []plan.Vertex{{Queue: "centres"}, {Queue: "means"}},
		Edges:    []plan.Edge{{From: 0, To: 1, FromNode: 3, ToNode: 5, Port: 1, Role: plan.Side}},
	}
	key := keyOf(&p.Edges[0])
	k.sides = map[sideKey][]arrow.Record{
		key:              {makeRows(mem, sourceRows(4, 1, 0))},
		{From: 3, To: 7}: {makeRows(mem, sourceRows(4, 1, 0))}, // of an edge that this plan does not have
	}
	want := readRows(k.sides[key][0])
	r := &run{plan: p, env: Env{Retained: k}}
	r.receivers.sides = make([]*sideInput, len(p.Edges))
	for range 2 {
		k.harvest(r)
		require.Len(t, k.sides, 1)
		require.Equal(t, want, readRows(k.sides[key][0]))
		require.Equal(t, []sideKey{key}, k.holding().Sides)
	}
	require.NoError(t, k.Close())
}
