package objective

import (
	"fmt"
	"math"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Loss is a loss of a row's label and its margins, which are linear in the parameters. A Loss
// is a small value without state, and all subtasks use the same value.
type Loss interface {
	// String returns the name of the loss, such as "logistic".
	String() string
	// Label returns the kind of labels that the loss needs.
	Label() rows.LabelKind
	// Shape checks the parameters of the loss against the facts, such as the number of classes,
	// and returns the number of margins of a row.
	Shape(f *rows.Facts) (Shape, error)
	// Refuses returns the reason why a label is not valid for the loss, or "" if it is valid.
	Refuses(label float64) string
	// At evaluates the loss for the rows of a batch.
	At(b *Batch)
}

// beginning is a Loss of one margin that can compute a good first intercept. begin returns the
// margin that approximately minimises the loss if all rows have the same margin.
type beginning interface {
	begin(f *rows.Facts) float64
}

// nearlyNonsmooth is a Loss that may be close to a loss with kinks. Its second derivatives are
// then useful only for very small steps.
type nearlyNonsmooth interface {
	nearlyNonsmooth(f *rows.Facts) bool
}

// Shape describes the margins of a row.
type Shape struct {
	// Margins is the number of margins with coefficients. Each also has an intercept, unless
	// intercepts are omitted.
	Margins int
	// Constants is the number of further margins. Such a margin is itself a parameter and is
	// the same for every row. An example is the logarithm of a scale. Constants have no
	// penalty.
	Constants int
	// Unit is the magnitude of a large slope of the loss. For squared losses it is the unit of
	// the labels. 0 means 1.
	Unit float64
}

// Total returns the number of margins of a row.
func (s Shape) Total() int { return s.Margins + s.Constants }

// Batch has the inputs and outputs of a loss for a block of rows. The slices belong to the
// caller.
type Batch struct {
	N, K int // number of rows, and number of margins per row
	// Label has N labels. Censor has N indicators, 1 if the event of the row was observed and
	// else 0; nil means that every event was observed.
	Label, Censor []float64
	// Prox has the N multipliers that are the centres of a Smooth loss; nil means zeros. Mu is
	// the current μ of a Smooth loss; 0 means the first μ.
	Prox []float64
	Mu   float64
	// Margin has N×K margins, row by row.
	Margin []float64
	// Loss is an output of N values. With SlopesOnly it need not be set.
	Loss       []float64
	SlopesOnly bool
	// Slope is an output of N×K values: first derivatives by the margins, row by row.
	Slope []float64
	// Curve is an output unless it is nil. It has second derivatives, or a substitute for them.
	// The N values for the margins a and b ≤ a begin at (a(a+1)/2+b)·N.
	Curve []float64
	// Stepping is set if Curve is used for the steps of an optimiser such as Newton's method.
	// Otherwise Curve is used for the covariance of the coefficients, and a Loss may write
	// expected second derivatives instead.
	Stepping bool
	// Work is scratch memory for N×K values.
	Work []float64
}

// clearCurve sets the second derivatives of a piecewise linear loss of one margin to 0.
func (b *Batch) clearCurve() {
	if b.Curve != nil {
		clear(b.Curve[:b.N])
	}
}

// sign returns −1 for class 0 and +1 for class 1. It has no branch, because a branch would be
// mispredicted for half of the rows.
func sign(class float64) float64 { return float64(2*class) - 1 }

// side returns +1 for the class and −1 for all others.
func side(label float64, class int) float64 {
	if label == float64(class) {
		return 1
	}
	return -1
}

// twoClasses returns the shape of losses of two classes.
func twoClasses(f *rows.Facts) (Shape, error) {
	switch {
	case len(f.Classes) == 1:
		return Shape{}, rows.TwoClasses("", f.Classes)
	case len(f.Classes) > 2:
		return Shape{}, fmt.Errorf("the labels have %d classes, and this loss takes two: %s", len(f.Classes), fewOf(f.Classes))
	}
	return Shape{Margins: 1}, f.Weighty()
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

// labelSpread returns the Unit of losses whose slopes are differences from labels: the standard
// deviation of the labels.
func labelSpread(f *rows.Facts) float64 {
	if f.LabelStd > 0 {
		return f.LabelStd
	}
	return math.Abs(f.LabelMean)
}

// fewOf returns a text with the first five names, separated by commas, for messages.
func fewOf(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// finitePositive reports whether v is finite and above 0.
func finitePositive(v float64) bool { return v > 0 && v <= math.MaxFloat64 }
