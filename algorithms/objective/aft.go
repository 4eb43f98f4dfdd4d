package objective

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// AFT is the negative log-likelihood of an accelerated failure time model with Weibull errors
// (Kalbfleisch and Prentice, The Statistical Analysis of Failure Time Data): the logarithm of
// the survival time y > 0 is m + σ·ε with ε from the standard minimum extreme value
// distribution. With z = (log y − m)/σ, a row with an observed event has the loss exp(z) − z +
// log σ. A censored row, whose Censor is 0, has the loss exp(z). (This is the likelihood of log
// y. For y itself, the loss has a further term log y, on which no parameter has an influence.)
//
// log σ is the constant margin of the loss, its last parameter. The loss is not convex in log σ
// and the margin together. Far from the optimum, Newton's method must therefore add a positive
// diagonal matrix to the matrix of second derivatives.
type AFT struct{}

// String implements Loss.
func (AFT) String() string { return "accelerated failure time" }

// Label implements Loss.
func (AFT) Label() rows.LabelKind { return rows.NumberLabel }

// Shape implements Loss.
func (AFT) Shape(*rows.Facts) (Shape, error) { return Shape{Margins: 1, Constants: 1}, nil }

func (AFT) begin(f *rows.Facts) float64 { return kernel.Log(f.LabelMean) }

// Refuses implements Loss.
func (AFT) Refuses(label float64) string {
	if label <= 0 {
		return fmt.Sprintf("%v is not a survival time: want a number above 0", label)
	}
	return ""
}

// At implements Loss.
func (AFT) At(b *Batch) {
	z, e := b.Work[:b.N], b.Work[b.N:2*b.N]
	kernel.LogTo(z, b.Label[:b.N])
	for i := range z {
		e[i] = -b.Margin[2*i+1]
	}
	kernel.ExpTo(e, e)
	// The inverse scale is stored where the first slope will be written later.
	for i, inverse := range e {
		b.Slope[2*i] = inverse
		z[i] = (z[i] - b.Margin[2*i]) * inverse
	}
	kernel.ExpTo(e, z)
	for i, ez := range e {
		seen := 1.0
		if b.Censor != nil {
			seen = b.Censor[i]
		}
		inverse, theta := b.Slope[2*i], b.Margin[2*i+1]
		b.Loss[i] = ez - float64(seen*(z[i]-theta))
		b.Slope[2*i] = -inverse * (ez - seen)
		b.Slope[2*i+1] = seen - float64(z[i]*(ez-seen))
		if b.Curve != nil {
			zez := float64(z[i] * ez)
			b.Curve[i] = float64(inverse*inverse) * ez
			b.Curve[b.N+i] = inverse * (ez - seen + zez)
			b.Curve[2*b.N+i] = z[i] * (ez - seen + zez)
		}
	}
}
