package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// hessianWork is the memory for second derivatives, allocated on first use.
type hessianWork struct {
	rows        []float64 // a chunk of scaled rows, each with a 1 after it for the intercept
	gramBuffers kernel.Gram
	h           []float64 // weighted curvature of a pair of margins, for a chunk
	gram        []float64 // a triangle for each pair of margins with coefficients
	line        []float64 // for each pair of a constant margin and a margin with coefficients, stride sums
	dot         []float64 // one sum for each pair of constant margins
}

// hessianPass does what pass does, and adds second derivatives. Features are scaled and centred
// before they are multiplied, in a chunk that stays in the cache. If instead the products of
// unscaled features were centred afterwards, the digits that the products and their centre have
// in common would be lost.
func (e *evaluator) hessianPass(s *shardRows, from source, step float64, out []float64) error {
	e.prepareHessian()
	sum := e.begin(s, out)
	w := &e.hessian
	triangle := out[1+e.parameters():]
	gram := w.gram
	if e.k == 1 {
		gram = triangle // with one margin, its triangle is the whole matrix
	}
	chunk := e.hessianRows(s.chunk)
	for lo := 0; lo < s.N; lo += chunk {
		if err := e.interrupted(); err != nil {
			return err
		}
		part := s.Rows(lo, min(lo+chunk, s.N))
		m := e.marginsFrom(s, &part, lo, from, step)
		e.batch.Curve, e.batch.Stepping = e.curve[:e.k*(e.k+1)/2*part.N], from != atPoint
		e.lossAt(s, &part, lo, m)
		e.batch.Curve, e.batch.Stepping = nil, false
		sum.loss = e.addLoss(s, lo, part.N, sum.loss)
		e.addGradient(&part, &sum)
		e.scaleRows(&part)
		if err := e.addCurvature(s, lo, part.N, gram); err != nil {
			return err
		}
	}
	e.finish(s, sum, out)
	if e.k > 1 {
		e.assemble(triangle)
	}
	return nil
}

// wideMatrix and wideRows are for matrices that do not fit in any cache. Such a matrix is read
// and written once per chunk, so chunks have more rows than the cache holds: as many as
// kernel.Gram takes at a time.
const (
	wideMatrix = 256 // smallest number of features of a margin for which the matrix does not fit in a cache
	wideRows   = 256
)

// hessianRows returns the number of rows in a chunk for passes with second derivatives. n is
// the number for passes without second derivatives.
func (e *evaluator) hessianRows(n int) int {
	if e.d >= wideMatrix {
		return max(n, wideRows)
	}
	return n
}

// prepareHessian allocates the memory in the first call, and clears the sums in every call.
func (e *evaluator) prepareHessian() {
	w := &e.hessian
	if n := e.hessianRows(e.longest); len(w.h) < n {
		e.grow(n)
		w.rows, w.h = make([]float64, n*e.stride()), make([]float64, n)
		e.curve = make([]float64, n*e.k*(e.k+1)/2)
	}
	if w.gram == nil && e.k > 1 {
		t := e.stride() * (e.stride() + 1) / 2
		w.gram = make([]float64, e.Margins*(e.Margins+1)/2*t)
		w.line = make([]float64, e.Constants*e.Margins*e.stride())
		w.dot = make([]float64, e.Constants*(e.Constants+1)/2)
	}
	clear(w.gram)
	clear(w.line)
	clear(w.dot)
}

// scaleRows writes the rows of b, scaled, to rows.
func (e *evaluator) scaleRows(b *rows.Block) {
	width := e.stride()
	to := e.hessian.rows[:b.N*width]
	if b.Dense == nil {
		clear(to)
	}
	for i := range b.N {
		row := to[i*width : (i+1)*width]
		switch {
		case b.Dense == nil:
			col, val := b.Sparse.Row(i)
			for p, j := range col {
				if b.Columns != nil {
					j = b.Columns[j]
				}
				row[j] = val[p] * e.inverse[j]
			}
		case e.centred:
			for j, x := range b.Dense[i*e.d : (i+1)*e.d] {
				row[j] = (x - e.mean[j]) * e.inverse[j]
			}
		default:
			for j, x := range b.Dense[i*e.d : (i+1)*e.d] {
				row[j] = x * e.inverse[j]
			}
		}
		if e.intercept {
			row[e.d] = 1
		}
	}
}

// addCurvature adds the weighted second derivatives of the batch to gram, and the derivatives
// by constants to line and dot. The batch has the rows [lo, lo+n) of the shard.
func (e *evaluator) addCurvature(s *shardRows, lo, n int, gram []float64) error {
	w := &e.hessian
	width := e.stride()
	z, h := w.rows[:n*width], w.h[:n]
	size := width * (width + 1) / 2
	pair := 0
	for a := range e.k {
		if err := e.interrupted(); err != nil {
			return err
		}
		for b := range a + 1 {
			e.weightCurvature(s, lo, e.curve[pair*n:(pair+1)*n], h)
			switch {
			case a < e.Margins:
				w.gramBuffers.AddRows(z, n, width, h, gram[pair*size:(pair+1)*size])
			case b < e.Margins:
				at := ((a-e.Margins)*e.Margins + b) * width
				kernel.AddScaledRows(z, n, width, h, w.line[at:at+width])
			default:
				c := a - e.Margins
				sum := &w.dot[c*(c+1)/2+b-e.Margins]
				for _, v := range h {
					*sum += v
				}
			}
			pair++
		}
	}
	return nil
}

// weightCurvature writes weight times curvature to h. For a row with weight 0 it writes 0.
func (e *evaluator) weightCurvature(s *shardRows, lo int, curve, h []float64) {
	if s.weight == nil {
		copy(h, curve)
		return
	}
	for i, u := range s.weight[lo : lo+len(h)] {
		h[i] = 0
		if u != 0 {
			h[i] = u * curve[i]
		}
	}
}

// assemble writes the lower triangle of the matrix of all parameters to out.
func (e *evaluator) assemble(out []float64) {
	w := &e.hessian
	width := e.stride()
	size := width * (width + 1) / 2
	pair := 0
	for a := range e.k {
		for b := range a + 1 {
			switch {
			case a < e.Margins:
				block := w.gram[pair*size : (pair+1)*size]
				for i := range width {
					row := a*width + i
					to := out[row*(row+1)/2+b*width:]
					for j := range width {
						if a == b && j > i {
							break
						}
						to[j] = block[max(i, j)*(max(i, j)+1)/2+min(i, j)]
					}
				}
			case b < e.Margins:
				row := e.Margins*width + a - e.Margins
				at := ((a-e.Margins)*e.Margins + b) * width
				copy(out[row*(row+1)/2+b*width:], w.line[at:at+width])
			default:
				row, column := e.Margins*width+a-e.Margins, e.Margins*width+b-e.Margins
				c := a - e.Margins
				out[row*(row+1)/2+column] = w.dot[c*(c+1)/2+b-e.Margins]
			}
			pair++
		}
	}
}
