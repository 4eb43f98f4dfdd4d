package objective

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Tweedie is half the deviance of values y ≥ 0 with mean exp(m) and variance in proportion to
// mean^Power, 1 < Power < 2. Such a value is distributed like the sum of N gamma values, where
// N has a Poisson distribution (Jørgensen, Exponential dispersion models, Journal of the Royal
// Statistical Society B 49, 1987). A Power of 0 means 1.5.
type Tweedie struct{ Power float64 }

func (l Tweedie) power() float64 { return cmp.Or(l.Power, 1.5) }

// String implements Loss.
func (Tweedie) String() string { return "tweedie" }

// Label implements Loss.
func (Tweedie) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (l Tweedie) Shape(f *rows.Facts) (Shape, error) {
	if p := l.power(); !(p > 1 && p < 2) {
		return Shape{}, fmt.Errorf("the power of the tweedie loss is %v: want one between 1 (poisson) and 2 (gamma), or 0 for 1.5", p)
	}
	unit := 0.0
	if f.LabelMean > 0 {
		unit = kernel.Pow(f.LabelMean, 2-l.power())
	}
	return Shape{Margins: 1, Unit: unit}, nil
}

func (Tweedie) begin(f *rows.Facts) float64 { return kernel.Log(f.LabelMean) }

// Refuses implements Loss.
func (Tweedie) Refuses(label float64) string {
	if label < 0 {
		return fmt.Sprintf("%v is negative: values with a tweedie distribution are 0 or more", label)
	}
	return ""
}

// At implements Loss. With a = Power−1 and b = 2−Power the loss is
// y·exp(−a·m)/a + exp(b·m)/b − y^b/(a·b).
func (l Tweedie) At(b *Batch) {
	p := l.power()
	down, up := p-1, 2-p
	low, high := b.Work[:b.N], b.Slope[:b.N]
	for i, m := range b.Margin[:b.N] {
		low[i], high[i] = -down*m, up*m
	}
	kernel.ExpTo(low, low)
	kernel.ExpTo(high, high)
	kernel.PowByTo(b.Loss[:b.N], b.Label[:b.N], up)
	for i, h := range high {
		y := b.Label[i]
		g := float64(y * low[i])
		b.Loss[i] = g/down + h/up - b.Loss[i]/(down*up)
		b.Slope[i] = h - g
		if b.Curve != nil {
			b.Curve[i] = float64(down*g) + float64(up*h)
		}
	}
}
