package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompileRefusesParallelism(t *testing.T) {
	g := &Graph{Shards: 8, Nodes: []Node{{Op: "Range"}}}
	for _, p := range []int{-1, 0, 9} {
		_, err := Compile(g, p)
		require.ErrorContains(t, err, "--parallelism", "parallelism %d", p)
	}
	_, err := Compile(g, 9)
	require.ErrorContains(t, err, "--shards")
	for _, p := range []int{1, 8} {
		_, err := Compile(g, p)
		require.NoError(t, err)
	}
	_, err = Compile(nil, 1)
	require.Error(t, err)
}
