package objective

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Quantile is the pinball loss max(Q·(y−m), (Q−1)·(y−m)), whose minimum is the quantile Q
// (Koenker and Bassett, Regression quantiles, Econometrica 46, 1978). A Q of 0 means 0.5, the
// median. The loss has a kink; see Smooth for how to minimise it.
type Quantile struct{ Q float64 }

func (l Quantile) q() float64 { return cmp.Or(l.Q, 0.5) }

// String implements Loss.
func (Quantile) String() string { return "quantile" }

// Label implements Loss.
func (Quantile) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (l Quantile) Shape(*rows.Facts) (Shape, error) {
	if q := l.q(); !(q > 0 && q < 1) {
		return Shape{}, fmt.Errorf("the quantile is %v: want one between 0 and 1, or 0 for the median", q)
	}
	return Shape{Margins: 1}, nil
}

func (Quantile) begin(f *rows.Facts) float64 { return f.LabelMean }

// Refuses implements Loss.
func (Quantile) Refuses(float64) string { return "" }

// At implements Loss. The second derivative is 0, also at the kink, and the slope at the kink
// is 0.
func (l Quantile) At(b *Batch) {
	q := l.q()
	for i, m := range b.Margin[:b.N] {
		r := b.Label[i] - m
		switch {
		case r > 0:
			b.Loss[i], b.Slope[i] = q*r, -q
		case r < 0:
			b.Loss[i], b.Slope[i] = (q-1)*r, 1-q
		default:
			b.Loss[i], b.Slope[i] = r, r // r is 0 or NaN
		}
	}
	b.clearCurve()
}

func (l Quantile) line(label float64) line {
	return line{s: 1, c: label, lo: l.q() - 1, hi: l.q()}
}
