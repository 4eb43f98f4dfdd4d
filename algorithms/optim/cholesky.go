package optim

import (
	"math"
)

// cholesky finds Newton directions. Only one subtask has the factor: the matrix is the
// same on all, and the direction is small.
type cholesky struct {
	n      int
	factor []float64 // lower triangle, row by row
}

func newCholesky(n int, solves bool) *cholesky {
	c := &cholesky{n: n}
	if solves {
		c.factor = make([]float64, triangle(n))
	}
	return c
}

// solve sets out to -(H + τ·I)⁻¹·g, where H is packed/weight and the penalty's curvature.
// τ is 0 where H is safely positive definite, else the first of a growing row that makes
// it so (Nocedal and Wright, Numerical Optimization, 2nd ed., algorithm 3.3).
func (c *cholesky) solve(packed []float64, weight float64, p *penalty, g, out []float64) {
	var largest, least float64
	for i := range c.n {
		h := c.diagonal(packed, weight, p, i)
		largest, least = max(largest, math.Abs(h)), min(least, h)
	}
	shift := 0.0
	for range 64 {
		c.load(packed, weight, p, shift)
		if c.decompose(float64(c.n) * 0x1p-52 * (largest + shift)) {
			break
		}
		shift = max(10*shift, 1e-12*largest, -1.5*least, 1e-300)
	}
	c.substitute(g, out)
}

// diagonal returns an element of the diagonal of H.
func (c *cholesky) diagonal(packed []float64, weight float64, p *penalty, i int) float64 {
	return packed[triangle(i)+i]/weight + float64(float64(p.l2*p.factors[i])*p.factors[i])
}

// load puts H + shift·I where the factor will be.
func (c *cholesky) load(packed []float64, weight float64, p *penalty, shift float64) {
	for i, h := range packed[:triangle(c.n)] {
		c.factor[i] = h / weight
	}
	for i := range c.n {
		c.factor[triangle(i)+i] = c.diagonal(packed, weight, p, i) + shift
	}
}

// row returns a row of the factor, up to its diagonal.
func (c *cholesky) row(i int) []float64 { return c.factor[triangle(i) : triangle(i)+i+1] }

// band is how many rows of the factor are made together: they and a row before them stay
// in the nearest cache, and every earlier row is read once for all of them.
const band = 32

// decompose turns what was loaded into its factor, and reports whether it is safely
// positive definite: every pivot is above floor.
func (c *cholesky) decompose(floor float64) bool {
	for lo := 0; lo < c.n; lo += band {
		hi := min(lo+band, c.n)
		for j := range lo {
			c.eliminate(lo, hi, j)
		}
		for j := lo; j < hi; j++ {
			own := c.row(j)
			pivot := own[j]
			for _, l := range own[:j] {
				pivot -= float64(l * l)
			}
			if !(pivot > floor) || math.IsInf(pivot, 0) {
				return false
			}
			own[j] = math.Sqrt(pivot)
			c.eliminate(j+1, hi, j)
		}
	}
	return true
}

// eliminate finds column j of the rows lo to hi, whose columns before j are final. Each
// element is the loaded one less the products in order of their columns, four rows at a
// time, so that their chains of additions hide each other's latency.
func (c *cholesky) eliminate(lo, hi, j int) {
	by := c.row(j)
	pivot := by[j]
	by = by[:j]
	i := lo
	for ; i+4 <= hi; i += 4 {
		r0, r1, r2, r3 := c.row(i), c.row(i+1), c.row(i+2), c.row(i+3)
		s0, s1, s2, s3 := r0[j], r1[j], r2[j], r3[j]
		x0, x1, x2, x3 := r0[:len(by)], r1[:len(by)], r2[:len(by)], r3[:len(by)]
		for k, b := range by {
			s0 -= float64(x0[k] * b)
			s1 -= float64(x1[k] * b)
			s2 -= float64(x2[k] * b)
			s3 -= float64(x3[k] * b)
		}
		r0[j], r1[j], r2[j], r3[j] = s0/pivot, s1/pivot, s2/pivot, s3/pivot
	}
	for ; i < hi; i++ {
		row := c.row(i)
		sum := row[j]
		for k, b := range by {
			sum -= float64(row[k] * b)
		}
		row[j] = sum / pivot
	}
}

// substitute sets out to -x, where L·Lᵀ·x = g.
func (c *cholesky) substitute(g, out []float64) {
	for i := range c.n {
		row := c.row(i)
		sum := -g[i]
		for k, l := range row[:i] {
			sum -= float64(l * out[k])
		}
		out[i] = sum / row[i]
	}
	for i := c.n - 1; i >= 0; i-- {
		row := c.row(i)
		out[i] /= row[i]
		for k, l := range row[:i] {
			out[k] -= float64(l * out[i])
		}
	}
}
