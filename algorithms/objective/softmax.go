package objective

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Softmax is the cross entropy of K classes, log Σ exp(m_k) − m_y.
//
// Each class has its own coefficients and intercept, K·(d+1) numbers in total. The
// probabilities would need only (K−1)·(d+1) numbers: adding the same vector to the parameters
// of every class does not change them. A penalty makes the coefficients unique. It does not
// make the intercepts unique, because they have no penalty: only their differences matter. The
// Hessian is singular in the direction of equal intercepts, or in d+1 directions without a
// penalty. Newton's method must not move in these directions; a Cholesky factorisation that
// skips vanishing pivots achieves that. Methods that start at zeros and follow gradients keep
// the sum of the classes' coefficients at zero.
type Softmax struct {
	// K is the number of classes. 0 means the number of classes in the labels. A larger number
	// means that there are classes without rows.
	K int
}

// String implements Loss.
func (Softmax) String() string { return "softmax" }

// Label implements Loss.
func (Softmax) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (s Softmax) Shape(f *rows.Facts) (Shape, error) {
	k := cmp.Or(s.K, len(f.Classes))
	switch {
	case k < 0:
		return Shape{}, fmt.Errorf("softmax of %d classes: want 2 or more, or 0 for those of the labels", k)
	case k < 2 && len(f.Classes) == 1:
		return Shape{}, rows.TwoClasses("", f.Classes)
	case k < len(f.Classes):
		return Shape{}, fmt.Errorf("softmax of %d classes: the labels have %d", k, len(f.Classes))
	}
	return Shape{Margins: k}, f.Weighty()
}

// Refuses implements Loss.
func (Softmax) Refuses(float64) string { return "" }

// At implements Loss. The largest margin of a row is subtracted from all its margins, so that
// one exponential is exactly 1. The other exponentials are added up separately, so that their
// sum is accurate even if it is small.
func (Softmax) At(b *Batch) {
	k := b.K
	e := b.Work[:b.N*k]
	for i := range b.N {
		m := b.Margin[i*k : i*k+k]
		top := m[0]
		for _, v := range m[1:] {
			top = max(top, v)
		}
		for a, v := range m {
			e[i*k+a] = v - top
		}
	}
	kernel.ExpTo(e, e)
	for i := range b.N {
		b.softmaxRow(i, e[i*k:i*k+k])
	}
}

// softmaxRow computes the results of row i. e has the exponentials of the margins minus the
// largest margin.
func (b *Batch) softmaxRow(i int, e []float64) {
	k := b.K
	m, slope := b.Margin[i*k:i*k+k], b.Slope[i*k:i*k+k]
	y := int(b.Label[i])
	top := 0 // the first class with the largest margin
	for a, v := range m {
		if v > m[top] {
			top = a
		}
	}
	var rest float64 // sum of the exponentials of the other classes
	for a, v := range e {
		if a != top {
			rest += v
		}
	}
	b.Loss[i] = (m[top] - m[y]) + kernel.Log1p(rest)
	total := 1 + rest
	var others float64 // total probability of the other classes
	for a, v := range e {
		slope[a] = v / total
		if a != y {
			others += slope[a]
		}
	}
	if b.Curve != nil {
		at := i
		for a := range k {
			for c := range a {
				b.Curve[at] = -(slope[a] * slope[c])
				at += b.N
			}
			b.Curve[at] = slope[a] * (1 - slope[a])
			at += b.N
		}
	}
	slope[y] = -others
}
