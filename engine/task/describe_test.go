package task

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/disk"
)

// TestDescriptions requires that a description is read as it was written, that one of which any bit has changed,
// or any end is missing or added, is refused, and that no part of a file that could not be written is left.
func TestDescriptions(t *testing.T) {
	dir := t.TempDir()
	path, changed := filepath.Join(dir, "d"), filepath.Join(dir, "changed")
	for _, content := range []string{"", "x", "the content of a description"} {
		require.NoError(t, writeDescription(disk.OS(), rowsMark, path, []byte(content)))
		got, err := readDescription(disk.OS(), rowsMark, path)
		require.NoError(t, err)
		require.Equal(t, content, string(got))
		_, err = readDescription(disk.OS(), madeMark, path)
		require.ErrorContains(t, err, "is damaged")

		data, err := os.ReadFile(path)
		require.NoError(t, err)
		refused := func(data []byte, what string, at int) {
			require.NoError(t, os.WriteFile(changed, data, 0o600))
			_, err := readDescription(disk.OS(), rowsMark, changed)
			require.ErrorContains(t, err, "is damaged", "%s %d", what, at)
		}
		for bit := range 8 * len(data) {
			data[bit/8] ^= 1 << (bit % 8)
			refused(data, "bit", bit)
			data[bit/8] ^= 1 << (bit % 8)
		}
		for n := range len(data) {
			refused(data[:n], "end", n)
		}
		refused(append(data, 0), "end", len(data)+1)
	}
	require.NoError(t, os.Remove(changed))
	require.NoError(t, os.Mkdir(changed, 0o700)) // which a file cannot replace
	require.Error(t, writeDescription(disk.OS(), rowsMark, changed, []byte("x")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

// TestRowsBehindOperatorsThatRan requires that rows of a queue are not believed if an operator before it had
// not finished, as that may still emit rows which depend on how shards were divided.
func TestRowsBehindOperatorsThatRan(t *testing.T) {
	g := queueGraph(8, 3, false, plan.Compute)
	compiled, err := plan.Compile(g.Graph, 2)
	require.NoError(t, err)
	require.NoError(t, complete(compiled, "q", holding{}), "there are only sources before it")

	p := *compiled
	p.Nodes = append([]plan.Node(nil), compiled.Nodes...)
	p.Vertices = append([]plan.Vertex(nil), compiled.Vertices...)
	edge, v := queueInputs(&p, "q")
	from := p.Edges[edge[0]].FromNode
	require.NotNil(t, v)
	between := plan.NodeID(len(p.Nodes))
	p.Nodes = append(p.Nodes, plan.Node{ID: between, Op: "Between"})
	for i := range p.Vertices {
		chain := p.Vertices[i].Chain
		if chain[len(chain)-1].Node == from {
			p.Vertices[i].Chain = append(append([]plan.Chained(nil), chain...), plan.Chained{Node: between, Parent: len(chain) - 1})
		}
	}
	p.Edges = append([]plan.Edge(nil), compiled.Edges...)
	p.Edges[edge[0]].FromNode = between
	require.ErrorContains(t, complete(&p, "q", holding{}), "operator Between had not finished")
	require.NoError(t, complete(&p, "q", holding{Ended: []plan.NodeID{between}}))
	p.Nodes[between].Single = true
	require.NoError(t, complete(&p, "q", holding{}), "its rows do not depend on that")
}
