package gbdt

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// maxRelevance is the largest label of rankings. The gain of a row is 2^label − 1.
const maxRelevance = 31

// lambdaMART is the objective LambdaRank (Burges, "From RankNet to LambdaRank to LambdaMART",
// MSR-TR-2010-82). Each pair of rows of a query with different labels has the logistic loss of
// the difference of their margins. The loss is weighted by the change of the query's NDCG that
// would result if the two rows swapped places. A pair counts only if at least one of its rows
// is among the first o.truncation places.
type lambdaMART struct {
	truncation int
	normalize  bool
	lists      lists
}

func newLambdaMART(truncation int, normalize bool) *lambdaMART {
	return &lambdaMART{truncation: truncation, normalize: normalize}
}

func (*lambdaMART) target(*Rows, int, int) float64 { return 0 }
func (*lambdaMART) base(float64) float64           { return 0 }
func (*lambdaMART) link() Link                     { return Identity }

func (*lambdaMART) check(r *Rows, i int) error {
	if y := r.Label[i]; !(y >= 0 && y <= maxRelevance) {
		return fmt.Errorf("the label is %v: want a relevance of 0 to %d", y, maxRelevance)
	}
	return nil
}

func (o *lambdaMART) gradients(r *Rows, grad, hess [][]float64) error {
	g, h := grad[0][:r.N], hess[0][:r.N]
	clear(g)
	clear(h)
	for q := range len(r.Groups) - 1 {
		lo, hi := int(r.Groups[q]), int(r.Groups[q+1])
		o.query(r.Margin[0][lo:hi], r.Label[lo:hi], r.weight(lo), g[lo:hi], h[lo:hi])
	}
	return nil
}

// query adds the gradients and hessians of one query to g and h.
func (o *lambdaMART) query(score, label []float64, weight float64, g, h []float64) {
	ideal := o.lists.ideal(label, o.truncation)
	if ideal == 0 || len(label) < 2 {
		return
	}
	order, gains, discounts := o.lists.sort(score, label), o.lists.gains, o.lists.discounts(len(label))
	spread := score[order[0]] != score[order[len(order)-1]]
	var total float64
	for a := 0; a < len(order)-1 && a < o.truncation; a++ {
		for b := a + 1; b < len(order); b++ {
			up, down := order[a], order[b]
			if label[up] == label[down] {
				continue
			}
			change := (discounts[a] - discounts[b]) / ideal
			if label[up] < label[down] {
				up, down = down, up
			}
			change *= gains[up] - gains[down]
			lead := score[up] - score[down]
			if o.normalize && spread {
				change /= 0.01 + max(lead, -lead)
			}
			p := kernel.Sigmoid(-lead)
			pull, curve := float64(p*change), float64(p*(1-p)*change)
			g[up] -= pull
			g[down] += pull
			h[up] += curve
			h[down] += curve
			total += float64(2 * pull)
		}
	}
	factor := weight
	if o.normalize && total > 0 {
		factor *= kernel.Log2(1+total) / total
	}
	for i := range g {
		g[i] *= factor
		h[i] *= factor
	}
}

// lists is working memory for the rows of one query at a time.
type lists struct {
	order    []int32
	gains    []float64 // gain of each row
	discount []float64
	best     []float64
}

// sort returns the indices of the rows in descending order of their scores, and sets gains. The
// sort is stable.
func (l *lists) sort(score, label []float64) []int32 {
	l.order, l.gains = l.order[:0], l.gains[:0]
	for i, y := range label {
		l.order = append(l.order, int32(i))
		l.gains = append(l.gains, gain(y))
	}
	slices.SortFunc(l.order, func(a, b int32) int {
		switch {
		case score[a] > score[b]:
			return -1
		case score[a] < score[b]:
			return 1
		}
		return int(a) - int(b)
	})
	return l.order
}

// gain returns 2^label − 1.
func gain(label float64) float64 { return kernel.Exp2(label) - 1 }

// discounts returns 1/log2(1+place) for the places 1 to n.
func (l *lists) discounts(n int) []float64 {
	for i := len(l.discount); i < n; i++ {
		l.discount = append(l.discount, 1/kernel.Log2(float64(2+i)))
	}
	return l.discount[:n]
}

// ideal returns the discounted gain of the rows at the ranks from 1 to places, if the labels
// are in the best order.
func (l *lists) ideal(label []float64, places int) float64 {
	l.best = append(l.best[:0], label...)
	slices.Sort(l.best)
	var sum float64
	for i, d := range l.discounts(min(places, len(label))) {
		sum += float64(d * gain(l.best[len(label)-1-i]))
	}
	return sum
}
