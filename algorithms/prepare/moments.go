package prepare

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// featureName returns the name of a feature for messages: the name of its column and, for a
// vector column, the number of its component.
func (f *facts) featureName(feature int, names []string) string {
	c := f.columnOf(feature)
	if f.Size[c] == 1 {
		return fmt.Sprintf("column %q", names[c])
	}
	return fmt.Sprintf("component %d of column %q", feature-f.Offset[c], names[c])
}

// columnOf returns the column of a feature.
func (f *facts) columnOf(feature int) int {
	c := len(f.Offset) - 1
	for feature < f.Offset[c] || f.Size[c] == 0 {
		c--
	}
	return c
}

// absent returns, for each feature, the number of rows whose sparse vector does not list the
// feature; the feature is 0 in these rows. It also sets f.Zeros to the weight of these rows.
// That weight is exactly 0 if there are no such rows, even if sums of weights were rounded.
func (f *facts) absent(sparse []bool, listed, weight []float64) []float64 {
	zeros := make([]float64, f.Dim)
	f.Zeros = make([]float64, f.Dim)
	for c := range f.Size {
		if sparse[c] {
			for j := f.Offset[c]; j < f.Offset[c]+f.Size[c]; j++ {
				zeros[j] = float64(f.Present[c]) - listed[j]
				if zeros[j] > 0 {
					f.Zeros[j] = max(f.PresentWeight[c]-weight[j], 0)
				}
			}
		}
	}
	return zeros
}

// moments returns the pass that computes counts, means, and least and largest values. sparse[c]
// is true if column c has sparse vectors. needed[c] is true if column c must have a value; if
// needed is nil, all columns must.
func moments(names []string, sparse, needed []bool) pass {
	return pass{
		name: "moments",
		size: func(f *facts) (int, int) { return 5 * f.Dim, 2 * f.Dim },
		sum: func(w *work, out []float64) error {
			d := w.facts.Dim
			err := w.values(func(j int, v float64) {
				out[j]++
				out[d+j] += float64(w.weight * v)
				out[3*d+j] += w.weight
			})
			if err != nil {
				return err
			}
			// The number of listed entries, including missing values, is subtracted from the
			// number of rows to get the number of entries that are not listed.
			return w.each(func(row []model.Cell) error {
				for c := range row {
					if row[c].Kind == model.SparseCell {
						for _, j := range row[c].Indices {
							at := w.facts.Offset[c] + int(j)
							out[2*d+at]++
							out[4*d+at] += w.weight
						}
					}
				}
				return nil
			})
		},
		most: func(w *work, out []float64) error {
			d := w.facts.Dim
			return w.values(func(j int, v float64) {
				out[j] = max(out[j], v)
				out[d+j] = max(out[d+j], -v)
			})
		},
		finish: func(f *facts, sums, most []float64) error {
			d := f.Dim
			zeros := f.absent(sparse, sums[2*d:3*d], sums[4*d:])
			f.Total, f.Unit = make([]float64, d), make([]float64, d)
			f.Count, f.Mean, f.Least, f.Most = make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d)
			for j := range d {
				f.Count[j] = sums[j] + zeros[j]
				f.Total[j] = sums[3*d+j] + f.Zeros[j]
				if f.Count[j] == 0 {
					if needed != nil && !needed[f.columnOf(j)] {
						continue
					}
					return fmt.Errorf("%s has no value: every row is null or NaN", f.featureName(j, names))
				}
				f.Mean[j] = sums[d+j] / f.Total[j]
				f.Least[j], f.Most[j] = -most[d+j], most[j]
				if zeros[j] > 0 && sums[j] == 0 {
					f.Least[j], f.Most[j] = 0, 0
				} else if zeros[j] > 0 {
					f.Least[j], f.Most[j] = min(f.Least[j], 0), max(f.Most[j], 0)
				}
				if f.Least[j] == f.Most[j] {
					f.Mean[j] = f.Least[j] // exact, even if the sum was rounded
				} else if sums[d+j]-sums[d+j] != 0 {
					return fmt.Errorf("the sum over %s exceeds the range of float64: scale it down", f.featureName(j, names))
				}
				f.Least[j], f.Most[j], f.Mean[j] = f.Least[j]+0, f.Most[j]+0, f.Mean[j]+0 // no -0
				f.Unit[j] = unitOf(max(f.Most[j]-f.Mean[j], f.Mean[j]-f.Least[j]))
			}
			return nil
		},
	}
}

