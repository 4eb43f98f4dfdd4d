package objective

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Poisson is half the deviance of counts y ≥ 0 with mean exp(m): exp(m) − y·m + y·log y − y.
type Poisson struct{}

// String implements Loss.
func (Poisson) String() string { return "poisson" }

// Label implements Loss.
func (Poisson) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (Poisson) Shape(f *rows.Facts) (Shape, error) { return Shape{Margins: 1, Unit: f.LabelMean}, nil }

func (Poisson) begin(f *rows.Facts) float64 { return kernel.Log(f.LabelMean) }

// Refuses implements Loss.
func (Poisson) Refuses(label float64) string {
	if label < 0 {
		return fmt.Sprintf("%v is negative: counts are 0 or more", label)
	}
	return ""
}

// At implements Loss.
func (Poisson) At(b *Batch) {
	mean := b.Work[:b.N]
	kernel.ExpTo(mean, b.Margin[:b.N])
	kernel.LogTo(b.Loss[:b.N], b.Label[:b.N])
	for i, m := range b.Margin[:b.N] {
		y := b.Label[i]
		loss := mean[i]
		if y > 0 {
			loss = (mean[i] - y) - float64(y*(m-b.Loss[i]))
		}
		b.Loss[i], b.Slope[i] = loss, mean[i]-y
	}
	if b.Curve != nil {
		copy(b.Curve[:b.N], mean)
	}
}
