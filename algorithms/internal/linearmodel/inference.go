package linearmodel

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// A feature is treated as determined by the features before it if these features explain all of
// its squared length, except for a fraction of at most collinearTol.
const collinearTol = 1e-11

// Suppose that a feature is a linear combination of other features. One of these other features
// is treated as a part of the combination only if its term is longer than sharingTol times the
// length of the feature. The coefficients of the two features are then not determined
// separately. sharingTol is larger than the rounding errors that collinearTol allows.
const sharingTol = 1e-4

// covariance returns the inverse of a symmetric matrix of n rows. The matrix and the inverse
// are lower triangles, stored row by row. Rows are processed in the given order. A row that is
// determined by the rows before it is left out, together with its column; the inverse is 0
// there. kept[i] is set if row i is not left out. alone[i] is set if row i is kept and no row
// that is left out depends on it. The method is Gaussian elimination by sweeps (Goodnight, A
// tutorial on the SWEEP operator, The American Statistician 33, 1979). A row whose pivot is
// nearly 0 is not swept. After the sweeps of the other rows, its column has the coefficients
// that express this row by the kept rows.
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
		if !(pivot > collinearTol*first[k]) || !(first[k] > 0) || math.IsInf(pivot, 0) {
			continue
		}
		kept[k] = true
		sweep(full, n, k)
	}
	alone = slices.Clone(kept)
	for k := range n {
		for j := range n {
			if kept[k] && !kept[j] && first[j] > 0 && math.Abs(full[k*n+j])*math.Sqrt(first[k]) > sharingTol*math.Sqrt(first[j]) {
				alone[k] = false
			}
		}
	}
	inverse = make([]float64, len(packed))
	for a := range n {
		for b := range a + 1 {
			if kept[a] && kept[b] {
				// The sweeps of all kept rows give the negative inverse. Its two triangles
				// differ by rounding errors.
				inverse[a*(a+1)/2+b] = -0.5 * (full[a*n+b] + full[b*n+a])
			}
		}
	}
	return inverse, kept, alone
}

// sweep applies the sweep operator to row and column k.
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

// inference returns the table of standard errors of a fit with one margin. statistic is the
// name of the statistic, "t" or "z". The covariance is scale(freedom) times the inverse of the
// mean second derivatives, where freedom is the residual degrees of freedom. tail returns the p
// value of a statistic.
func (f *Fit) inference(statistic string, scale func(freedom float64) float64, tail func(statistic, freedom float64) float64) (*Inference, error) {
	n, d := len(f.Result.Parameters), f.Facts.Dim()
	// The intercept is processed first, so that a constant feature is determined by the
	// intercept, and not the intercept by the feature.
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
		// The parameters belong to centred features. So the intercept depends on the
		// coefficients of collinear features, which are not determined separately.
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
		if alone[j] && variance >= 0 && kernel.Finite(variance) {
			se := math.Sqrt(variance)
			if z := t.Estimate / se; kernel.Finite(z) {
				t.Defined, t.StdError, t.Statistic, t.PValue = true, se, z, tail(z, table.Freedom)
			}
		}
		table.Terms = append(table.Terms, t)
	}
	return table, nil
}

// TTable returns the table of standard errors of a least squares fit without a penalty. The
// residual variance is estimated from the rows. The result is nil if the table is not defined.
// If there are no residual degrees of freedom, the table has only the estimates.
func (f *Fit) TTable() (*Inference, error) {
	if !f.tabled() {
		return nil, nil
	}
	t, err := f.inference("t", func(freedom float64) float64 {
		// The covariance is σ²/W·H⁻¹, where W is the total weight and σ² = 2·W·loss/freedom.
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

// ZTable returns the table of standard errors of a maximum likelihood fit without a penalty.
// The result is nil if the table is not defined. dispersion returns a factor for the variances;
// nil means the factor 1, as in logistic regression.
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

// tabled reports whether a table of standard errors is defined for the fit.
func (f *Fit) tabled() bool {
	return f.Result.Information != nil && !f.Params.Penalised() && f.Model.Margins() == 1
}
