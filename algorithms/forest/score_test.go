package forest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// impurity computes a criterion by its definition, from the weights of classes or from weighted
// labels.
func impurity(c Criterion, weights, labels []float64) float64 {
	total, mean := 0.0, 0.0
	for i, w := range weights {
		total += w
		if labels != nil {
			mean += w * labels[i]
		}
	}
	mean /= total
	value := 0.0
	if c == Gini {
		value = 1
	}
	for i, w := range weights {
		p := w / total
		switch {
		case c == Gini:
			value -= p * p
		case c == Entropy && p > 0:
			value -= p * math.Log(p)
		case c == Variance:
			value += p * (labels[i] - mean) * (labels[i] - mean)
		case c == Poisson && labels[i] > 0:
			value += p * labels[i] * math.Log(labels[i]/mean)
		}
	}
	return value
}

// TestGainsAreThoseOfTheCriterion requires that the gain of a split is the weighted impurity of
// the node minus that of its children, by the definition of the criterion.
func TestGainsAreThoseOfTheCriterion(t *testing.T) {
	for seed := range uint64(200) {
		r := draws(seed)
		classes := []int{0, 2, 4}[seed%3]
		c := []Criterion{Gini, Entropy}[r.IntN(2)]
		if classes == 0 {
			c = []Criterion{Variance, Poisson}[r.IntN(2)]
		}
		n := 4 + r.IntN(20)
		p := problem{classes: classes}
		for i := range n {
			p.weight = append(p.weight, 0.25+float64(r.IntN(8))*0.25)
			label := float64(r.IntN(max(classes, 1)))
			if classes == 0 {
				label = float64(1+r.IntN(50)) / 8
			}
			p.label = append(p.label, label)
			_ = i
		}
		tab, err := p.table(c == Poisson)
		require.NoError(t, err)
		s := newScorer(c, tab)
		score := func(lo, hi int) (scored, weighted float64) {
			var g, w int64
			var total float64
			counts, weights := make([]int64, classes), make([]float64, classes)
			for i := lo; i < hi; i++ {
				w += int64(tab.w[i])
				total += p.weight[i]
				if classes <= 2 {
					g += tab.g[i]
				}
				if classes > 0 {
					counts[int(p.label[i])] += int64(tab.w[i])
					weights[int(p.label[i])] += p.weight[i]
				}
			}
			if classes == 0 {
				return s.pair(g, w), total * impurity(c, p.weight[lo:hi], p.label[lo:hi])
			}
			if classes == 2 {
				return s.pair(g, w), total * impurity(c, weights, nil)
			}
			rest := make([]int64, classes)
			all := s.counts(counts, w)
			require.Equal(t, all, s.rest(counts, rest, w))
			return all, total * impurity(c, weights, nil)
		}
		cut := 1 + r.IntN(n-1)
		all, before := score(0, n)
		left, one := score(0, cut)
		right, two := score(cut, n)
		require.InDelta(t, before-one-two, (left+right-all)*s.unit, 1e-9, "the gain must follow the definition of %v, %d classes", c, classes)
	}
}

func TestPoissonRefusesSidesWithoutLabels(t *testing.T) {
	s := scorer{criterion: Poisson}
	require.True(t, math.IsInf(s.pair(0, 3), -1))
}
