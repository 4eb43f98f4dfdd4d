package forest

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// TestWideColumnsGrowTheSameTrees requires that trees on the same categories, stored in one
// byte and in two bytes, differ in only one respect: with two bytes, categories that do not
// occur in a node go to the side of missing values.
func TestWideColumnsGrowTheSameTrees(t *testing.T) {
	splits := 0
	for seed := range uint64(120) {
		r := draws(seed)
		p := randomProblem(r, []int{0, 2, 3}[seed%3])
		for j := range p.categorical {
			p.categorical[j] = r.IntN(3) > 0
		}
		rule := rules{tried: 1 + r.IntN(3), depth: 6, minLeaf: 1 + r.IntN(3), minSplit: 2, random: seed%4 == 0, seed: seed, criterion: []Criterion{Gini, Entropy}[r.IntN(2)]}
		if p.classes == 0 {
			rule.criterion = Variance
		}
		grow := func(wide bool) tree.Tree {
			p.wide = wide
			tab, err := p.table(false)
			require.NoError(t, err)
			for j := range tab.cols {
				require.Equal(t, wide && p.categorical[tab.cols[j].feature], tab.cols[j].wide != nil)
			}
			return newBuilder(tab, rule, newSampler(Params{Sampling: Whole})).grow(context.Background(), 0)
		}
		narrow, wide := grow(false), grow(true)
		if !rule.random { // wide features use other random numbers
			require.Len(t, wide.Nodes, len(narrow.Nodes))
			for i := range wide.Nodes {
				a, b := narrow.Nodes[i], wide.Nodes[i]
				a.Set, a.SetWords, b.Set, b.SetWords = 0, 0, 0, 0
				require.Equal(t, a, b, "seed %d, node %d", seed, i)
			}
		}
		e := tree.Ensemble{Features: make([]string, len(p.bins)), Outputs: max(1, p.classes), Base: make([]float64, max(1, p.classes)), Single: true, Trees: []tree.Tree{wide}}
		require.NoError(t, e.Validate())
		counts, seen := map[int32]int64{}, map[int32]map[int]bool{} // seen has, for each node, the bins of its feature
		for i := range p.label {
			if p.weight != nil && p.weight[i] == 0 {
				continue
			}
			row := p.row(i)
			for at := int32(0); ; {
				n := &wide.Nodes[at]
				if n.Leaf() {
					counts[at]++
					break
				}
				if seen[at] == nil {
					seen[at] = map[int]bool{}
				}
				seen[at][p.bins[n.Feature][i]] = true
				if wide.Left(at, row[n.Feature], true) {
					at = n.Left
				} else {
					at = n.Right
				}
			}
		}
		for i := range wide.Nodes {
			n := &wide.Nodes[i]
			if n.Leaf() {
				require.Equal(t, n.Count, counts[int32(i)], "seed %d, node %d", seed, i)
				continue
			}
			splits++
			for c := 0; n.Flags&tree.Categorical != 0 && c < 12; c++ {
				if !seen[int32(i)][c] {
					require.Equal(t, wide.Left(int32(i), math.NaN(), true), wide.Left(int32(i), float64(c), true))
				}
			}
		}
	}
	require.Greater(t, splits, 300)
}
