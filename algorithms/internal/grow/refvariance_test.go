package grow

import (
	"math"
	"math/big"
)

// soften returns the shrunk gradients of the categories of a node, and of missing values. They
// are the best linear unbiased predictions of z = g/h with weight h. The variances within and
// among categories are estimated from single rows by the method of moments. soften returns nil
// if categories differ by no more than chance.
func (b *builder) soften(v *refNode, missing int, sums map[int]exact) map[int]float64 {
	k, ok := b.ratio(v, missing, sums)
	if !ok {
		return nil
	}
	soft := map[int]float64{}
	var freeG, freeH float64
	for bin := range missing + 1 {
		e, ok := sums[bin]
		if !ok {
			continue
		}
		soft[bin] = e.float(0)
		if h := e.float(1); h > 0 {
			freeG += float64(e.float(0) * (k / (h + k)))
			freeH += float64(h * (k / (h + k)))
		}
	}
	if freeH <= 0 {
		return soft
	}
	for bin, e := range sums {
		if h := e.float(1); h > 0 {
			mean := float64(freeG / freeH * h)
			soft[bin] = mean + float64((e.float(0)-mean)*(h/(h+k)))
		}
	}
	return soft
}

// ratio returns the variance within categories divided by the variance among categories. It
// returns false if the variance among categories is not positive.
func (b *builder) ratio(v *refNode, missing int, sums map[int]exact) (float64, bool) {
	var between, squares float64
	for bin := range missing + 1 {
		if e, ok := sums[bin]; ok && e.float(1) > 0 {
			between += float64(e.float(0)*e.float(0)) / e.float(1)
			squares += float64(e.float(1) * e.float(1))
		}
	}
	rows, groups := len(v.rows), len(sums)
	g, h := v.sums.float(0), v.sums.float(1)
	if rows <= groups || h <= 0 {
		return 0, false
	}
	between -= float64(g*g) / h
	all := max(b.squares(v.rows)-float64(g*g)/h, between)
	p, q := float64(groups-1), float64(rows-groups)
	between -= float64(certainty * float64(math.Sqrt(float64(2*p)*q/(p+q+2))/(p+q)*all))
	within := (all - between) / q
	among := between - float64(p*within)
	spread := h - squares/h
	return float64(within*spread) / among, among > 0 && spread > 0
}

// squares returns Σ g²/h over rows. Each term is rounded to a multiple of a unit, so that the
// sum over all rows is exact.
func (b *builder) squares(rows []int32) float64 {
	all := len(b.coarse)
	var most [2]float64
	for r := range all {
		for i := range most {
			most[i] = max(most[i], math.Abs([2][]float64{b.x.g[b.target], b.x.h[b.target]}[i][r]))
		}
	}
	mostG, least := most[0]/b.unit[0], most[1]/b.unit[1]/1024
	top := float64(mostG*mostG) / least
	if !(top > 0) || math.IsInf(top, 1) {
		return 0
	}
	e, lenBits := 0, 0
	for ; math.Ldexp(1, e) <= top; e++ {
	}
	for 1<<lenBits < all {
		lenBits++
	}
	unit := math.Ldexp(1, e+lenBits-62)
	sum := new(big.Int)
	for _, r := range rows {
		g, h := b.coarse[r].float(0), b.coarse[r].float(1)
		sum.Add(sum, rounded(float64(g*g)/max(h, least), unit))
	}
	return float64(sum.Int64()) * unit
}
