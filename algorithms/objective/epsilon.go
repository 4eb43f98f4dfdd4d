package objective

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// EpsilonInsensitive is max(0, |m−y|−Epsilon), the loss of support vector regression. The loss
// has kinks; see Smooth for how to minimise it.
type EpsilonInsensitive struct{ Epsilon float64 }

// String implements Loss.
func (EpsilonInsensitive) String() string { return "epsilon-insensitive" }

// Label implements Loss.
func (EpsilonInsensitive) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (l EpsilonInsensitive) Shape(*rows.Facts) (Shape, error) {
	return Shape{Margins: 1}, checkEpsilon(l.Epsilon)
}

func checkEpsilon(epsilon float64) error {
	if epsilon != 0 && !finitePositive(epsilon) {
		return fmt.Errorf("epsilon is %v: want 0 or more", epsilon)
	}
	return nil
}

func (EpsilonInsensitive) begin(f *rows.Facts) float64 { return f.LabelMean }

// Refuses implements Loss.
func (EpsilonInsensitive) Refuses(float64) string { return "" }

// At implements Loss. The second derivative is 0, also at the kinks.
func (l EpsilonInsensitive) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		r := m - b.Label[i]
		loss, slope := 0.0, 0.0
		switch {
		case r > l.Epsilon:
			loss, slope = r-l.Epsilon, 1
		case r < -l.Epsilon:
			loss, slope = -r-l.Epsilon, -1
		case r != r:
			loss, slope = r, r
		}
		b.Loss[i], b.Slope[i] = loss, slope
	}
	b.clearCurve()
}

func (l EpsilonInsensitive) line(label float64) line {
	return line{s: 1, c: label, lo: -1, hi: 1, epsilon: l.Epsilon}
}

// SquaredEpsilonInsensitive is max(0, |m−y|−Epsilon)².
type SquaredEpsilonInsensitive struct{ Epsilon float64 }

// String implements Loss.
func (SquaredEpsilonInsensitive) String() string { return "squared epsilon-insensitive" }

// Label implements Loss.
func (SquaredEpsilonInsensitive) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (l SquaredEpsilonInsensitive) Shape(f *rows.Facts) (Shape, error) {
	return Shape{Margins: 1, Unit: labelSpread(f)}, checkEpsilon(l.Epsilon)
}

// Refuses implements Loss.
func (SquaredEpsilonInsensitive) Refuses(float64) string { return "" }

// At implements Loss. The second derivative is the generalised one, as for SquaredHinge.
func (l SquaredEpsilonInsensitive) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		r := m - b.Label[i]
		loss, slope, curve := 0.0, 0.0, 0.0
		switch {
		case r > l.Epsilon:
			t := r - l.Epsilon
			loss, slope, curve = t*t, 2*t, 2
		case r < -l.Epsilon:
			t := r + l.Epsilon
			loss, slope, curve = t*t, 2*t, 2
		case r != r:
			loss, slope, curve = r, r, r
		}
		b.Loss[i], b.Slope[i] = loss, slope
		if b.Curve != nil {
			b.Curve[i] = curve
		}
	}
}
