package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// SquaredHinge is max(0, 1−s·m)², with s = −1 for class 0 and +1 for class 1.
type SquaredHinge struct{}

// String implements Loss.
func (SquaredHinge) String() string { return "squared hinge" }

// Label implements Loss.
func (SquaredHinge) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (SquaredHinge) Shape(f *rows.Facts) (Shape, error) { return twoClasses(f) }

// Refuses implements Loss.
func (SquaredHinge) Refuses(float64) string { return "" }

// At implements Loss. The second derivative jumps where the loss reaches 0. Its value at the
// jump is that of the generalised second derivative of Mangasarian (A finite Newton method for
// classification, Optimization Methods and Software 17, 2002).
func (SquaredHinge) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		b.squaredHinge(i, sign(b.Label[i]), m)
	}
}

// squaredHinge sets the outputs of row i, which has margin m.
func (b *Batch) squaredHinge(i int, s, m float64) {
	loss, slope, curve := 0.0, 0.0, 0.0
	if t := 1 - float64(s*m); !(t <= 0) {
		loss, slope, curve = t*t, -2*float64(s*t), 2
	}
	b.Loss[i], b.Slope[i] = loss, slope
	if b.Curve != nil {
		b.Curve[i] = curve
	}
}

// SquaredHingeOneVsRest is SquaredHinge with s = +1 for one class and −1 for all others.
type SquaredHingeOneVsRest struct {
	SquaredHinge
	Class int
}

// Shape implements Loss.
func (l SquaredHingeOneVsRest) Shape(f *rows.Facts) (Shape, error) { return oneVsRest(f, l.Class) }

// At implements Loss, with the second derivative of SquaredHinge.
func (l SquaredHingeOneVsRest) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		b.squaredHinge(i, side(b.Label[i], l.Class), m)
	}
}
