package gmm

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// mixture has the parameters of k components in d dimensions, and values derived from them for
// the densities of rows. After prepare it is read-only.
type mixture struct {
	shape   Covariance
	k, d    int
	values  []float64 // memory of weights, means and covariances, one after the other
	weights []float64
	means   []float64 // k*d
	// covariances has size(d) numbers for each component; for Tied it has them only once.
	// Matrices are lower triangles, row by row.
	covariances []float64

	constant []float64        // for each component: log weight − ½(d·log 2π + log |S|)
	whiten   []*kernel.Packed // Full, Tied: the inverse of the Cholesky factor of S
	scale    []float64        // Diagonal, Spherical: 1/σ, k*d
	lower    []float64        // scratch space for a Cholesky factor
	square   []float64        // scratch space for its inverse
}

func newMixture(shape Covariance, k, d int) *mixture {
	m := &mixture{shape: shape, k: k, d: d, constant: make([]float64, k)}
	m.values = make([]float64, k+k*d+m.shapes()*shape.size(d))
	m.weights, m.means, m.covariances = m.values[:k:k], m.values[k:k+k*d:k+k*d], m.values[k+k*d:]
	switch shape {
	case Full, Tied:
		for range m.shapes() {
			m.whiten = append(m.whiten, kernel.NewPacked(d, d))
		}
		m.lower, m.square = make([]float64, triangle(d)), make([]float64, d*d)
	default:
		m.scale = make([]float64, k*d)
	}
	return m
}

// shapes returns the number of stored covariances.
func (m *mixture) shapes() int {
	if m.shape == Tied {
		return 1
	}
	return m.k
}

// covariance returns the covariance of a component, as stored.
func (m *mixture) covariance(c int) []float64 {
	if m.shape == Tied {
		c = 0
	}
	size := m.shape.size(m.d)
	return m.covariances[c*size : (c+1)*size]
}

// log2Pi is log 2π.
const log2Pi = 1.8378770664093454835606594728112352797

// errPoint is the error for a component whose variances are all 0.
var errPoint = errors.New("all of its rows are the same point: set Regularization to a negligible variance")

// prepare computes the values derived from weights, means and covariances. If a matrix has no
// inverse, prepare tries growing additions to its diagonal. The first addition that makes the
// matrix invertible is kept in m.covariances.
func (m *mixture) prepare() error {
	size := m.shape.size(m.d)
	for s := range m.shapes() {
		cov := m.covariances[s*size : (s+1)*size]
		var logs float64
		var err error
		if m.whiten != nil {
			logs, err = m.prepareMatrix(s, cov)
		} else {
			logs, err = m.prepareScales(s, cov)
		}
		if err != nil {
			return fmt.Errorf("component %d: %w", s, err)
		}
		m.constant[s] = logs
	}
	if m.shape == Tied {
		for c := range m.constant {
			m.constant[c] = m.constant[0]
		}
	}
	half := float64(0.5 * float64(float64(m.d)*log2Pi))
	for c, w := range m.weights {
		m.constant[c] = kernel.Log(w) - (half + m.constant[c])
	}
	return nil
}

// prepareMatrix computes the whitening matrix of a component, and returns the logarithm of the
// square root of the covariance's determinant.
func (m *mixture) prepareMatrix(s int, cov []float64) (float64, error) {
	var mean float64
	for j := range m.d {
		mean += cov[triangle(j)+j] / float64(m.d)
	}
	if !kernel.Finite(mean) {
		return 0, errors.New("its variance exceeds the range of float64: scale the features down")
	}
	shift := 0.0
	for !decompose(cov, m.d, shift, m.lower) {
		if !(mean > 0) {
			return 0, errPoint
		}
		shift = max(10*shift, 1e-14*mean)
		if !kernel.Finite(shift) || shift > 1e-3*mean {
			return 0, errors.New("its covariance is not positive definite")
		}
	}
	var logs float64
	for j := range m.d {
		cov[triangle(j)+j] += shift
		logs += kernel.Log(m.lower[triangle(j)+j])
	}
	invert(m.lower, m.d, m.square)
	m.whiten[s].Set(m.square)
	return logs, nil
}

// prepareScales does what prepareMatrix does, for Diagonal and Spherical.
func (m *mixture) prepareScales(s int, cov []float64) (float64, error) {
	var largest float64
	for _, v := range cov {
		largest = max(largest, v)
	}
	if !kernel.Finite(largest) {
		return 0, errors.New("its variance exceeds the range of float64: scale the features down")
	}
	if largest <= 0 {
		return 0, errPoint
	}
	var logs float64
	for j := range m.d {
		at := min(j, len(cov)-1)
		cov[at] = max(cov[at], 1e-14*largest)
		sigma := math.Sqrt(cov[at])
		logs += kernel.Log(sigma)
		m.scale[s*m.d+j] = 1 / sigma
	}
	return logs, nil
}

// shifted writes the n rows of x, minus the mean of component c, to t.
func (m *mixture) shifted(x []float64, n, c int, t []float64) {
	d := m.d
	mean := m.means[c*d : (c+1)*d]
	for i := range n {
		row, to := x[i*d:(i+1)*d], t[i*d:(i+1)*d]
		for j, v := range mean {
			to[j] = row[j] - v
		}
	}
}

// work is scratch memory for the densities of up to chunk rows. It belongs to one goroutine.
type work struct {
	x, t, y []float64 // rows of d numbers
	square  []float64
	log     []float64 // rows of k numbers
}

// chunk is the number of rows that are processed at a time. They stay in the cache while their
// densities for all components are computed.
const chunk = 64

func newWork(n, k, d int) *work {
	return &work{x: make([]float64, d), t: make([]float64, n*d), y: make([]float64, n*d), square: make([]float64, n), log: make([]float64, n*k)}
}

// densities writes to w.log, for each of the n rows of x and each component, the logarithm of
// the component's weight times its density at the row. The results for a row do not depend on
// other rows.
func (m *mixture) densities(x []float64, n int, w *work) {
	d, k := m.d, m.k
	for c := range k {
		m.shifted(x, n, c, w.t)
		if m.whiten != nil {
			kernel.MulRows(w.t, n, m.whiten[min(c, len(m.whiten)-1)], w.y)
		} else {
			scale := m.scale[c*d : (c+1)*d]
			for i := range n {
				t, y := w.t[i*d:(i+1)*d], w.y[i*d:(i+1)*d]
				for j, s := range scale {
					y[j] = t[j] * s
				}
			}
		}
		kernel.RowNorms(w.y[:n*d], d, w.square[:n])
		for i, v := range w.square[:n] {
			w.log[i*k+c] = m.constant[c] - float64(0.5*v)
		}
	}
}

// posterior replaces the values that densities computed for a row by the probabilities of the
// components. It returns the logarithm of the mixture's density at the row. All results are NaN
// if no component has a finite log-density.
func posterior(log []float64) float64 {
	largest, sum := kernel.Softmax(log)
	return largest + kernel.Log(sum)
}
