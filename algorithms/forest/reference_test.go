package forest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// reference grows trees in a slow and simple way: for every candidate split it visits every row
// of the node. It uses the same draws and the same scores of nodes as builder.
type reference struct {
	p      problem
	t      *table
	r      rules
	s      scorer
	times  []uint8
	random sharding.Random
}

// refNode is a node of a tree that reference grows.
type refNode struct {
	rows        []int
	feature     int
	pos         float64 // threshold of a split
	missingLeft bool
	left, right *refNode
}

func (f *reference) sums(rows []int) (s sums, counts []int64) {
	counts = make([]int64, max(1, f.p.classes))
	for _, i := range rows {
		k := int64(f.times[i])
		w := int64(f.t.w[i]) * k
		s.w += w
		s.n++
		if f.p.classes > 0 {
			counts[int(f.p.label[i])] += w
		}
		if f.p.classes <= 2 {
			s.g += f.t.g[i] * k
		}
	}
	return s, counts
}

func (f *reference) score(rows []int) float64 {
	s, counts := f.sums(rows)
	if f.p.classes > 2 {
		return f.s.counts(counts, s.w)
	}
	return f.s.pair(s.g, s.w)
}

func (f *reference) grow(rows []int, depth int, key uint64) *refNode {
	node := &refNode{rows: rows}
	same := true
	for _, i := range rows {
		same = same && f.p.label[i] == f.p.label[rows[0]]
	}
	if depth >= f.r.depth || len(rows) < f.r.minSplit || same {
		return node
	}
	best, found := math.Inf(-1), false
	var left, right []int
	draw := nodeDraws{f.random, key}
	order := make([]int, len(f.p.bins))
	for j := range order {
		order[j] = j
	}
	for i := range order {
		if i >= f.r.tried && found {
			break
		}
		j := i + draw.below(uint64(i), len(order)-i)
		order[i], order[j] = order[j], order[i]
		feature := order[i]
		for _, c := range f.candidates(rows, feature, draw) {
			var l, r []int
			for _, row := range rows {
				b := f.p.bins[feature][row]
				if b == f.p.size[feature] && c.missingLeft || b < f.p.size[feature] && b <= c.pos {
					l = append(l, row)
				} else {
					r = append(r, row)
				}
			}
			if len(l) < f.r.minLeaf || len(r) < f.r.minLeaf {
				continue
			}
			score := f.score(l) + f.score(r)
			if math.IsInf(score, -1) || found && (score < best || score == best && !(f.r.ordered && feature < node.feature)) {
				continue
			}
			best, found = score, true
			node.feature, node.missingLeft, left, right = feature, c.missingLeft, l, r
			if !c.there {
				ls, _ := f.sums(l)
				all, _ := f.sums(rows)
				node.missingLeft = 2*ls.w >= all.w
			}
			node.pos = c.threshold()
		}
	}
	if !found {
		return node
	}
	if f.r.minGain > 0 && !((best-f.score(rows))*f.s.unit >= f.r.minGain*f.total()) {
		return node
	}
	node.left, node.right = f.grow(left, depth+1, childKey(key, false)), f.grow(right, depth+1, childKey(key, true))
	return node
}

func (f *reference) total() float64 {
	var w int64
	for i, k := range f.times {
		w += int64(f.t.w[i]) * int64(k)
	}
	return float64(w) * f.t.wUnit
}

type candidate struct {
	feature, pos, next int
	missingLeft, there bool
}

// threshold returns the cut nearest to the middle between the bins pos and next. If two cuts
// are equally near, it returns the lower one. Bins are whole numbers, so cuts are at halves.
func (c candidate) threshold() float64 {
	if c.pos < 0 {
		return math.Inf(-1)
	}
	return math.Ceil(float64(c.pos+c.next-1)/2-0.5) + 0.5
}

func (f *reference) candidates(rows []int, feature int, draw nodeDraws) (all []candidate) {
	size := f.p.size[feature]
	occurs := make([]bool, size+1)
	for _, i := range rows {
		occurs[f.p.bins[feature][i]] = true
	}
	there := occurs[size]
	var values []int
	for b := range size {
		if occurs[b] {
			values = append(values, b)
		}
	}
	if len(values) == 0 {
		return nil
	}
	lo, hi := values[0], values[len(values)-1]
	if f.r.random {
		c := candidate{feature, -1, 0, true, there}
		if lo < hi {
			first, last := float64(lo)+0.5, float64(hi)-0.5
			at := first + draw.uniform(drawThreshold+uint64(feature))*(last-first)
			pos := int(math.Ceil(at - 1)) // the nearest cut, or the lower of two equally near ones; cuts are at halves
			c = candidate{feature, pos, pos + 1, there && draw.uniform(drawMissing+uint64(feature)) < 0.5, there}
		} else if !there {
			return nil
		}
		return []candidate{c}
	}
	if there {
		all = append(all, candidate{feature, -1, 0, true, true})
	}
	for k := 0; k+1 < len(values); k++ {
		if there {
			all = append(all, candidate{feature, values[k], values[k+1], true, true})
		}
		all = append(all, candidate{feature, values[k], values[k+1], false, there})
	}
	return all
}

