package tree

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConcatAndFirst(t *testing.T) {
	s := shapes["classes"]
	a, b := valid(t, 1, s), valid(t, 2, s)
	sum, err := Concat(a, b, a.First(5))
	require.NoError(t, err)
	require.NoError(t, sum.Validate())
	require.Len(t, sum.Trees, 2*s.trees+5)
	row := make([]float64, s.features)
	randomRow(rand.New(rand.NewPCG(1, 1)), s, row)
	got := plainScores(sum, row)
	x, y, z := plainScores(a, row), plainScores(b, row), plainScores(a.First(5), row)
	for o := range got {
		require.InDelta(t, x[o]+y[o]+z[o], got[o], 1e-12)
	}
	require.Empty(t, Diff(a, a.First(1000)))
	require.Empty(t, a.First(-1).Trees)
	require.Equal(t, 7, len(append(a.First(7).Trees, Tree{}))-1)
	require.Empty(t, Diff(a, valid(t, 1, s)), "neither changed what it was made of")

	// Averages are over all trees.
	s = shapes["forest"]
	a, b = valid(t, 1, s), valid(t, 2, s)
	_, err = Concat(a, b)
	require.ErrorContains(t, err, "tree: ensemble 1 does not fit the first: base 0:")
	b.Base = a.Base
	mean, err := Concat(a, b.First(10))
	require.NoError(t, err)
	got, x, y = plainScores(mean, row), plainScores(a, row), plainScores(b.First(10), row)
	for o := range got {
		require.InDelta(t, (2*x[o]+y[o])/3, got[o], 1e-12)
	}

	_, err = Concat()
	require.ErrorContains(t, err, "no ensembles")
	other := *a
	other.Features = append([]string{"other"}, a.Features[1:]...)
	_, err = Concat(a, a, &other)
	require.ErrorContains(t, err, "ensemble 2 does not fit the first: feature 0: f0 and other")
}

// What two trainings have seen is what one or the other has, where both tell.
func TestAlsoSeen(t *testing.T) {
	require.Equal(t, [][]int32{{1, 3, 4}, nil, nil}, AlsoSeen([][]int32{{1, 3}, {1}, nil}, [][]int32{{3, 4}, nil, {2}}))
	require.Nil(t, AlsoSeen(nil, [][]int32{{1}}))
	a, b := one(), one()
	b.Seen[0] = []int32{3}
	all, err := Concat(a, b)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{0, 3, 7}, nil}, all.Seen)
	require.Equal(t, []int32{0, 7}, a.Seen[0])
}

// TestDiff changes everything an ensemble has and asks where.
func TestDiff(t *testing.T) {
	for want, change := range map[string]func(e *Ensemble, t *Tree, n *Node){
		"outputs: 2 and 3":                                       func(e *Ensemble, _ *Tree, _ *Node) { e.Outputs = 3 },
		"average: true and false":                                func(e *Ensemble, _ *Tree, _ *Node) { e.Average = false },
		"single: true and false":                                 func(e *Ensemble, _ *Tree, _ *Node) { e.Single = false },
		"feature 0: age and Age":                                 func(e *Ensemble, _ *Tree, _ *Node) { e.Features[0] = "Age" },
		"feature 2:  and c":                                      func(e *Ensemble, _ *Tree, _ *Node) { e.Features = append(e.Features, "c") },
		"feature 1: category 1: Q and q":                         func(e *Ensemble, _ *Tree, _ *Node) { e.Categories[1][1] = "q" },
		"feature 1: category 0: C and ":                          func(e *Ensemble, _ *Tree, _ *Node) { e.Categories = nil },
		"feature 0: code 1 that was seen: 7 and 8":               func(e *Ensemble, _ *Tree, _ *Node) { e.Seen[0][1] = 8 },
		"base 1: -0 and 0":                                       func(e *Ensemble, _ *Tree, _ *Node) { e.Base[1] = 0 },
		"trees: 2 and 1":                                         func(e *Ensemble, _ *Tree, _ *Node) { e.Trees = e.Trees[:1] },
		"tree 0: output: 1 and 0":                                func(_ *Ensemble, t *Tree, _ *Node) { t.Output = 0 },
		"tree 0: weight: 0.3 and NaN":                            func(_ *Ensemble, t *Tree, _ *Node) { t.Weight = math.NaN() },
		"tree 0: nodes: 5 and 4":                                 func(_ *Ensemble, t *Tree, _ *Node) { t.Nodes = t.Nodes[:4] },
		"tree 0: word 1 of the sets: 4294967295 and 1":           func(_ *Ensemble, t *Tree, _ *Node) { t.Sets[1] = 1 },
		"tree 1: entry 1 of the values: 0.75 and 0":              func(e *Ensemble, _ *Tree, _ *Node) { e.Trees[1].Values[1] = 0 },
		"tree 0: node 1: children: 2 and 3 and 2 and 4":          func(_ *Ensemble, _ *Tree, n *Node) { n.Right = 4 },
		"tree 0: node 1: feature: 1 and 0":                       func(_ *Ensemble, _ *Tree, n *Node) { n.Feature = 0 },
		"tree 0: node 1: flags: 6 and 0":                         func(_ *Ensemble, _ *Tree, n *Node) { n.Flags = 0 },
		"tree 0: node 1: set: 1 words from 1 and 1 words from 0": func(_ *Ensemble, _ *Tree, n *Node) { n.Set = 0 },
		"tree 0: node 1: count: 3 and 4":                         func(_ *Ensemble, _ *Tree, n *Node) { n.Count = 4 },
		"tree 0: node 1: threshold: 0 and -0":                    func(_ *Ensemble, _ *Tree, n *Node) { n.Threshold = math.Copysign(0, -1) },
		"tree 0: node 1: value: 0 and 1":                         func(_ *Ensemble, _ *Tree, n *Node) { n.Value = 1 },
		"tree 0: node 1: gain: 1e-300 and 0":                     func(_ *Ensemble, _ *Tree, n *Node) { n.Gain = 0 },
		"tree 0: node 1: cover: 3 and 1":                         func(_ *Ensemble, _ *Tree, n *Node) { n.Cover = 1 },
	} {
		e := one()
		require.True(t, Equal(one(), e))
		change(e, &e.Trees[0], &e.Trees[0].Nodes[1])
		require.Equal(t, want, Diff(one(), e))
		require.False(t, Equal(e, one()))
	}
}
