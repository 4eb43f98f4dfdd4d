package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Logistic is the logistic loss of two classes, log(1+exp(−s·m)) with s = −1 for class 0 and +1
// for class 1. It is the negative logarithm of the probability of the row's class, if the
// probability of class 1 is 1/(1+exp(−m)).
type Logistic struct{}

// String implements Loss.
func (Logistic) String() string { return "logistic" }

// Label implements Loss.
func (Logistic) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (Logistic) Shape(f *rows.Facts) (Shape, error) { return twoClasses(f) }

// Refuses implements Loss.
func (Logistic) Refuses(float64) string { return "" }

// At implements Loss. It computes all results from t = −s·m, because the kernels Softplus and
// Sigmoid of t have a small relative error in both tails.
func (Logistic) At(b *Batch) {
	n := b.N
	t, label, margin, slope := b.Work[:n], b.Label[:n], b.Margin[:n], b.Slope[:n]
	kernel.SignByClass(t, label, margin)
	if !b.SlopesOnly {
		kernel.SoftplusTo(b.Loss[:n], t)
	}
	kernel.SigmoidTo(slope, t)
	if b.Curve != nil {
		curve := b.Curve[:n]
		for i, p := range slope {
			curve[i] = p * (1 - p)
		}
	}
	kernel.SignByClass(slope, label, slope)
}