// requireSame requires that the subtree of got below the node with the number at equals want.
func requireSame(t *testing.T, f *reference, want *refNode, got *tree.Tree, at int32) {
	t.Helper()
	n := &got.Nodes[at]
	require.EqualValues(t, len(want.rows), n.Count)
	s, counts := f.sums(want.rows)
	require.InDelta(t, float64(s.w)*f.t.wUnit, n.Cover, 1e-12)
	if f.p.classes == 0 {
		mean, weight := 0.0, 0.0
		for _, i := range want.rows {
			w := float64(f.times[i])
			if f.p.weight != nil {
				w *= f.p.weight[i]
			}
			mean += w * f.p.label[i]
			weight += w
		}
		require.InDelta(t, mean/weight, n.Value, 1e-9)
	} else {
		for c := range f.p.classes {
			require.Equal(t, float64(counts[c])/float64(s.w), got.Values[int(at)*f.p.classes+c])
		}
	}
	require.Equal(t, want.left == nil, n.Leaf(), "node %d must be a leaf exactly where the reference has one", at)
	if n.Leaf() {
		return
	}
	require.EqualValues(t, want.feature, n.Feature)
	require.Equal(t, want.pos, n.Threshold)
	require.Equal(t, want.missingLeft, n.Flags&tree.DefaultLeft != 0)
	require.Equal(t, n.Left+1, n.Right)
	requireSame(t, f, want.left, got, n.Left)
	requireSame(t, f, want.right, got, n.Right)
}

func TestTreesAreThoseOfTheReference(t *testing.T) {
	splits := 0
	for seed := range uint64(referenceTrials) {
		r := draws(seed)
		classes := []int{0, 2, 3, 5}[r.IntN(4)]
		p := randomProblem(r, classes)
		rule := rules{
			tried: 1 + r.IntN(len(p.bins)), depth: 1 + r.IntN(8), minLeaf: 1 + r.IntN(3), minSplit: 2 + r.IntN(4),
			random: r.IntN(3) == 0, ordered: seed%3 == 0, seed: seed,
		}
		rule.criterion = []Criterion{Gini, Entropy}[r.IntN(2)]
		if classes == 0 {
			rule.criterion = []Criterion{Variance, Poisson}[r.IntN(2)]
		}
		if r.IntN(3) == 0 {
			rule.minGain = 0.05
		}
		tab, err := p.table(rule.criterion == Poisson)
		require.NoError(t, err)
		sample := newSampler(Params{Sampling: []Sampling{Bootstrap, Subset, Whole}[r.IntN(3)], SampleShare: 0.8, Seed: seed})
		b := newBuilder(tab, rule, sample)
		for number := range 3 {
			f := &reference{p: p, t: tab, r: rule, s: newScorer(rule.criterion, tab), times: make([]uint8, len(p.label))}
			f.random = sharding.NewRandom(seed, purposeFeatures, -1, number)
			var rows []int
			for _, s := range p.spans {
				sample.draw(number, s.Shard, f.times[s.First:s.First+s.Rows])
			}
			for i, k := range f.times {
				if k > 0 && tab.w[i] > 0 {
					rows = append(rows, i)
				}
			}
			got := b.grow(context.Background(), number)
			splits += len(got.Nodes) / 2
			if len(rows) == 0 {
				require.Len(t, got.Nodes, 1)
				continue
			}
			e := tree.Ensemble{Features: make([]string, len(p.bins)), Outputs: max(1, classes), Base: make([]float64, max(1, classes)), Single: true, Trees: []tree.Tree{got}}
			require.NoError(t, e.Validate())
			t.Run(fmt.Sprintf("%d-%d", seed, number), func(t *testing.T) { requireSame(t, f, f.grow(rows, 0, rootKey), &got, 0) })
		}
	}
	require.Greater(t, splits, 5*referenceTrials)
}
