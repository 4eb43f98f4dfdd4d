package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// Squared is half the squared difference, ½(m−y)², the loss of least squares.
type Squared struct{}

// String implements Loss.
func (Squared) String() string { return "squared" }

// Label implements Loss.
func (Squared) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (Squared) Shape(f *rows.Facts) (Shape, error) {
	return Shape{Margins: 1, Unit: labelSpread(f)}, nil
}

func (Squared) begin(f *rows.Facts) float64 { return f.LabelMean }

// Refuses implements Loss.
func (Squared) Refuses(float64) string { return "" }

// At implements Loss.
func (Squared) At(b *Batch) {
	for i, m := range b.Margin[:b.N] {
		r := m - b.Label[i]
		b.Loss[i] = 0.5 * float64(r*r)
		b.Slope[i] = r
	}
	if b.Curve != nil {
		fill(b.Curve[:b.N], 1)
	}
}

func fill(to []float64, v float64) {
	for i := range to {
		to[i] = v
	}
}
