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

// solve sets p to -(H + τ·I)⁻¹·g, where H is packed/weight and the penalty's curvature.
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
		if c.decompose(packed, weight, p, shift, largest) {
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

// decompose factors H + shift·I, and reports whether it is safely positive definite.
func (c *cholesky) decompose(packed []float64, weight float64, p *penalty, shift, largest float64) bool {
	floor := float64(c.n) * 0x1p-52 * (largest + shift)
	for i := range c.n {
		row := c.factor[triangle(i) : triangle(i)+i+1]
		for j := range i {
			other := c.factor[triangle(j) : triangle(j)+j+1]
			sum := packed[triangle(i)+j] / weight
			for k := range j {
				sum -= float64(row[k] * other[k])
			}
			row[j] = sum / other[j]
		}
		pivot := c.diagonal(packed, weight, p, i) + shift
		for _, l := range row[:i] {
			pivot -= float64(l * l)
		}
		if !(pivot > floor) || math.IsInf(pivot, 0) {
			return false
		}
		row[i] = math.Sqrt(pivot)
	}
	return true
}

// substitute sets out to -x, where L·Lᵀ·x = g.
func (c *cholesky) substitute(g, out []float64) {
	for i := range c.n {
		row := c.factor[triangle(i) : triangle(i)+i+1]
		sum := -g[i]
		for k, l := range row[:i] {
			sum -= float64(l * out[k])
		}
		out[i] = sum / row[i]
	}
	for i := c.n - 1; i >= 0; i-- {
		row := c.factor[triangle(i) : triangle(i)+i+1]
		out[i] /= row[i]
		for k, l := range row[:i] {
			out[k] -= float64(l * out[i])
		}
	}
}
