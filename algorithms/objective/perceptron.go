package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// Perceptron is max(0, −s·m), with s = −1 for class 0 and +1 for class 1 (Rosenblatt, The
// perceptron, Psychological Review 65, 1958). A row with margin 0 has the slope of a row with a
// margin of the wrong sign, because at zero parameters all margins are 0 and training could not
// begin otherwise. But zero parameters are also a minimum of the loss, at which methods that
// compare losses stop. Only SGD, which does not compare losses, finds a separating hyperplane.
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
	b.clearCurve()
}
