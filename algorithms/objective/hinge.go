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
		b.Loss[i], b.Slope[i] = hinge(sign(b.Label[i]), m)
	}
	b.clearCurve()
}

func (Hinge) line(label float64) line { return hingeLine(sign(label)) }

// hinge returns the loss and the slope of a row with margin m.
func hinge(s, m float64) (loss, slope float64) {
	if t := 1 - float64(s*m); !(t <= 0) {
		return t, -s
	}
	return 0, 0
}

func hingeLine(s float64) line { return line{s: s, c: 1, lo: 0, hi: 1} }

// HingeOneVsRest is Hinge with s = +1 for one class and −1 for all others. A one-vs-rest
// classifier has one such loss for each class, each with its own parameters. With two classes,
// the loss for Class 1 equals Hinge.
type HingeOneVsRest struct {
	Hinge
	Class int
}

// Shape implements Loss.
func (l HingeOneVsRest) Shape(f *rows.Facts) (Shape, error) { return oneVsRest(f, l.Class) }

// At implements Loss, with the second derivative of Hinge.
func (l HingeOneVsRest) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		b.Loss[i], b.Slope[i] = hinge(side(b.Label[i], l.Class), m)
	}
	b.clearCurve()
}

func (l HingeOneVsRest) line(label float64) line { return hingeLine(side(label, l.Class)) }
