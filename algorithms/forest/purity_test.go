package forest_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// stripes returns n rows that need a deep tree. The labels of neighbours differ, so the best
// split always separates only the first or the last row of a node.
func stripes(n int) trial.Table {
	t := trial.Table{N: n, D: 1}
	for i := range n {
		t.X = append(t.X, float64(i))
		t.Label = append(t.Label, float64(i%2))
		t.Weight = append(t.Weight, 1)
	}
	return t
}

// TestTreesGrowToPurity requires that trees grow until leaves are pure, also in regression,
// unless a limit is set.
func TestTreesGrowToPurity(t *testing.T) {
	table := stripes(200)
	for _, task := range []forest.Task{forest.Regression, forest.Classification} {
		for _, method := range []forest.Method{forest.SingleTree, forest.ExtraTrees, forest.RandomForest} {
			p := forest.Params{LabelCol: "label", Task: task, Method: method, Sampling: forest.Whole, MaxFeatures: "all"}
			if method != forest.SingleTree {
				p.NumTrees = 2
			}
			m := train(t, table, p)
			require.EqualValues(t, 200*len(m.Trees.Trees), m.Summary.Leaves, "%v for %v: each row must have a leaf of its own", method, task)
			if method != forest.ExtraTrees {
				require.Greater(t, m.Summary.MaxDepth, 16)
			}
			for i, y := range table.Label {
				require.Equal(t, y, m.Predict(table.Row(i)))
			}
			want, err := m.Encode()
			require.NoError(t, err)
			p.MaxDepth = -1
			got, err := train(t, table, p).Encode()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			p.MaxDepth = 16
			require.Equal(t, 16, max(16, train(t, table, p).Summary.MaxDepth))
		}
	}
}

// TestModelsOfDeepTrees requires that models of deep trees can be used like all other models.
func TestModelsOfDeepTrees(t *testing.T) {
	table := stripes(250)
	m := train(t, table, forest.Params{LabelCol: "label", Task: forest.Classification, Method: forest.SingleTree})
	require.Greater(t, m.Summary.MaxDepth, 100)
	back := trial.ModelFile(t, m, forest.Load, forest.Decode, `"dim":1`, `"dim":2`)
	_, _, fromX, fromL := through(t, m)
	for i := range table.N {
		want := m.Predict(table.Row(i))
		require.Equal(t, want, back.Predict(table.Row(i)))
		require.Equal(t, want, fromX.Predict(table.Row(i)))
		require.Equal(t, want, fromL.Predict(table.Row(i)))
	}
	require.Equal(t, []float64{1}, m.Importances())
	var text, svg bytes.Buffer
	require.NoError(t, m.Trees.WriteText(&text))
	require.NoError(t, m.Trees.WriteSVG(&svg, 0, tree.DrawOptions{}))
	require.Greater(t, bytes.Count(text.Bytes(), []byte("\n")), 2*250-1)
}
