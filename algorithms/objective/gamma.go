package objective

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Gamma is half the deviance of values y > 0 with mean exp(m): y·exp(−m) + m − log y − 1.
type Gamma struct{}

// String implements Loss.
func (Gamma) String() string { return "gamma" }

// Label implements Loss.
func (Gamma) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (Gamma) Shape(*rows.Facts) (Shape, error) { return Shape{Margins: 1}, nil }

func (Gamma) begin(f *rows.Facts) float64 { return kernel.Log(f.LabelMean) }

// Refuses implements Loss.
func (Gamma) Refuses(label float64) string {
	if label <= 0 {
		return fmt.Sprintf("%v is not a value of a gamma distribution: want a number above 0", label)
	}
	return ""
}

// At implements Loss. With u = log y − m it uses y·exp(−m) = exp(u).
func (Gamma) At(b *Batch) {
	u, ratio := b.Work[:b.N], b.Slope[:b.N]
	kernel.LogTo(u, b.Label[:b.N])
	for i, m := range b.Margin[:b.N] {
		u[i] -= m
	}
	kernel.ExpTo(ratio, u)
	for i, r := range ratio {
		b.Loss[i] = (r - 1) - u[i]
		b.Slope[i] = 1 - r
		if b.Curve != nil {
			b.Curve[i] = r
		}
	}
}
