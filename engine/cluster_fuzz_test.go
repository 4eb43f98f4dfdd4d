package engine

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// FuzzClusterRows gives a client rows that a broken or hostile worker might send. It requires
// that the client accepts or refuses them, and releases what it has accepted.
func FuzzClusterRows(f *testing.F) {
	f.Add(2, 0, numberStream(1, 2, 3))
	f.Add(2, 7, numberStream())
	f.Add(2, 8, numberStream(1))
	f.Add(-1, -1, numberStream(1))
	f.Add(2, 0, []byte{})
	f.Add(2, 0, []byte("garbage"))
	f.Fuzz(func(t *testing.T, node, shard int, rows []byte) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		r := &clusterRun{c: &config{allocator: mem}, store: newResultStore(1 << 20)}
		defer r.store.release()
		held := r.store.add(2, "squares", numberSchema, 8)
		if err := r.collect(&wire.Collected{Node: node, Shard: shard, Rows: rows}); err != nil {
			return
		}
		require.Equal(t, 2, node)
		require.LessOrEqual(t, held.rows(), int64(1<<20)/8)
	})
}

// FuzzClusterPlan gives a client plans that a broken job manager might send. It requires that
// the client refuses them, or has a plan and its graph afterwards.
func FuzzClusterPlan(f *testing.F) {
	p, err := Compile(squares, squaresArgs{N: 4}, Shards(8), Parallelism(2))
	if err != nil {
		f.Fatal(err)
	}
	data, err := p.JSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, []byte{})
	f.Add([]byte(`{}`), []byte(`{}`))
	f.Add([]byte(`{"nodes":[{"op":"Collect","sink":true,"inputs":[{"from":9}]}]}`), []byte{})
	f.Fuzz(func(t *testing.T, data, graph []byte) {
		r := &clusterRun{c: &config{}, store: newResultStore(1 << 20)}
		r.rebuild = func(known []plan.Fact) (*Builder, error) {
			return build(squares, squaresArgs{N: 4}, &config{shards: 8}, replaying(known))
		}
		if r.planned(data, graph) == nil {
			require.NotNil(t, r.plan)
			require.NotNil(t, r.graph)
		}
	})
}
