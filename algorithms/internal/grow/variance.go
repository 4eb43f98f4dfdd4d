package grow

import (
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// The mean gradient of a category with few rows is mostly due to chance. Among thousands of
// uninformative categories, splitting off the categories with the largest or the smallest means
// seems to have a gain, and this gain is larger the fewer rows the categories have. How much of
// the differences is due to chance can be estimated from the rows. Let a row have the value z =
// g/h and the weight h. The variance of z within categories is due to chance alone; the
// variance of the means of categories is due to chance and to true differences. The variances
// within and among categories are estimated by the method of moments (one-way analysis of
// variance; DerSimonian and Laird, "Meta-analysis in clinical trials", Controlled Clinical
// Trials 1986). The mean of a category of weight H is then shrunk towards the mean of all
// categories: its own mean gets the weight H/(H + within/among), and the common mean gets the
// rest (best linear unbiased prediction; Robinson, "That BLUP is a good thing", Statistical
// Science 1991). If the means of the categories differ by no more than chance, the node is not
// split by the feature.

// learnsCategories reports whether gradients of categories are shrunk for at least one feature
// of the layout, so that nodes need sums of squares.
func (g *Grower) learnsCategories(l *bins.Layout) bool {
	if !g.p.LearnCategories {
		return false
	}
	for i := range l.Features {
		if f := &l.Features[i]; f.Categorical && f.Bins > g.p.maxOneHot() {
			return true
		}
	}
	return false
}

// In g²/h, the divisor is replaced by leastHessian times the largest hessian if h is smaller,
// so that no single row of tiny weight dominates a sum of squares.
const leastHessian = 0x1p-10

// square sets t.squares to g²/h of each row, multiplied by t.bySquare and rounded to an
// integer. t.bySquare is such that sums over the rows of the job cannot overflow. rows is the
// number of rows of the job.
func (t *Target) square(rows int64) {
	mostG, least := t.max[0]*t.coarse.byG, t.max[1]*t.coarse.byH*leastHessian
	t.bySquare, t.squares = 1, kernel.Sized(t.squares, t.rows)
	if most := float64(mostG*mostG) / least; most > 0 && !math.IsInf(most, 1) {
		_, e := math.Frexp(most)
		t.bySquare = math.Ldexp(1, sumBits-bits.Len64(uint64(rows-1))-e)
	} else {
		clear(t.squares) // if all gradients or all hessians are 0, categories do not differ
		return
	}
	for i := range t.squares {
		g, h := t.histogramPair(int32(i))
		x := float64(g)
		t.squares[i] = quantise(float64(x*x)/max(float64(h), least), t.bySquare)
	}
}

// sumSquares returns the sum of t.squares over rows.
func (t *Target) sumSquares(rows []int32) (sum int64) {
	for _, r := range rows {
		sum += t.squares[r]
	}
	return sum
}

// certainty is the number of standard deviations that are subtracted from the sum of squares
// between categories. It compensates for the fact that the best of many splits is chosen. The
// standard deviation is computed under the hypothesis that all differences are due to chance.
const certainty = 2

// shrink sets s.soft to the shrunk gradients of the categories of a node, followed by the
// shrunk gradient of missing values. The sum of the gradients does not change. shrink returns
// false if the categories differ by no more than chance. Gradients, hessians and squares are
// computed from the integers; the units cancel out.
func (s *searcher) shrink(f *bins.Feature, sums []int64) bool {
	w := s.scorer.width
	groups, between, squares := 0, 0.0, 0.0
	for b := range f.Bins + 1 {
		bin := sums[b*w:][:w]
		if zero(bin) {
			continue
		}
		groups++
		if g, h := float64(bin[0]), float64(bin[1]); h > 0 {
			between += float64(g*g) / h
			squares += float64(h * h)
		}
	}
	g, h := float64(s.node[0]), float64(s.node[1])
	free := s.rows - int64(groups)
	if free < 1 || !(h > 0) {
		return false // no two rows have the same category, or no row has a weight
	}
	// If all differences are due to chance, between/all has the beta distribution with
	// parameters a/2 and b/2. deviation is the standard deviation of that distribution.
	mean := float64(g*g) / h
	between -= mean
	all := max(s.squares-mean, between)
	a, b := float64(groups-1), float64(free)
	deviation := math.Sqrt(float64(2*a)*b/(a+b+2)) / (a + b)
	between -= float64(certainty * float64(deviation*all))
	within := (all - between) / b
	among := between - float64(a*within)
	spread := h - squares/h
	if !(among > 0) || !(spread > 0) {
		return false
	}
	s.draw(f, sums, float64(within*spread)/among)
	return true
}

// draw sets s.soft to the shrunk gradients. k is within/among. For a category whose sum of
// hessians is k, the category's own mean and the common mean have equal weights.
func (s *searcher) draw(f *bins.Feature, sums []int64, k float64) {
	w := s.scorer.width
	s.soft = kernel.Sized(s.soft, f.Bins+1)
	var freeG, freeH float64 // sums of gradients and hessians from which the common mean is computed
	for b := range f.Bins + 1 {
		g, h := float64(sums[b*w]), float64(sums[b*w+1])
		if s.soft[b] = g; h > 0 {
			part := k / (h + k)
			freeG += float64(g * part)
			freeH += float64(h * part)
		}
	}
	if !(freeH > 0) {
		return
	}
	mean := freeG / freeH
	for b := range f.Bins + 1 {
		if g, h := float64(sums[b*w]), float64(sums[b*w+1]); h > 0 {
			all := float64(mean * h)
			s.soft[b] = all + float64((g-all)*(h/(h+k)))
		}
	}
}
