package forest

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// TestSetsOfCategoriesAreTheBest tries all sets of categories. For regression and two classes
// the chosen split must be the best of all sets. With more classes it must be at least as good
// as every split that separates one category, and every split of the categories sorted by the
// share of one class.
func TestSetsOfCategoriesAreTheBest(t *testing.T) {
	for seed := range uint64(150) {
		r := draws(seed)
		classes := []int{0, 2, 3}[seed%3]
		p := randomProblem(r, classes)
		p.bins, p.size, p.categorical = p.bins[:1], p.size[:1], []bool{true}
		rule := rules{criterion: Gini, tried: 1, depth: 1, minLeaf: 1, minSplit: 2}
		if classes == 0 {
			rule.criterion = Variance
		}
		tab, err := p.table(false)
		require.NoError(t, err)
		b := newBuilder(tab, rule, newSampler(Params{Sampling: Whole}))
		got := b.grow(context.Background(), 0)
		f := &reference{p: p, t: tab, r: rule, s: newScorer(rule.criterion, tab), times: make([]uint8, len(p.label))}
		var rows []int
		for i := range f.times {
			f.times[i] = 1
			if tab.w[i] > 0 {
				rows = append(rows, i)
			}
		}
		best, all := math.Inf(-1), f.score(rows)
		for set := range 1 << (p.size[0] + 1) { // missing values are treated as one more category
			var left, right []int
			for _, i := range rows {
				if set>>p.bins[0][i]&1 != 0 {
					left = append(left, i)
				} else {
					right = append(right, i)
				}
			}
			if len(left) > 0 && len(right) > 0 {
				best = max(best, (f.score(left)+f.score(right)-all)*f.s.unit)
			}
		}
		root := &got.Nodes[0]
		if root.Leaf() {
			require.True(t, math.IsInf(best, -1) || b.pureRows(rows), "seed %d: the root must be split", seed)
			continue
		}
		if classes <= 2 {
			require.InDelta(t, best, root.Gain, 1e-9, "seed %d: the split must be the best of all sets", seed)
		} else {
			require.LessOrEqual(t, root.Gain, best+1e-9)
			require.GreaterOrEqual(t, root.Gain, 0.5*best)
		}
		// In predictions, rows must end in the same leaves as in training.
		counts := map[int32]int64{}
		for _, i := range rows {
			counts[got.Leaf(p.row(i), true)]++
		}
		for node, n := range counts {
			require.Equal(t, got.Nodes[node].Count, n, "seed %d: rows must reach the same leaves as in training", seed)
		}
		// Categories that training has not seen must go to the side of missing values.
		require.Equal(t, got.Left(0, math.NaN(), true), got.Left(0, 77, true))
		require.Equal(t, got.Left(0, math.NaN(), true), got.Left(0, -1, true))
		require.NotZero(t, root.Flags&tree.Categorical)
	}
}

// pureRows reports whether the rows all have the same label.
func (b *builder) pureRows(rows []int) bool {
	for _, i := range rows {
		if b.t.label[i] != b.t.label[rows[0]] {
			return false
		}
	}
	return true
}

// TestRandomSetsPartRows requires that random sets divide the rows of a node into two non-empty
// parts, and that in predictions rows end in the same leaves as in training.
func TestRandomSetsPartRows(t *testing.T) {
	splits := 0
	for seed := range uint64(100) {
		r := draws(seed)
		p := randomProblem(r, 3)
		for j := range p.categorical {
			p.categorical[j] = r.IntN(2) == 0
		}
		tab, err := p.table(false)
		require.NoError(t, err)
		rule := rules{criterion: Gini, tried: 2, depth: 6, minLeaf: 1, minSplit: 2, random: true, seed: seed}
		got := newBuilder(tab, rule, newSampler(Params{Sampling: Whole})).grow(context.Background(), 0)
		splits += len(got.Nodes) / 2
		counts := map[int32]int64{}
		for i := range p.label {
			if tab.w[i] > 0 {
				counts[got.Leaf(p.row(i), true)]++
			}
		}
		for i := range got.Nodes {
			if n := &got.Nodes[i]; n.Leaf() {
				require.Positive(t, n.Count)
				require.Equal(t, n.Count, counts[int32(i)])
			}
		}
	}
	require.Greater(t, splits, 200)
}

// TestLeavesAreBounded requires that trees with a limit on leaves split the node with the
// largest gain first.
func TestLeavesAreBounded(t *testing.T) {
	x, label := generated(2000, 6)
	tab := quantiles(x, 2000, 6, label, 2)
	rule := rules{criterion: Gini, tried: 6, depth: 30, minLeaf: 1, minSplit: 2}
	grow := func(leaves int) tree.Tree {
		rule.leaves = leaves
		return newBuilder(tab, rule, newSampler(Params{Sampling: Whole})).grow(context.Background(), 0)
	}
	const leaves = 12
	got := grow(leaves)
	require.Len(t, got.Nodes, 2*leaves-1)
	// The expected nodes come from the same tree without a limit. The test begins at the root
	// and repeatedly opens the node with the largest gain.
	full := grow(0)
	open := map[int32]bool{0: true}
	gains := map[float64]bool{}
	for range leaves - 1 {
		best := int32(-1)
		for i := range open {
			if n := &full.Nodes[i]; !n.Leaf() && (best < 0 || n.Gain > full.Nodes[best].Gain) {
				best = i
			}
		}
		delete(open, best)
		gains[full.Nodes[best].Gain] = true
		open[full.Nodes[best].Left], open[full.Nodes[best].Right] = true, true
	}
	for i := range got.Nodes {
		if n := &got.Nodes[i]; !n.Leaf() {
			require.True(t, gains[n.Gain], "node %d must be one that the simple order splits", i)
		}
	}
}
