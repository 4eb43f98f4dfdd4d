package grow

import (
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// A category of few rows has the mean that chance gives these. Among thousands of them that
// say nothing, those of the largest and of the least mean look worth a split, and more so the
// fewer rows each has. How much of what is seen is chance the rows themselves show: with z =
// g/h of a row and h its weight, the spread of z within categories is chance alone, that of
// their means is chance and what they truly differ by. The moments of both (one way analysis
// of variance; DerSimonian and Laird, "Meta-analysis in clinical trials", Controlled Clinical
// Trials 1986) estimate the variances, within and among; and a category of weight H counts by
// H/(H + within/among) with its own mean, else with that of the others (best linear unbiased
// prediction; Robinson, "That BLUP is a good thing", Statistical Science 1991). Where
// categories differ by no more than chance they are not split at all.

// learnsCategories tells whether nodes need the sums of squares that this takes.
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

// leastHessian is the part of the largest hessian that squares are divided by at least: a
// single row of next to no weight is to say nothing of all.
const leastHessian = 0x1p-10

// square makes g²/h of all rows, as integers whose sums over the job's rows are exact.
func (t *Target) square(rows int64) {
	mostG, least := t.max[0]*t.coarse.byG, t.max[1]*t.coarse.byH*leastHessian
	t.bySquare, t.squares = 1, sized(t.squares, t.rows)
	if most := float64(mostG*mostG) / least; most > 0 && !math.IsInf(most, 1) {
		_, e := math.Frexp(most)
		t.bySquare = math.Ldexp(1, sumBits-bits.Len64(uint64(rows-1))-e)
	} else {
		clear(t.squares) // all gradients are 0, or all hessians: there is nothing to learn
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

// certainty is how many standard deviations of what chance makes of it are taken off the spread
// of means: a tree looks at many nodes, and takes the best.
const certainty = 2

// shrink fills s.soft with the gradients of the categories of a node, and of what is missing
// behind them, drawn towards each other as far as they differ by chance; their sum stays. It
// is false where they differ by no more. Gradients, hessians and squares are those of the
// integers: their units cancel out.
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
	// By chance the part of means in all squares is of the beta distribution with these degrees
	// of freedom, halved. It is taken for less than it is by so many standard deviations.
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

// draw fills s.soft where k is the weight of which a category counts by half.
func (s *searcher) draw(f *bins.Feature, sums []int64, k float64) {
	w := s.scorer.width
	s.soft = sized(s.soft, f.Bins+1)
	var freeG, freeH float64 // what is not a category's own
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
