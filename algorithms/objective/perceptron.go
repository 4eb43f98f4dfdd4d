package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// Perceptron is max(0, −s·m), with s = −1 for class 0 and +1 for class 1 (Rosenblatt, The
// perceptron, Psychological Review 65, 1958). A row on the plane has the slope of a row on the
// wrong side, because at zero parameters all rows are on the plane and learning must begin. But
// zero parameters are also a minimum of the loss. Therefore only SGD finds a separating plane,
// as it takes steps without regard to the loss.
type Perceptron struct{}

// String implements Loss.
func (Perceptron) String() string { return "perceptron" }

// Label implements Loss.
func (Perceptron) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (Perceptron) Shape(f *rows.Facts) (Shape, error) { return twoClasses(f) }

// Refuses implements Loss.
func (Perceptron) Refuses(float64) string { return "" }

// At implements Loss. The second derivative is 0, also at the kink.
func (Perceptron) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		s := sign(b.Label[i])
		b.Loss[i], b.Slope[i] = 0, 0
		if t := -s * m; !(t < 0) {
			b.Loss[i], b.Slope[i] = t, -s
		}
	}
	if b.Curve != nil {
		clear(b.Curve[:b.N])
	}
}
