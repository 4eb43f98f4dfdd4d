package objective

import (
	"fmt"
	"math"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Loss is a loss of a row's label and its margins, which are linear in the parameters.
// A Loss is a small value without state: one serves all subtasks.
type Loss interface {
	// String names the loss, such as "logistic".
	String() string
	// Label says what labels the loss takes.
	Label() rows.LabelKind
	// Shape checks the parameters of the loss against the facts, such as the number of
	// classes, and says how many margins a row has.
	Shape(f *rows.Facts) (Shape, error)
	// Refuses says why a label does not suit the loss, "" where it does.
	Refuses(label float64) string
	// At evaluates the loss for the rows of a batch.
	At(b *Batch)
}

// beginning is a Loss of one margin that knows the intercept at which rows without features
// would about have their minimum, but for offsets.
type beginning interface {
	begin(f *rows.Facts) float64
}

// nearlyNonsmooth is a Loss whose second derivatives may hold only near by.
type nearlyNonsmooth interface {
	nearlyNonsmooth(f *rows.Facts) bool
}

// Shape says what the margins of a row are made of.
type Shape struct {
	// Margins is the number of margins that have coefficients, and an intercept unless
	// that is left out.
	Margins int
	// Constants is the number of further margins that are one parameter each, the same
	// for every row, such as the logarithm of a scale. They are never penalised.
	Constants int
	// Unit is what counts as a large slope: it has the unit of the loss's slopes, which for
	// squares is that of the labels. 0 means 1.
	Unit float64
}

// Total returns the number of margins of a row.
func (s Shape) Total() int { return s.Margins + s.Constants }

// Batch is a block of rows as losses see them. The slices belong to the caller.
type Batch struct {
	N, K int // rows, margins of each
	// Label has N labels, Censor N indicators (nil: every row was seen in full).
	Label, Censor []float64
	// Prox has, for a Smooth loss, the N multipliers that it is drawn to, nil for zeros, and
	// Mu its smoothing, 0 for the first.
	Prox []float64
	Mu   float64
	// Margin has N×K margins, row by row.
	Margin []float64
	// Loss, N values, is written. With SlopesOnly nobody asks for it.
	Loss       []float64
	SlopesOnly bool
	// Slope, N×K first derivatives by the margins, is written.
	Slope []float64
	// Curve is written where it is not nil: second derivatives, or what stands for them,
	// by margins a and b ≤ a, for all rows one behind the other, at (a(a+1)/2+b)·N.
	Curve []float64
	// Stepping says that Curve is for steps of Newton's method and the like. Else it is for
	// the covariance of the coefficients, where a Loss may give what it expects of second
	// derivatives in place of themselves.
	Stepping bool
	// Work has room for N×K values.
	Work []float64
}

// sign returns −1 for class 0 and +1 for class 1, without a branch, which half the
// rows would take.
func sign(class float64) float64 { return float64(2*class) - 1 }

// twoClasses is the shape of losses of two classes.
func twoClasses(f *rows.Facts) (Shape, error) {
	switch {
	case len(f.Classes) == 1:
		return Shape{}, rows.TwoClasses("", f.Classes)
	case len(f.Classes) > 2:
		return Shape{}, fmt.Errorf("the labels have %d classes, and this loss takes two: %s", len(f.Classes), fewOf(f.Classes))
	}
	return Shape{Margins: 1}, f.Weighty()
}

// spread returns the unit of slopes that are differences from labels.
func spread(f *rows.Facts) float64 {
	if f.LabelStd > 0 {
		return f.LabelStd
	}
	return math.Abs(f.LabelMean)
}

// fewOf lists the first of some names.
func fewOf(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// finitePositive says that v is a number above 0.
func finitePositive(v float64) bool { return v > 0 && v <= math.MaxFloat64 }
