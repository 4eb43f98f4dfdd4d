package tree

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirst(t *testing.T) {
	s := shapes["classes"]
	e := valid(t, 1, s)
	sameBits(t, e, e.First(1000))
	require.Empty(t, e.First(-1).Trees)
	require.Equal(t, 7, len(append(e.First(7).Trees, Tree{}))-1)
	sameBits(t, e, valid(t, 1, s), "it is not what it was")
	row := make([]float64, s.features)
	randomRow(rand.New(rand.NewPCG(1, 1)), s, row)
	rest := *e
	rest.Trees = e.Trees[5:]
	got, first, others := plainScores(e, row), plainScores(e.First(5), row), plainScores(&rest, row)
	for o := range got {
		require.InDelta(t, got[o], first[o]+others[o]-e.Base[o], 1e-12)
	}
}

// TestAlsoSeen requires the union of the codes that two trainings have seen, if the codes of
// both are known.
func TestAlsoSeen(t *testing.T) {
	require.Equal(t, [][]int32{{1, 3, 4}, nil, nil}, AlsoSeen([][]int32{{1, 3}, {1}, nil}, [][]int32{{3, 4}, nil, {2}}))
	require.Nil(t, AlsoSeen(nil, [][]int32{{1}}))
	a, b := [][]int32{{0, 7}}, [][]int32{{3}}
	require.Equal(t, [][]int32{{0, 3, 7}}, AlsoSeen(a, b))
	require.Equal(t, []int32{0, 7}, a[0])
}
