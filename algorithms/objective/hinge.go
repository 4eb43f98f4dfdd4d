package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// Hinge is max(0, 1−s·m), with s = −1 for class 0 and +1 for class 1: the loss of the support
// vector machine. The loss has a kink; see Smooth for how to minimise it.
type Hinge struct{}

// String implements Loss.
func (Hinge) String() string { return "hinge" }

// Label implements Loss.
func (Hinge) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (Hinge) Shape(f *rows.Facts) (Shape, error) { return twoClasses(f) }

// Refuses implements Loss.
func (Hinge) Refuses(float64) string { return "" }

// At implements Loss. The second derivative is 0, also at the kink.
func (Hinge) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		s := sign(b.Label[i])
		b.Loss[i], b.Slope[i] = 0, 0
		if t := 1 - float64(s*m); !(t <= 0) {
			b.Loss[i], b.Slope[i] = t, -s
		}
	}
	if b.Curve != nil {
		clear(b.Curve[:b.N])
	}
}

func (Hinge) line(label float64) line {
	return line{s: sign(label), c: 1, lo: 0, hi: 1}
}
