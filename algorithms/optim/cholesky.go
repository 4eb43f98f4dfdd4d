package optim

import (
	"context"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// cholesky computes Newton directions. Only one subtask stores the factor and solves the
// system, because the matrix is the same on all subtasks and the resulting direction is small.
// The other subtasks wait meanwhile, so the factorisation uses as many goroutines as there are
// subtasks.
type cholesky struct {
	n                int
	factor           []float64 // lower triangle, row by row
	scale            []float64 // diagonal of D: the absolute values of H's diagonal, with zeros replaced
	withoutInfluence []bool    // [i] is true if the loss does not depend on parameter i

	panel          []float64 // columns of the factor, one after the other, each from the row of the first column's diagonal on
	earlierFactors []float64 // factors by which earlier columns are multiplied when they are subtracted from a column
	buffers        []tileBuffers
}

// tileBuffers is the memory that one goroutine needs to subtract a panel from a tile of the
// matrix.
type tileBuffers struct{ columns, coef, tile []float64 }

const (
	// band is the number of columns of the factor that are computed together.
	band = 64
	// A tile has tileRows × tileColumns elements of the matrix. It is updated by one product of
	// two parts of a panel. Both parts fit in the second-level cache.
	tileRows, tileColumns = 64, 256
)

// newCholesky returns a cholesky for matrices of n rows, which uses the given number of
// goroutines. It allocates the factor only if solves is set.
func newCholesky(n, workers int, solves bool) *cholesky {
	c := &cholesky{n: n}
	if !solves {
		return c
	}
	c.factor, c.scale, c.withoutInfluence = make([]float64, triangle(n)), make([]float64, n), make([]bool, n)
	c.panel, c.earlierFactors = make([]float64, min(band, n)*n), make([]float64, band)
	if n > band {
		c.buffers = make([]tileBuffers, workers)
	}
	for i := range c.buffers {
		c.buffers[i] = tileBuffers{make([]float64, band*tileColumns), make([]float64, band*tileRows), make([]float64, tileRows*tileColumns)}
	}
	return c
}

// solve sets out to -(H + τ·D)⁻¹·g. H is packed/weight plus the curvature of the penalty, and D
// has the absolute values of H's diagonal. τ is 0 if H is safely positive definite. Otherwise τ
// is the first number of a growing sequence that makes H + τ·D safely positive definite (Nocedal
// and Wright, Numerical Optimization, 2nd ed., algorithm 3.3). D is Marquardt's scaling: the
// units of parameters may differ so much that the ratio of their second derivatives exceeds the
// precision of a float64. A parameter without influence, such as the coefficient of a constant
// feature, does not move. Such a parameter does not make τ positive, because adding τ·D rounds
// away a few digits of the other diagonal elements.
func (c *cholesky) solve(ctx context.Context, packed []float64, weight float64, p *penalty, g, out []float64) error {
	var largest, shift float64
	negative := false
	for i := range c.n {
		h := c.diagonal(packed, weight, p, i)
		c.scale[i] = math.Abs(h)
		largest, negative = max(largest, c.scale[i]), negative || h < 0
	}
	if !(largest > 0) {
		largest = 1
	}
	for i, s := range c.scale {
		c.withoutInfluence[i] = s == 0 && g[i] == 0 && c.uncoupled(packed, i)
		if s == 0 {
			c.scale[i] = largest
		}
	}
	for range 64 {
		c.load(packed, weight, p, shift)
		ok, err := c.decompose(ctx, float64(c.n)*0x1p-52*(1+shift))
		if err != nil {
			return err
		}
		if ok {
			break
		}
		shift = max(10*shift, 1e-12)
		if negative {
			shift = max(shift, 2)
		}
	}
	c.substitute(g, out)
	return nil
}

// diagonal returns element i of the diagonal of H.
func (c *cholesky) diagonal(packed []float64, weight float64, p *penalty, i int) float64 {
	return packed[triangle(i)+i]/weight + float64(float64(p.l2*p.factors[i])*p.factors[i])
}

// uncoupled reports whether all mixed second derivatives of parameter i and another parameter
// are 0.
func (c *cholesky) uncoupled(packed []float64, i int) bool {
	for _, h := range packed[triangle(i) : triangle(i)+i] {
		if h != 0 {
			return false
		}
	}
	for j := i + 1; j < c.n; j++ {
		if packed[triangle(j)+i] != 0 {
			return false
		}
	}
	return true
}

// load writes H + shift·D to factor. For parameters without influence, it writes only D.
func (c *cholesky) load(packed []float64, weight float64, p *penalty, shift float64) {
	for i, h := range packed[:triangle(c.n)] {
		c.factor[i] = h / weight
	}
	for i := range c.n {
		if c.withoutInfluence[i] {
			c.factor[triangle(i)+i] = c.scale[i]
			continue
		}
		c.factor[triangle(i)+i] = c.diagonal(packed, weight, p, i) + float64(shift*c.scale[i])
	}
}

// row returns row i of the factor, up to its diagonal.
func (c *cholesky) row(i int) []float64 { return c.factor[triangle(i) : triangle(i)+i+1] }

// decompose replaces the loaded matrix by its factor. It reports whether the matrix is safely
// positive definite, that is, whether every pivot is above floor times its scale. From each
// loaded element, the products are subtracted in the order of their columns. The bits therefore
// depend neither on the tiles nor on the number of workers. It returns an error only if the job
// is cancelled.
func (c *cholesky) decompose(ctx context.Context, floor float64) (bool, error) {
	for lo := 0; lo < c.n; lo += band {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		hi := min(lo+band, c.n)
		if !c.finishColumns(lo, hi, floor) {
			return false, nil
		}
		if hi == c.n {
			break
		}
		if len(c.buffers) == 1 {
			c.reduce(lo, hi, 0)
			continue
		}
		var all sync.WaitGroup
		for worker := range c.buffers {
			all.Go(func() { c.reduce(lo, hi, worker) })
		}
		all.Wait()
	}
	return true, nil
}

// finishColumns completes the columns [lo, hi) of the factor, in the panel and in the triangle.
// All earlier columns must have been subtracted from these columns. It reports whether every
// pivot is above floor times its scale.
func (c *cholesky) finishColumns(lo, hi int, floor float64) bool {
	width := c.n - lo
	column := func(k int) []float64 { return c.panel[(k-lo)*width : (k-lo+1)*width] }
	clear(c.panel[:(hi-lo)*width])
	for i := lo; i < c.n; i++ {
		for k, v := range c.row(i)[lo:min(i+1, hi)] {
			c.panel[k*width+i-lo] = v
		}
	}
	for k := lo; k < hi; k++ {
		own := column(k)
		for m := range k - lo {
			c.earlierFactors[m] = -c.panel[m*width+k-lo]
		}
		kernel.AddScaledRows(c.panel, k-lo, width, c.earlierFactors[:k-lo], own)
		pivot := own[k-lo]
		if !(pivot > floor*c.scale[k]) || math.IsInf(pivot, 0) {
			return false
		}
		root := math.Sqrt(pivot)
		own[k-lo] = root
		for i := range own[k-lo+1:] {
			own[k-lo+1+i] /= root
		}
	}
	for i := lo; i < c.n; i++ {
		for k := range c.row(i)[lo:min(i+1, hi)] {
			c.factor[triangle(i)+lo+k] = c.panel[k*width+i-lo]
		}
	}
	return true
}

// reduce subtracts the columns [lo, hi), which are in the panel, from the elements to the right
// of these columns. It updates only the rows of tiles that are assigned to worker.
func (c *cholesky) reduce(lo, hi, worker int) {
	w, width, depth := &c.buffers[worker], c.n-lo, hi-lo
	for first := hi + worker*tileRows; first < c.n; first += len(c.buffers) * tileRows {
		rows := sharding.Range{Lo: first, Hi: min(first+tileRows, c.n)}
		coef := w.coef[:depth*rows.Len()]
		for k := range depth {
			for a, v := range c.panel[k*width+rows.Lo-lo : k*width+rows.Hi-lo] {
				coef[k*rows.Len()+a] = -v
			}
		}
		for left := hi; left < rows.Hi; left += tileColumns {
			right := min(left+tileColumns, rows.Hi)
			columns, tile := w.columns[:depth*(right-left)], w.tile[:rows.Len()*(right-left)]
			for k := range depth {
				copy(columns[k*(right-left):(k+1)*(right-left)], c.panel[k*width+left-lo:])
			}
			c.copyOut(rows, left, right, tile)
			kernel.AddOuterRows(columns, depth, right-left, coef, rows.Len(), tile)
			c.copyIn(rows, left, right, tile)
		}
	}
}

// copyOut copies the elements of the factor in the given rows and the columns [left, right) to
// tile. Elements of tile above the diagonal are undefined.
func (c *cholesky) copyOut(rows sharding.Range, left, right int, tile []float64) {
	for a := range rows.Len() {
		i := rows.Lo + a
		if end := min(i+1, right); end > left {
			copy(tile[a*(right-left):], c.row(i)[left:end])
		}
	}
}

// copyIn copies tile, which copyOut has filled, back to the factor.
func (c *cholesky) copyIn(rows sharding.Range, left, right int, tile []float64) {
	for a := range rows.Len() {
		i := rows.Lo + a
		if end := min(i+1, right); end > left {
			copy(c.row(i)[left:end], tile[a*(right-left):])
		}
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