// deviations returns the pass that sums the squared distances to the means; it runs after
// moments. The distances of a feature are divided by a power of two near the largest distance,
// so that no square exceeds or underflows float64. If the squares are in range without the
// division, the division does not change the result.
func deviations(names []string) pass {
	return pass{
		name: "deviations",
		size: func(f *facts) (int, int) { return f.Dim, 0 },
		sum: func(w *work, out []float64) error {
			mean, unit := w.facts.Mean, w.facts.Unit
			return w.values(func(j int, v float64) {
				x := (v - mean[j]) / unit[j]
				out[j] += float64(w.weight * float64(x*x))
			})
		},
		finish: func(f *facts, sums, _ []float64) error {
			f.Deviation = make([]float64, f.Dim)
			for j := range f.Deviation {
				squares := sums[j]
				if f.Zeros[j] > 0 {
					x := f.Mean[j] / f.Unit[j]
					squares += float64(float64(x*x) * f.Zeros[j])
				}
				f.Deviation[j] = float64(math.Sqrt(squares/f.Total[j]) * f.Unit[j])
				if f.Deviation[j]-f.Deviation[j] != 0 {
					return fmt.Errorf("the variance of %s exceeds the range of float64: scale it down", f.featureName(j, names))
				}
			}
			return nil
		},
	}
}

// unitOf returns the largest power of two that is at most distance, or 1 if distance is 0.
func unitOf(distance float64) float64 {
	if distance == 0 {
		return 1
	}
	_, exponent := math.Frexp(distance)
	return math.Ldexp(1, exponent-1)
}

// covarianceRows is the number of rows that the covariance pass processes together. Each row of
// the triangular matrix stays in the cache while the products of these rows are added to it.
// The result does not depend on covarianceRows, because the products are added to each entry in
// the order of the rows.
const covarianceRows = 64

// covariance returns the pass that sums the products of the distances to the means; it runs
// after moments.
func covariance(names []string) pass {
	return pass{
		name: "covariance",
		size: func(f *facts) (int, int) { return f.Dim * (f.Dim + 1) / 2, 0 },
		sum: func(w *work, out []float64) error {
			d := w.facts.Dim
			if w.scratch == nil {
				w.scratch = make([]float64, covarianceRows*(d+1))
			}
			x, weights := w.scratch[:covarianceRows*d], w.scratch[covarianceRows*d:]
			n := 0
			err := w.each(func(row []model.Cell) error {
				if n == covarianceRows {
					addProducts(x, weights, n, d, out)
					n = 0
				}
				x := x[n*d : (n+1)*d]
				weights[n] = w.weight
				n++
				return center(row, w.facts.Size, w.facts.Mean, x, names)
			})
			if err == nil {
				addProducts(x, weights, n, d, out)
			}
			return err
		},
		finish: func(f *facts, sums, _ []float64) error {
			if kernel.NonFinite(sums) >= 0 {
				return fmt.Errorf("a covariance exceeds the range of float64: scale the columns down")
			}
			f.Covariance = sums
			return nil
		},
	}
}

// addProducts adds the weighted products of n rows of d features to an upper triangle.
func addProducts(x, weights []float64, n, d int, out []float64) {
	for i := range d {
		for r := range n {
			row := x[r*d : (r+1)*d]
			kernel.Axpy(weights[r]*row[i], row[i:], out[:d-i])
		}
		out = out[d-i:]
	}
}

// center writes the features of a row minus their means to x. A missing value is an error.
func center(row []model.Cell, size []int, mean, x []float64, names []string) error {
	at := 0
	for c, n := range size {
		to, from := x[at:at+n], mean[at:at+n]
		if err := flatten(&row[c], to); err != nil {
			return fmt.Errorf("column %q: %w", names[c], err)
		}
		for j := range to {
			to[j] -= from[j]
		}
		at += n
	}
	return nil
}

// flatten writes the components of a cell to the slice to. A missing value is an error.
func flatten(c *model.Cell, to []float64) error {
	switch c.Kind {
	case model.DenseCell:
		if len(c.Values) != len(to) {
			return fmt.Errorf("it has %d components, want %d", len(c.Values), len(to))
		}
		copy(to, c.Values)
	case model.SparseCell:
		if err := c.CheckSparse(len(to)); err != nil {
			return err
		}
		clear(to)
		for k, j := range c.Indices {
			to[j] = c.Values[k]
		}
	default:
		v, ok := c.Number()
		if !ok {
			return fmt.Errorf("it is %s: want a number; an imputer fills nulls in", c.Kind)
		}
		to[0] = v
	}
	for j, v := range to {
		if v != v {
			return fmt.Errorf("component %d is NaN: an imputer fills it in", j)
		}
	}
	return nil
}
