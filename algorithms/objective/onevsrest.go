package objective

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// HingeOneVsRest is Hinge with s = +1 for one class and −1 for all others. A one-vs-rest
// classifier has one such loss for each class, each with its own parameters. With two classes,
// the loss for Class 1 equals Hinge.
type HingeOneVsRest struct{ Class int }

// String implements Loss.
func (HingeOneVsRest) String() string { return "hinge" }

// Label implements Loss.
func (HingeOneVsRest) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (l HingeOneVsRest) Shape(f *rows.Facts) (Shape, error) { return oneVsRest(f, l.Class) }

// Refuses implements Loss.
func (HingeOneVsRest) Refuses(float64) string { return "" }

// At implements Loss. The second derivative is 0, also at the kink.
func (l HingeOneVsRest) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		s := side(b.Label[i], l.Class)
		b.Loss[i], b.Slope[i] = 0, 0
		if t := 1 - float64(s*m); !(t <= 0) {
			b.Loss[i], b.Slope[i] = t, -s
		}
	}
	if b.Curve != nil {
		clear(b.Curve[:b.N])
	}
}

func (l HingeOneVsRest) line(label float64) line {
	return line{s: side(label, l.Class), c: 1, lo: 0, hi: 1}
}

// SquaredHingeOneVsRest is SquaredHinge with s = +1 for one class and −1 for all others.
type SquaredHingeOneVsRest struct{ Class int }

// String implements Loss.
func (SquaredHingeOneVsRest) String() string { return "squared hinge" }

// Label implements Loss.
func (SquaredHingeOneVsRest) Label() rows.LabelKind { return rows.ClassLabel }

// Shape implements Loss.
func (l SquaredHingeOneVsRest) Shape(f *rows.Facts) (Shape, error) { return oneVsRest(f, l.Class) }

// Refuses implements Loss.
func (SquaredHingeOneVsRest) Refuses(float64) string { return "" }

// At implements Loss, with the generalised second derivative of SquaredHinge.
func (l SquaredHingeOneVsRest) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		s := side(b.Label[i], l.Class)
		loss, slope, curve := 0.0, 0.0, 0.0
		if t := 1 - float64(s*m); !(t <= 0) {
			loss, slope, curve = t*t, -2*float64(s*t), 2
		}
		b.Loss[i], b.Slope[i] = loss, slope
		if b.Curve != nil {
			b.Curve[i] = curve
		}
	}
}

// side returns +1 for the class and −1 for all others.
func side(label float64, class int) float64 {
	if label == float64(class) {
		return 1
	}
	return -1
}

// oneVsRest returns the shape of losses of one class against the rest.
func oneVsRest(f *rows.Facts, class int) (Shape, error) {
	switch k := len(f.Classes); {
	case k == 1:
		return Shape{}, rows.TwoClasses("", f.Classes)
	case class < 0 || class >= k:
		return Shape{}, fmt.Errorf("class %d is to be separated from the rest, and the labels have %d classes", class, k)
	}
	return Shape{Margins: 1}, f.Weighty()
}
