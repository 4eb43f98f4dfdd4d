package gbdt

import (
	"math"
	"slices"
)

// pair has the margin and the weight of a row, for metrics that depend on the order of rows.
// The weight is negated for rows of the first class. Rows of weight 0 have no pair.
type pair struct{ margin, weight float64 }

// sortPairs sorts pairs by descending margin and then by descending weight, so that sums over
// them do not depend on the original order.
func sortPairs(pairs []pair) {
	slices.SortFunc(pairs, func(a, b pair) int {
		switch {
		case a.margin > b.margin:
			return -1
		case a.margin < b.margin:
			return 1
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
}

// appendPairs appends the pairs of the rows to dst.
func appendPairs(r *Rows, dst []float64) []float64 {
	for i, m := range r.Margin[0][:r.N] {
		w := r.weight(i)
		switch {
		case w == 0:
			continue
		case !(r.Label[i] > 0.5):
			w = -w
		}
		dst = append(dst, m, w)
	}
	return dst
}

// runs calls f for each run of equal margins, with the total weight of its positive and of its
// negative rows.
func runs(pairs []pair, f func(positive, negative float64)) {
	for i := 0; i < len(pairs); {
		m := pairs[i].margin
		var positive, negative float64
		for ; i < len(pairs) && pairs[i].margin == m; i++ {
			if w := pairs[i].weight; w > 0 {
				positive += w
			} else {
				negative -= w
			}
		}
		f(positive, negative)
	}
}

// areaUnderROC returns, among all pairs of a positive and a negative row, the share in which
// the positive row has the larger margin. A pair is weighted by the product of the rows'
// weights; a pair of equal margins counts half. The result is NaN if one of the classes has no
// rows.
func areaUnderROC(pairs []pair) float64 {
	var above, below, area float64 // above and below are the positive and negative weights so far
	runs(pairs, func(positive, negative float64) {
		area += float64(negative * (above + float64(positive/2)))
		above += positive
		below += negative
	})
	if above == 0 || below == 0 {
		return math.NaN()
	}
	return area / above / below
}

// averagePrecision returns the sum, over distinct margins, of the precision times the gain in
// recall. It returns NaN if there are no positive rows.
func averagePrecision(pairs []pair) float64 {
	var hits, all, sum float64
	runs(pairs, func(positive, negative float64) {
		hits += positive
		all += positive + negative
		if all > 0 {
			sum += float64(positive * (hits / all))
		}
	})
	if hits == 0 {
		return math.NaN()
	}
	return sum / hits
}

// rankMetric returns a function that adds up NDCG, or average precision if precision is true,
// over queries. Only the rows at the ranks from 1 to places count. Where rows of a query have
// equal margins, the function takes the mean over all orders of these rows. Queries without
// relevant rows are left out. The function has its own working memory.
func rankMetric(precision bool, places int) func(r *Rows, room, out []float64) {
	var l lists
	return func(r *Rows, _, out []float64) {
		for q := range len(r.Groups) - 1 {
			lo, hi := int(r.Groups[q]), int(r.Groups[q+1])
			score, label := r.Margin[0][lo:hi], r.Label[lo:hi]
			var v float64
			var ok bool
			if precision {
				v, ok = l.precision(score, label, places)
			} else {
				v, ok = l.ndcg(score, label, places)
			}
			if w := r.weight(lo); ok {
				out[0] += float64(w * v)
				out[1] += w
			}
		}
	}
}

// ndcg returns the discounted gain divided by the discounted gain of the best order of the
// rows. ok is false if no row has a gain.
func (l *lists) ndcg(score, label []float64, places int) (v float64, ok bool) {
	ideal := l.ideal(label, places)
	if ideal == 0 {
		return 0, false
	}
	order, discounts := l.sort(score, label), l.discounts(min(places, len(label)))
	var sum float64
	for i := 0; i < len(discounts); {
		first := i
		var gains, room float64
		for ; i < len(order) && score[order[i]] == score[order[first]]; i++ {
			gains += l.gains[order[i]]
			if i < len(discounts) {
				room += discounts[i]
			}
		}
		sum += float64(room * (gains / float64(i-first)))
	}
	return sum / ideal, true
}

// precision returns the average precision: the sum, over the relevant rows at the ranks from 1
// to places, of the precision of the ranking up to the row, divided by the smaller of places
// and the number of relevant rows. Rows with labels of 1 or more are relevant. ok is false if
// there are none.
func (l *lists) precision(score, label []float64, places int) (v float64, ok bool) {
	relevant := 0
	for _, y := range label {
		if y >= 1 {
			relevant++
		}
	}
	if relevant == 0 {
		return 0, false
	}
	order := l.sort(score, label)
	var sum, before float64 // before is the number of relevant rows before a run of equal scores
	for i := 0; i < min(places, len(order)); {
		first := i
		var own float64
		for ; i < len(order) && score[order[i]] == score[order[first]]; i++ {
			if label[order[i]] >= 1 {
				own++
			}
		}
		n := float64(i - first)
		for j := first; j < min(i, places) && own > 0; j++ {
			earlier := 0.0 // expected relevant rows of the run before row j, given that j is relevant
			if n > 1 {
				earlier = float64(j-first) * (own - 1) / (n - 1)
			}
			sum += own / n * (before + 1 + earlier) / float64(j+1)
		}
		before += own
	}
	return sum / float64(min(places, relevant)), true
}

// pairsOf returns the pairs in flat, to which appendPairs appended them.
func pairsOf(flat []float64) []pair {
	pairs := make([]pair, len(flat)/2)
	for i := range pairs {
		pairs[i] = pair{flat[2*i], flat[2*i+1]}
	}
	return pairs
}
