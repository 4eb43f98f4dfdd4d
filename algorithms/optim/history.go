package optim

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// history is the memory of L-BFGS: pairs of a step s and a difference of gradients y (Nocedal
// and Wright, Numerical Optimization, 2nd ed., section 7.2). The two loops of algorithm 7.4 in
// that book need only inner products, which are stored (Chen, Wang and Zhou, Large-scale L-BFGS
// using MapReduce, NIPS 2014). The products of the newest pair with all pairs are then computed
// in one pass over the pairs, and the direction in another pass. If each subtask has some
// blocks of the parameters, subtasks therefore communicate only twice per iteration, however
// long the history is.
type history struct {
	space *blocks
	own   sharding.Range // blocks kept on this subtask
	first int            // first parameter of these blocks; vectors passed to methods begin with it
	size  int            // number of pairs to remember
	slots int            // size+1: the newest pair occupies one slot until it is admitted

	// pairs has the vectors, block after block. Within a block, row 2k has s of slot k, and row
	// 2k+1 has y of slot k.
	pairs []float64
	*historyState

	sg, yg []float64 // s_i·g and y_i·g
	gg     float64

	partial []float64 // products of each block kept on this subtask, width() numbers per block
	alpha   []float64
	usable  []int     // slots that the direction uses, oldest first
	masked  []float64 // y of a block, with 0 for parameters that are held
	coef    []float64 // coefficients of the rows, then of g
}

// historyState is the part of the history that is kept between supersteps in addition to the
// pairs.
type historyState struct {
	Order  []int     // slots in use, oldest first
	Newest int       // slot of the pair that is not yet admitted; -1 for none
	SY, YY []float64 // s_i·y_j and y_i·y_j at i*slots+j
}

// minCurvature is ε of Li and Fukushima, On the global convergence of the BFGS method for
// nonconvex unconstrained optimization problems, SIAM J. Optim. 11 (2001). A pair is admitted
// only if y·s ≥ ε·|g|·|s|²; this is their rule with α = 1.
const minCurvature = 1e-10

// newHistory returns a history of up to size pairs for the blocks own. It continues from the
// kept state r. If holds is set, iterations may hold some parameters at 0, see products. The
// caller sets the field pairs.
func newHistory(space *blocks, own sharding.Range, size int, holds bool, r *historyState) *history {
	h := &history{space: space, own: own, first: space.at(own.Lo).Lo, size: size, slots: size + 1, historyState: r}
	rows := 2 * h.slots
	if holds {
		h.masked = make([]float64, space.length)
	}
	if r.SY == nil {
		r.Newest = -1
		r.SY, r.YY = make([]float64, h.slots*h.slots), make([]float64, h.slots*h.slots)
	}
	r.Order, h.usable = withCapacity(r.Order, h.slots), make([]int, 0, h.slots)
	h.sg, h.yg = make([]float64, h.slots), make([]float64, h.slots)
	h.partial = make([]float64, own.Len()*h.width())
	h.alpha, h.coef = make([]float64, h.slots), make([]float64, rows+1)
	return h
}

// width returns the number of products of a block. The products of a block are in this order:
//
//	with g       of g with all rows, then g·g
//	with newest  of s and y of the newest slot with all rows
//	with each    only if holds was set: of the masked y of each slot with all rows
func (h *history) width() int {
	w := 2*h.slots + 1 + 4*h.slots
	if h.masked != nil {
		w += 2 * h.slots * h.slots
	}
	return w
}

// splitProducts splits the products of a block, out, into the groups that width lists.
func (h *history) splitProducts(out []float64) (withG []float64, gg *float64, withS, withY, withEach []float64) {
	rows := 2 * h.slots
	return out[:rows], &out[rows], out[rows+1 : 2*rows+1], out[2*rows+1 : 3*rows+1], out[3*rows+1:]
}

// pairRange returns the range of block i in pairs. A block that is shorter than others occupies
// as much memory as they do.
func (h *history) pairRange(i int) sharding.Range {
	stride := 2 * h.slots * h.space.length
	return sharding.Range{Lo: (i - h.own.Lo) * stride, Hi: (i - h.own.Lo + 1) * stride}
}

