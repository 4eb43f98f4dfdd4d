package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Linear is the weighted sum of a loss over checked rows, with margins that are linear
// in the features: an objective for package optim, whose evaluators are linear, curved
// and sampled ones.
//
// # Parameters
//
// For each margin that has coefficients: the coefficients of all features, then the
// intercept, unless NoIntercept; then the constants of the loss. The coefficients are
// those of scaled features: (x−mean)/std for dense rows with an intercept, x/std
// otherwise; the data are neither copied nor changed for it. A feature that is constant
// beside an intercept has coefficient 0.
type Linear struct {
	Table rows.Table
	Loss  Loss
	// NoIntercept leaves the intercepts out.
	NoIntercept bool
	// NoStandardize puts the penalty on the coefficients of the features as they are,
	// in place of those of scaled features.
	NoStandardize bool
	// ClassWeights multiply the weights of the rows of classes, by the text of the class;
	// classes that are not named keep theirs.
	ClassWeights map[string]float64
	// Balanced multiplies the weights of each class so that all classes weigh the same
	// and the total stays.
	Balanced bool
}

// Coefficients are parameters on the scale of the features as they are.
type Coefficients struct {
	Margins, D int
	Weights    []float64 // Margins×D, row by row
	Intercepts []float64 // Margins; zeros without intercepts
	Constants  []float64 // of the loss
}
