package linearmodel

import (
	"math"
	"slices"
)

// alike is the part of its square length that a feature must have besides the features
// before it, so as not to count as determined by them.
const alike = 1e-11

// involved is how much of a feature, in units of their lengths, another must have in it that
// is determined by the first and more, for the two to share coefficients: more than what alike
// lets pass for rounding.
const involved = 1e-4

// covariance returns the inverse of a symmetric matrix, the lower triangle row by row, over
// those of its n rows and columns that are not determined by the ones that come before
// them in the given order; elsewhere it is 0. kept tells which these are, and alone which of
// them determine no other. It is Gauss' elimination by sweeps (Goodnight, A tutorial on the
// SWEEP operator, The American Statistician 33, 1979), which leaves a pivot that has nearly
// vanished alone, and in its column what the kept rows make it of.
func covariance(packed []float64, n int, order []int) (inverse []float64, kept, alone []bool) {
	full, first := make([]float64, n*n), make([]float64, n)
	for a := range n {
		for b := range a + 1 {
			full[a*n+b] = packed[a*(a+1)/2+b]
			full[b*n+a] = full[a*n+b]
		}
		first[a] = full[a*n+a]
	}
	kept = make([]bool, n)
	for _, k := range order {
		pivot := full[k*n+k]
		if !(pivot > alike*first[k]) || !(first[k] > 0) || math.IsInf(pivot, 0) {
			continue
		}
		kept[k] = true
		sweep(full, n, k)
	}
	alone = slices.Clone(kept)
	for k := range n {
		for j := range n {
			if kept[k] && !kept[j] && first[j] > 0 && math.Abs(full[k*n+j])*math.Sqrt(first[k]) > involved*math.Sqrt(first[j]) {
				alone[k] = false
			}
		}
	}
	inverse = make([]float64, len(packed))
	for a := range n {
		for b := range a + 1 {
			if kept[a] && kept[b] {
				// The sweeps of all kept rows give the negative inverse; its halves differ by
				// roundings.
				inverse[a*(a+1)/2+b] = -0.5 * (full[a*n+b] + full[b*n+a])
			}
		}
	}
	return inverse, kept, alone
}

// sweep exchanges variable k.
func sweep(full []float64, n, k int) {
	own := full[k*n : (k+1)*n]
	pivot := own[k]
	for i := range n {
		if i == k {
			continue
		}
		row := full[i*n : (i+1)*n]
		factor := row[k] / pivot
		if factor == 0 {
			continue
		}
		for j := range row {
			if j != k {
				row[j] -= float64(factor * own[j])
			}
		}
		row[k] = factor
	}
	for j := range own {
		own[j] /= pivot
	}
	own[k] = -1 / pivot
}

// inference makes the table of a fit with one margin, nil where it is not defined. scale
// turns the inverse of the mean second derivatives into a covariance, given the residual
// degrees of freedom; tail gives the p value of a statistic.
func (f *Fit) inference(statistic string, scale func(freedom float64) float64, tail func(statistic, freedom float64) float64) (*Inference, error) {
	n, d := len(f.Result.Parameters), f.Facts.Dim()
	// The intercept goes first, so that a constant feature is determined by it and not the
	// other way around.
	var order []int
	if n > d {
		order = append(order, d)
	}
	for j := range n {
		if j < d || j > d {
			order = append(order, j)
		}
	}
	inverse, kept, alone := covariance(f.Result.Information, n, order)
	if n > d && !slices.Equal(kept, alone) {
		// What features share, less their means, may be the intercept's as well.
		alone[d] = false
	}
	table := &Inference{Statistic: statistic}
	for j, k := range kept {
		if k {
			table.Rank++
		} else if j < d {
			table.Collinear = append(table.Collinear, j)
		}
	}
	table.Freedom = float64(f.Facts.Weighing) - float64(table.Rank)
	by := scale(table.Freedom)
	original, err := f.Objective.Covariance(f.Facts, inverse)
	if err != nil {
		return nil, err
	}
	for j := range n {
		t := Term{Name: "intercept"}
		if j < d {
			t.Name, t.Estimate = f.Model.FeatureName(j), f.Model.Coefficients[0][j]
		} else {
			t.Estimate = f.Model.Intercepts[0]
		}
		variance := original[j*(j+1)/2+j] * by
		if alone[j] && variance >= 0 && finite(variance) {
			se := math.Sqrt(variance)
			if z := t.Estimate / se; finite(z) {
				t.Defined, t.StdError, t.Statistic, t.PValue = true, se, z, tail(z, table.Freedom)
			}
		}
		table.Terms = append(table.Terms, t)
	}
	return table, nil
}

// TTable makes the table of a least squares fit without a penalty: the residual variance
// is estimated from the rows. It is nil where there are no residual degrees of freedom.
func (f *Fit) TTable() (*Inference, error) {
	if !f.tabled() {
		return nil, nil
	}
	t, err := f.inference("t", func(freedom float64) float64 {
		// σ²/W·H⁻¹, with σ² = 2·W·loss/freedom.
		return 2 * f.Model.Summary.Loss / freedom
	}, StudentTail)
	if err != nil || t.Freedom > 0 {
		return t, err
	}
	for i := range t.Terms {
		t.Terms[i] = Term{Name: t.Terms[i].Name, Estimate: t.Terms[i].Estimate}
	}
	return t, nil
}

// ZTable makes the table of a maximum likelihood fit without a penalty. dispersion, 1 for
// logistic regression, multiplies the variances.
func (f *Fit) ZTable(dispersion func(freedom float64) float64) (*Inference, error) {
	if !f.tabled() {
		return nil, nil
	}
	return f.inference("z", func(freedom float64) float64 {
		by := 1 / f.Model.Summary.Weight
		if dispersion != nil {
			by *= dispersion(freedom)
		}
		return by
	}, func(z, _ float64) float64 { return NormalTail(z) })
}

// tabled reports whether a table is defined.
func (f *Fit) tabled() bool {
	return f.Result.Information != nil && !f.Params.Penalised() && f.Model.Margins() == 1
}
