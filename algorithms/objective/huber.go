package objective

import (
	"cmp"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Huber is ½r² for |r| ≤ Delta and Delta·|r| − ½Delta² beyond, with r = m−y (Huber, Robust
// estimation of a location parameter, Annals of Mathematical Statistics 35, 1964). Delta
// is in the units of the label; 0 means 1.35.
type Huber struct{ Delta float64 }

// defaultDelta gives 95 % efficiency if errors have a standard normal distribution.
const defaultDelta = 1.35

func (l Huber) delta() float64 { return cmp.Or(l.Delta, defaultDelta) }

// String implements Loss.
func (Huber) String() string { return "huber" }

// Label implements Loss.
func (Huber) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (l Huber) Shape(f *rows.Facts) (Shape, error) {
	if l.Delta != 0 && !finitePositive(l.Delta) {
		return Shape{}, fmt.Errorf("the delta of the huber loss is %v: want a number above 0, or 0 for %v", l.Delta, defaultDelta)
	}
	return Shape{Margins: 1, Unit: min(l.delta(), labelSpread(f))}, nil
}

// nearlyNonsmooth reports whether most rows probably lie where the loss is linear, so that its
// second derivative is 0.
func (l Huber) nearlyNonsmooth(f *rows.Facts) bool {
	const far = 10
	return f.LabelStd > far*l.delta()
}

func (Huber) begin(f *rows.Facts) float64 { return f.LabelMean }

// Refuses implements Loss.
func (Huber) Refuses(float64) string { return "" }

// At implements Loss.
func (l Huber) At(b *Batch) {
	delta := l.delta()
	for i, m := range b.Margin[:b.N] {
		r := m - b.Label[i]
		loss, slope, curve := 0.5*float64(r*r), r, 1.0
		if a := math.Abs(r); a > delta {
			loss, slope, curve = delta*(a-float64(0.5*delta)), math.Copysign(delta, r), 0
		}
		b.Loss[i], b.Slope[i] = loss, slope
		if b.Curve != nil {
			b.Curve[i] = curve
		}
	}
}
