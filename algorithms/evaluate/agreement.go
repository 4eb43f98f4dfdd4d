package evaluate

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// agreement has the measures of how well clusters agree with true labels.
type agreement struct {
	ari, nmi, purity, homogeneity, completeness, v float64
}

// agreement computes the measures from c, whose true labels are truth and whose clusters are
// given. At least one weight in c is positive.
func (c *counts) agreement() agreement {
	var a agreement
	n := c.total
	best := make([]float64, len(c.labels))
	var pairs, mutual, pure sum
	for _, cell := range c.cells {
		best[cell.given] = max(best[cell.given], cell.weight)
		pairs.add(choose2(cell.weight))
		ratio := kernel.Log(cell.weight) - kernel.Log(c.truth[cell.truth]) - kernel.Log(c.given[cell.given]) + kernel.Log(n)
		mutual.add(float64(cell.weight / n * ratio))
	}
	for _, w := range best {
		pure.add(w)
	}
	a.purity = pure.value() / n

	// The adjusted Rand index: Hubert and Arabie, Comparing partitions, Journal of
	// Classification 2, 1985.
	truth, given := sumPairs(c.truth), sumPairs(c.given)
	expected, most := float64(truth*(given/choose2(n))), float64((truth+given)/2)
	a.ari = 1 // the value if 0/0 results: all rows, or no two rows, are together in both partitions
	switch {
	case math.IsInf(float64(choose2(n))+truth+given, 0): // the number of pairs exceeds float64
		a.ari = math.NaN()
	case most > expected || most < expected:
		a.ari = (pairs.value() - expected) / (most - expected)
	}

	// Homogeneity and completeness: Rosenberg and Hirschberg, V-Measure, EMNLP-CoNLL 2007.
	classes, clusters := entropy(c.truth, n), entropy(c.given, n)
	information := max(mutual.value(), 0)
	a.homogeneity, a.completeness = 1, 1
	if classes > 0 {
		a.homogeneity = min(information/classes, 1)
	}
	if clusters > 0 {
		a.completeness = min(information/clusters, 1)
	}
	if a.homogeneity+a.completeness > 0 {
		a.v = 2 * a.homogeneity * a.completeness / (a.homogeneity + a.completeness)
	}
	a.nmi = 1
	if classes+clusters > 0 {
		a.nmi = min(information/((classes+clusters)/2), 1)
	}
	return a
}

// choose2 returns the number of pairs among n rows.
func choose2(n float64) float64 { return n * (n - 1) / 2 }

func sumPairs(weights []float64) float64 {
	var s sum
	for _, w := range weights {
		s.add(choose2(w))
	}
	return s.value()
}

// entropy returns the entropy, in nats, of a distribution that is given by weights with the sum
// n.
func entropy(weights []float64, n float64) float64 {
	var s sum
	for _, w := range weights {
		if w > 0 {
			s.add(float64(w / n * (kernel.Log(n) - kernel.Log(w))))
		}
	}
	return max(s.value(), 0)
}
