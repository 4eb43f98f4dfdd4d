package optim

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// L-BFGS computes a direction from the pairs of the last ten iterations. The curvature changes
// during these iterations. With logistic losses it changes most in the first iterations, when
// margins move away from 0. So a point that was a minimum along earlier steps is not a minimum
// any more, and L-BFGS corrects that slowly. A few rows suffice to estimate the current
// curvature in the plane of the direction and the latest steps, and the gradient in the plane
// is known from all rows. The minimum over the plane then takes only a system of four
// equations. For linear models, minimising over the plane takes no read. It saves two of the
// seven iterations that a precision of 1e-6 takes.
//
// Related methods: Narkiss and Zibulevsky (Sequential subspace optimization method for
// large-scale unconstrained problems, Technion CCIT report 559, 2005) minimise over the latest
// steps and the gradient. Byrd, Chin, Neveitt and Nocedal (On the use of stochastic Hessian
// information in optimization methods for machine learning, SIAM J. Optim. 21, 2011) take the
// curvature from a sample of the rows.

// maxAxes is the largest dimension of a plane: one direction and the latest steps.
const maxAxes = 1 + LatestSteps

// plane is spanned by a direction and the latest steps. It has slopes and curvatures of F along
// them.
type plane struct {
	steps [LatestSteps][]float64 // nil if the latest steps are not kept
	*ring

	dim        int
	axis       [maxAxes][]float64                   // the direction, then the steps, the most recent first
	slopes     [maxAxes]float64                     // slope of F along each axis
	curvatures [maxAxes * (maxAxes + 1) / 2]float64 // second derivatives of the penalty
	squares    []float64                            // for each block, the products of pairs of axes that the penalty needs
	factor     [maxAxes * (maxAxes + 1) / 2]float64
	mix        [maxAxes]float64 // coefficients of the axes at the approximate minimum of F
}

// ring describes which elements of plane.steps are in use.
type ring struct {
	Next  int // index in plane.steps at which the next step is stored
	Count int // number of steps
}

// prepare sets the memory for the latest steps. steps has the memory of LatestSteps vectors of
// all parameters, one after the other.
func (p *plane) prepare(space *blocks, steps []float64) {
	for i := range p.steps {
		p.steps[i] = steps[i*space.n : (i+1)*space.n]
	}
	p.squares = make([]float64, space.count*triangle(maxAxes))
}

// push stores step·direction as the most recent step.
func (p *plane) push(step float64, direction []float64) {
	if p.steps[0] == nil {
		return
	}
	to := p.steps[p.Next]
	for i, d := range direction {
		to[i] = step * d
	}
	p.Next = (p.Next + 1) % LatestSteps
	p.Count = min(p.Count+1, LatestSteps)
}

// reset drops the steps.
func (r *ring) reset() { r.Count = 0 }

// drop removes all steps. After drop, push stores no steps.
func (p *plane) drop() {
	p.reset()
	p.steps = [LatestSteps][]float64{}
}

// pastSteps returns the number of latest steps among the axes of the plane.
func (p *plane) pastSteps() int { return p.dim - 1 }

// setAxes sets the axes: the direction, and the stored steps if withSteps is set. slope is the
// slope of F along the direction, and curvature is the second derivative of the penalty along
// the direction.
func (p *plane) setAxes(w *work, withSteps bool, slope, curvature float64) {
	p.axis[0], p.dim = w.direction, 1
	if withSteps {
		p.dim += p.Count
	}
	for i := 1; i < p.dim; i++ {
		p.axis[i] = p.steps[(p.Next-i+LatestSteps)%LatestSteps]
	}
	p.slopes[0], p.curvatures[0] = slope, curvature
	if p.dim == 1 {
		return
	}
	for i := 1; i < p.dim; i++ { // latest steps exist only if this subtask has all parameters
		p.slopes[i] = w.space.dot(w.pseudo, p.axis[i])
	}
	width := triangle(p.dim)
	for i := range w.space.count {
		w.penalty.sumSquares(w.space.at(i), p.squares[i*width:(i+1)*width], p.axis[:p.dim]...)
	}
	foldRows(p.squares, w.space.count, width)
	for i, sum := range p.squares[1:width] {
		p.curvatures[1+i] = float64(w.penalty.l2 * sum)
	}
}

// minPivot is the least fraction of the curvature along an axis that must remain after the
// earlier axes are eliminated. If a smaller fraction remains, it is due to rounding.
const minPivot = 1e-8

// solve computes the mixture of the axes that minimises F, by Cholesky's method. sums has the
// second derivatives of the losses over rows with the given total weight. An axis that depends
// linearly on earlier axes is left out. If F has no minimum over the plane, or the mixture is
// no descent direction, solve sets the mixture to the direction alone and returns false.
func (p *plane) solve(sums []float64, weight float64) bool {
	row := func(i int) []float64 { return p.factor[triangle(i) : triangle(i)+i+1] }
	clear(p.mix[:])
	for i := range p.dim {
		l := row(i)
		for j := range l {
			l[j] = sums[triangle(i)+j]/weight + p.curvatures[triangle(i)+j]
		}
		square := l[i]
		for j := range l {
			other := row(j)
			for k := range j {
				l[j] -= float64(l[k] * other[k])
			}
			switch {
			case j < i && other[j] > 0:
				l[j] /= other[j]
			case j < i:
				l[j] = 0
			case l[j] > minPivot*square && kernel.Finite(l[j]):
				l[j] = math.Sqrt(l[j])
			default:
				clear(l)
			}
		}
		if l[i] > 0 {
			p.mix[i] = -p.slopes[i]
			for k := range i {
				p.mix[i] -= float64(l[k] * p.mix[k])
			}
			p.mix[i] /= l[i]
		}
	}
	for i := p.dim - 1; i >= 0; i-- {
		l := row(i)
		if l[i] == 0 {
			continue
		}
		p.mix[i] /= l[i]
		for k := range i {
			p.mix[k] -= float64(l[k] * p.mix[i])
		}
	}
	good := p.mix[0] > 0
	for _, c := range p.mix[:p.dim] {
		good = good && kernel.Finite(c)
	}
	if slope, _ := p.alongMix(); good && slope < 0 {
		return true
	}
	clear(p.mix[:])
	p.mix[0] = 1
	return false
}

// alongMix returns the derivatives along the mixture: the first derivative of F, and the second
// derivative of the penalty.
func (p *plane) alongMix() (slope, curvature float64) {
	next := 0
	for i, c := range p.mix[:p.dim] {
		slope += float64(c * p.slopes[i])
		for j, o := range p.mix[:i+1] {
			both := float64(float64(c*o) * p.curvatures[next])
			if j < i {
				both *= 2
			}
			curvature += both
			next++
		}
	}
	return slope, curvature
}

// applyMix replaces the direction, which is the first axis, by the mixture.
func (p *plane) applyMix(direction []float64) {
	for i := range direction {
		d := float64(p.mix[0] * direction[i])
		for k := 1; k < p.dim; k++ {
			d += float64(p.mix[k] * p.axis[k][i])
		}
		direction[i] = d
	}
}