// block returns the rows of block i, each as long as the block, and the range of the block in
// the vectors passed to methods. The block must be kept on this subtask.
func (h *history) block(i int) (rows []float64, r sharding.Range) {
	r = h.space.at(i)
	return h.pairs[h.pairRange(i).Lo:][:2*h.slots*r.Len()], sharding.Range{Lo: r.Lo - h.first, Hi: r.Hi - h.first}
}

// push stores the pair of a step as the newest pair: s = step·direction, y = next - previous.
// previous and next are the gradients before and after the step. The vectors passed to push and
// to the methods below have only the parameters of the blocks kept on this subtask.
func (h *history) push(step float64, direction, previous, next []float64) {
	h.Newest = h.free()
	for i := h.own.Lo; i < h.own.Hi; i++ {
		rows, r := h.block(i)
		n := r.Len()
		s, y := rows[2*h.Newest*n:(2*h.Newest+1)*n], rows[(2*h.Newest+1)*n:(2*h.Newest+2)*n]
		for j := range n {
			s[j] = step * direction[r.Lo+j]
			y[j] = next[r.Lo+j] - previous[r.Lo+j]
		}
	}
}

// free returns a slot that is not in use.
func (h *history) free() int {
	for slot := range h.slots {
		used := false
		for _, k := range h.Order {
			used = used || k == slot
		}
		if !used {
			return slot
		}
	}
	panic("optim: the history has no free slot")
}

// forget drops all pairs.
func (r *historyState) forget() { r.Order, r.Newest = r.Order[:0], -1 }

// rows returns the number of rows up to the last slot in use.
func (h *history) rows() int {
	top := h.Newest
	for _, k := range h.Order {
		top = max(top, k)
	}
	return 2 * (top + 1)
}

// products returns the inner products of the blocks kept on this subtask, block after block. If
// the history holds parameters, heldAtZero reports whether parameter i is 0 and stays 0. The
// direction is then computed from the other parameters alone, and the held parameters are left
// out of the products of pairs (as in Byrd, Chin, Nocedal and Oztoprak, A family of
// second-order methods for convex l1-regularized optimization, Math. Program. 159, 2016). g
// must be 0 for held parameters.
func (h *history) products(g []float64, heldAtZero func(i int) bool) []float64 {
	width, rows := h.width(), h.rows()
	for i := h.own.Lo; i < h.own.Hi; i++ {
		x, r := h.block(i)
		n := r.Len()
		out := h.partial[(i-h.own.Lo)*width : (i-h.own.Lo+1)*width]
		clear(out)
		withG, gg, withS, withY, withEach := h.splitProducts(out)
		kernel.DotRows(x, rows, n, g[r.Lo:r.Hi], withG[:rows])
		*gg = kernel.Dot(g[r.Lo:r.Hi], g[r.Lo:r.Hi])
		if k := h.Newest; k >= 0 {
			kernel.DotRows(x, rows, n, x[2*k*n:(2*k+1)*n], withS[:rows])
			kernel.DotRows(x, rows, n, x[(2*k+1)*n:(2*k+2)*n], withY[:rows])
		}
		if h.masked == nil {
			continue
		}
		for k := range rows / 2 {
			y, masked := x[(2*k+1)*n:(2*k+2)*n], h.masked[:n]
			for j := range masked {
				masked[j] = y[j]
				if heldAtZero(r.Lo + j) {
					masked[j] = 0
				}
			}
			kernel.DotRows(x, rows, n, masked, withEach[2*h.slots*k:2*h.slots*k+rows])
		}
	}
	return h.partial
}

