package grow

import (
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// The mean of a category of few rows is mostly chance. Among thousands of uninformative
// categories, those of the largest and the least mean look worth a split, the more so the fewer
// rows each has. The rows show how much is chance. Let z = g/h of a row and h its weight: the
// variance of z within categories is chance alone, and that of the means of categories is
// chance plus true differences. The moments of both (one-way analysis of variance; DerSimonian
// and Laird, "Meta-analysis in clinical trials", Controlled Clinical Trials 1986) estimate the
// variances within and among categories. The mean of a category of weight H is then shrunk: it
// counts with H/(H + within/among), and the mean of the others with the rest (best linear
// unbiased prediction; Robinson, "That BLUP is a good thing", Statistical Science 1991). Where
// categories differ by no more than chance they are not split at all.

// learnsCategories tells whether gradients of categories are shrunk, so that nodes need sums of
// squares.
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

// leastHessian is a share of the largest hessian. Squares are divided by no less than this, so
// that no single row of tiny weight dominates.
const leastHessian = 0x1p-10

// square sets squares to g²/h of each row, as integers whose sums over the job's rows are
// exact.
func (t *Target) square(rows int64) {
	mostG, least := t.max[0]*t.coarse.byG, t.max[1]*t.coarse.byH*leastHessian
	t.bySquare, t.squares = 1, kernel.Sized(t.squares, t.rows)
	if most := float64(mostG*mostG) / least; most > 0 && !math.IsInf(most, 1) {
		_, e := math.Frexp(most)
		t.bySquare = math.Ldexp(1, sumBits-bits.Len64(uint64(rows-1))-e)
	} else {
		clear(t.squares) // all gradients or all hessians are 0: there is nothing to learn
		return
	}
	for i := range t.squares {
		g, h := t.histogramPair(int32(i))
		x := float64(g)
		t.squares[i] = quantise(float64(x*x)/max(float64(h), least), t.bySquare)
	}
}

// sumSquares sums the squares of rows.
func (t *Target) sumSquares(rows []int32) (sum int64) {
	for _, r := range rows {
		sum += t.squares[r]
	}
	return sum
}

// certainty is the number of standard deviations, under chance alone, that are subtracted from
// the spread of means. It makes up for the choice of the best of many splits.
const certainty = 2

// shrink fills s.soft with the gradients of the categories of a node, then that of missing
// values, shrunk towards each other as far as they differ by chance. Their sum stays the same.
// It returns false if they differ by no more than chance. Gradients, hessians and squares are
// in units of the integers, which cancel out.
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
		return false // each row is a category
	}
	// Under chance alone, the share of the means in the total sum of squares has the beta
	// distribution with parameters a/2 and b/2. certainty of its standard deviations are
	// subtracted.
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

// draw fills s.soft. k is within/among: a category of weight k counts half with its own mean.
func (s *searcher) draw(f *bins.Feature, sums []int64, k float64) {
	w := s.scorer.width
	s.soft = kernel.Sized(s.soft, f.Bins+1)
	var freeG, freeH float64 // the parts that are shared among categories
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
