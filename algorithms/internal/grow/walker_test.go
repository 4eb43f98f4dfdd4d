package grow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
)

// TestWalker requires that a Walker, which has only the trees, routes rows to the same leaves
// as growth did. It also requires that the trees of a superstep do not change if the State is
// discarded before that superstep.
func TestWalker(t *testing.T) {
	for seed := range uint64(referenceProblems) {
		rng := rand.New(rand.NewPCG(seed, 12))
		params := randomParams(rng)
		n := 1 + rng.IntN(60)
		x, kinds := randomProblem(rng, n)
		l := x.layout(rng, kinds)
		what := fmt.Sprintf("seed %d, %+v", seed, params)
		p := 1 + int(seed%3)
		want, _ := x.run(t, params, l, p, 2)
		if seed%8 == 0 {
			got, _ := x.run(t, params, l, p, 2, engine.CheckState(true))
			require.Equal(t, want.trees, got.trees, what)
			require.Equal(t, want.leaves, got.leaves, what)
		}
		w, data := NewWalker(l), x.data(l, 0, n)
		var leaf []int32
		for k := range want.trees {
			require.NoError(t, w.Open(&want.trees[k]), what)
			leaf = w.Route(data, leaf)
			require.Equal(t, want.leaves[k], leaf, what)
		}
	}
}

// TestWalkerRefuses requires that Open returns an error for trees that cannot have grown on
// rows of the layout.
func TestWalkerRefuses(t *testing.T) {
	l := &bins.Layout{Features: []bins.Feature{
		{Name: "age", Number: 3, Bins: 2, Cuts: []float32{1.5}, Slot: 0, Implicit: -1},
		{Name: "same", Number: 4, Column: -1, Slot: -1, Implicit: -1},
		{Name: "city", Number: 5, Categorical: true, Bins: 2, Codes: []int32{0, 7}, Column: 1, Slot: 3, Implicit: -1},
	}}
	split := func(n tree.Node) *tree.Tree { return &tree.Tree{Nodes: []tree.Node{n, {}, {}}, Sets: []uint32{1}} }
	for want, from := range map[string]*tree.Tree{
		"has no nodes": {},
		"node 0 of a tree has the child 0: want one after it, of 3 nodes": split(tree.Node{Left: 1}),
		"has the child 3: want one after it":                              split(tree.Node{Left: 1, Right: 3}),
		"has the child -1: want one":                                      split(tree.Node{Left: -1, Right: 2}),
		"splits on feature 9, which the rows do not have":                 split(tree.Node{Left: 1, Right: 2, Feature: 9}),
		`splits feature "same" at 0, which is no cut`:                     split(tree.Node{Left: 1, Right: 2, Feature: 4}),
		`reads feature "age" as another kind`:                             split(tree.Node{Left: 1, Right: 2, Feature: 3, Flags: tree.Categorical}),
		`reads feature "city" as another kind`:                            split(tree.Node{Left: 1, Right: 2, Feature: 5}),
		"has a set of 2 words from word 0 of 1":                           split(tree.Node{Left: 1, Right: 2, Feature: 5, SetWords: 2, Flags: tree.Categorical}),
		"has a set of 1 words from word -1 of 1":                          split(tree.Node{Left: 1, Right: 2, Feature: 5, Set: -1, SetWords: 1, Flags: tree.Categorical}),
		`splits feature "age" at 2, which is no cut`:                      split(tree.Node{Left: 1, Right: 2, Feature: 3, Threshold: 2}),
		`splits feature "age" at NaN, which is no cut`:                    split(tree.Node{Left: 1, Right: 2, Feature: 3, Threshold: math.NaN()}),
	} {
		require.ErrorContains(t, NewWalker(l).Open(from), want)
	}
	require.NoError(t, NewWalker(l).Open(split(tree.Node{Left: 1, Right: 2, Feature: 3, Threshold: 1.5})))
	require.NoError(t, NewWalker(l).Open(split(tree.Node{Left: 1, Right: 2, Feature: 5, SetWords: 1, Flags: tree.Categorical})))
}