// update takes the products of all blocks. It admits the newest pair if that pair is suitable,
// and computes the coefficients of the direction.
func (h *history) update(all []float64) {
	foldRows(all, h.space.count, h.width())
	withG, gg, withS, withY, withEach := h.splitProducts(all[:h.width()])
	h.gg = *gg
	if k := h.Newest; k >= 0 {
		if h.admits(withS[2*k], withS[2*k+1], withY[2*k+1]) {
			h.Order = append(h.Order, k)
			for _, j := range h.Order {
				h.SY[k*h.slots+j], h.SY[j*h.slots+k] = withS[2*j+1], withY[2*j]
				h.YY[k*h.slots+j], h.YY[j*h.slots+k] = withY[2*j+1], withY[2*j+1]
			}
			if len(h.Order) > h.size {
				copy(h.Order, h.Order[1:])
				h.Order = h.Order[:h.size]
			}
		} else {
			h.erase(k)
		}
		h.Newest = -1
	}
	h.usable = append(h.usable[:0], h.Order...)
	if h.masked != nil {
		h.usable = h.usable[:0]
		for _, k := range h.Order {
			with := withEach[2*h.slots*k : 2*h.slots*(k+1)]
			for _, j := range h.Order {
				h.SY[j*h.slots+k], h.YY[j*h.slots+k] = with[2*j], with[2*j+1]
			}
			if sy, yy := with[2*k], with[2*k+1]; sy*sy/yy > 0 && sy > 0 {
				h.usable = append(h.usable, k)
			}
		}
	}
	for _, j := range h.usable {
		h.sg[j], h.yg[j] = withG[2*j], withG[2*j+1]
	}
	h.coefficients()
}

// admits reports whether a pair is suitable, that is, whether its curvature is safely positive.
func (h *history) admits(ss, sy, yy float64) bool {
	return sy >= minCurvature*math.Sqrt(h.gg)*ss && sy > 1e-14*math.Sqrt(ss)*math.Sqrt(yy) &&
		!math.IsInf(sy, 0) && !math.IsInf(yy, 0) && sy*sy/yy > 0
}

// erase fills the rows of a slot whose pair was not admitted with zeros. direction still
// multiplies these rows by 0, which would give NaN if they were not finite.
func (h *history) erase(slot int) {
	for i := h.own.Lo; i < h.own.Hi; i++ {
		rows, r := h.block(i)
		clear(rows[2*slot*r.Len() : (2*slot+2)*r.Len()])
	}
}

// coefficients runs the two loops on inner products. It computes the coefficients of the
// direction -γ·g + Σ γ·α_j·y_j - Σ (α_j-β_j)·s_j.
func (h *history) coefficients() {
	clear(h.coef)
	last := len(h.usable) - 1
	if last < 0 {
		h.coef[2*h.slots] = -1
		return
	}
	for i := last; i >= 0; i-- {
		k := h.usable[i]
		a := h.sg[k]
		for _, j := range h.usable[i+1:] {
			a -= float64(h.alpha[j] * h.SY[k*h.slots+j])
		}
		h.alpha[k] = a / h.SY[k*h.slots+k]
	}
	k := h.usable[last]
	gamma := h.SY[k*h.slots+k] / h.YY[k*h.slots+k]
	for i, k := range h.usable {
		b := h.yg[k]
		for _, j := range h.usable {
			b -= float64(h.alpha[j] * h.YY[k*h.slots+j])
		}
		b *= gamma
		for _, j := range h.usable[:i] {
			b -= float64(h.coef[2*j] * h.SY[j*h.slots+k])
		}
		h.coef[2*k] = b/h.SY[k*h.slots+k] - h.alpha[k]
		h.coef[2*k+1] = gamma * h.alpha[k]
	}
	h.coef[2*h.slots] = -gamma
}

// direction writes the direction to out.
func (h *history) direction(g, out []float64) {
	rows := h.rows()
	for i := h.own.Lo; i < h.own.Hi; i++ {
		x, r := h.block(i)
		n := r.Len()
		p := out[r.Lo:r.Hi]
		for j := range p {
			p[j] = h.coef[2*h.slots] * g[r.Lo+j]
		}
		kernel.AddScaledRows(x, rows, n, h.coef[:rows], p)
	}
}
