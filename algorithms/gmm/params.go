package gmm

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Params are the parameters of Train. The zero value of a field means its default. Only K has
// no default. Params are a stage of pipelines.
type Params struct {
	// VectorCol names the column of the points, a dense vector. Alternatively, FeatureCols
	// names number columns, which are joined in the given order. If both are empty, the points
	// are the dataset's only vector column.
	VectorCol   string
	FeatureCols []string
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1.
	WeightCol string
	// K is the number of components, at least 1. It is required, except with Means or Start,
	// where 0 means the number of their components.
	K int
	// Covariance is the shape of the components; the zero value is Full.
	Covariance Covariance
	// MaxIter is the largest number of updates after the first mixture; 0 means 200.
	MaxIter int
	// Tol ends training when an update raises the mean log-likelihood of a row by at most Tol.
	// 0 means 1e-6. A negative value means a tolerance of 0: training continues as long as the
	// mean log-likelihood rises.
	Tol float64
	// Regularization is added to all variances, in squared units of the features; 0 means 1e-6,
	// and a negative value means that nothing is added.
	Regularization float64
	// Restarts is the number of trainings, each with a k-means of its own. The mixture with the
	// highest likelihood is returned. 0 means 1.
	Restarts int
	// Means are the initial means. Each row is first assigned to the nearest mean.
	Means [][]float64
	// ComponentCol names a column with the initial component of each row, 0 to K-1.
	ComponentCol string
	// PredictionCol and ProbabilityCol name the columns that the model adds; empty means
	// "component" and "probabilities".
	PredictionCol, ProbabilityCol string
	// Start is a mixture with the same Covariance, from which training starts.
	Start *Model
	// Seed is the seed of the random numbers of k-means; 0 means the seed of the job.
	Seed uint64
	// Skip leaves out rows that hold a null, a NaN or an infinity, and counts them as "rows
	// skipped". Without Skip such a row is an error that names row and column.
	Skip bool
}

const (
	defaultMaxIter        = 200
	defaultTol            = 1e-6
	defaultRegularization = 1e-6
)

var _ model.Stage = Params{}

// Kind returns "gmm".
func (Params) Kind() string { return Kind }

// Fit implements model.Stage. It calls Train.
func (p Params) Fit(rows *engine.Dataset) *engine.Dataset { return Train(rows, p) }

// Apply implements model.Stage. It calls Predict with the parameters' column names.
func (p Params) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return Predict(rows, m, PredictOptions{ComponentCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol})
}

// Validate returns all errors in the parameters.
func (p Params) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.K < 0 || p.K == 0 && p.Means == nil && p.Start == nil || p.K > math.MaxInt32 {
		bad("K is %d: want at least 1 component", p.K)
	}
	if p.VectorCol != "" && len(p.FeatureCols) > 0 {
		bad("both VectorCol and FeatureCols are set: set one of them")
	}
	if c, q := componentName(p.PredictionCol), probabilityName(p.ProbabilityCol); c == q {
		bad("PredictionCol and ProbabilityCol are both %q", c)
	}
	for _, read := range append([]string{p.VectorCol}, p.FeatureCols...) {
		if read != "" && (read == p.PredictionCol || read == p.ProbabilityCol) {
			bad("column %q is read, and PredictionCol or ProbabilityCol names it: choose another name", read)
		}
	}
	errs = append(errs, enum.Check(p.Covariance)...)
	if p.MaxIter < 0 || p.MaxIter > math.MaxInt32-2 {
		bad("MaxIter is %d: want 1 to %d, or 0 for %d", p.MaxIter, math.MaxInt32-2, defaultMaxIter)
	}
	if !kernel.Finite(p.Tol) {
		bad("Tol is %v: want a number", p.Tol)
	}
	if !kernel.Finite(p.Regularization) {
		bad("Regularization is %v: want a number", p.Regularization)
	}
	begins := 0
	for _, set := range []bool{p.Means != nil, p.ComponentCol != "", p.Start != nil} {
		if set {
			begins++
		}
	}
	if begins > 1 {
		bad("of Means, ComponentCol and Start more than one is set: training begins from one")
	}
	if p.Restarts < 0 || p.Restarts > maxRestarts {
		bad("Restarts is %d: want 1 to %d, or 0 for 1", p.Restarts, maxRestarts)
	} else if p.Restarts > 1 && begins > 0 {
		bad("Restarts is %d, but training begins from what is given: every restart would be the same", p.Restarts)
	}
	if p.Means != nil {
		errs = append(errs, p.checkMeans())
	}
	if p.Start != nil {
		errs = append(errs, p.checkStart())
	}
	return errors.Join(errs...)
}

const maxRestarts = 1000

// checkMeans returns an error if the given means are not valid.
func (p Params) checkMeans() error {
	if len(p.Means) == 0 || p.K > 0 && p.K != len(p.Means) {
		return fmt.Errorf("there are %d Means but K is %d", len(p.Means), p.K)
	}
	for i, m := range p.Means {
		if len(m) == 0 || len(m) != len(p.Means[0]) {
			return fmt.Errorf("given Means[%d] has %d components, Means[0] has %d: want the same number, at least 1", i, len(m), len(p.Means[0]))
		}
		if j := kernel.NonFinite(m); j >= 0 {
			return fmt.Errorf("given Means[%d][%d] is %v: want a finite number", i, j, m[j])
		}
	}
	return nil
}

// checkStart returns an error if Start does not suit the parameters.
func (p Params) checkStart() error {
	if err := p.Start.check(); err != nil {
		return fmt.Errorf("model Start: %w", err)
	}
	if p.K > 0 && p.K != len(p.Start.Weights) {
		return fmt.Errorf("model Start has %d components but K is %d", len(p.Start.Weights), p.K)
	}
	if p.Covariance != p.Start.Covariance {
		return fmt.Errorf("model Start has %v covariances but Covariance is %v", p.Start.Covariance, p.Covariance)
	}
	return nil
}

// withDefaults returns valid parameters with every zero replaced by its default.
func (p Params) withDefaults(jobSeed uint64) Params {
	switch {
	case p.Means != nil:
		p.K = len(p.Means)
	case p.Start != nil:
		p.K = len(p.Start.Weights)
	}
	p.MaxIter, p.Restarts, p.Seed = cmp.Or(p.MaxIter, defaultMaxIter), max(p.Restarts, 1), cmp.Or(p.Seed, jobSeed)
	p.Tol, p.Regularization = max(cmp.Or(p.Tol, defaultTol), 0), max(cmp.Or(p.Regularization, defaultRegularization), 0)
	return p
}

// columns returns the columns to read.
func (p Params) columns() rows.Columns {
	return rows.Columns{Vector: p.VectorCol, Features: p.FeatureCols, Label: p.ComponentCol, Weight: p.WeightCol, Skip: p.Skip}
}

// Covariance is the shape of components.
type Covariance int

const (
	// Full gives each component its own covariance matrix.
	Full Covariance = iota
	// Diagonal gives each component a variance for each feature.
	Diagonal
	// Spherical gives each component one variance, the mean of the variances of its features.
	Spherical
	// Tied gives all components the same covariance matrix.
	Tied
)

var covariances = enum.Names[Covariance]{Type: "Covariance", What: "covariance", Names: []string{"full", "diagonal", "spherical", "tied"}}

// String returns "full", "diagonal", "spherical" or "tied".
func (c Covariance) String() string { return covariances.String(c) }

// MarshalText implements encoding.TextMarshaler.
func (c Covariance) MarshalText() ([]byte, error) { return covariances.Text(c) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (c *Covariance) UnmarshalText(text []byte) error { return covariances.Parse(c, text) }

// size returns the number of values that store a covariance in d dimensions.
func (c Covariance) size(d int) int {
	switch c {
	case Diagonal:
		return d
	case Spherical:
		return 1
	}
	return triangle(d)
}

// parameters returns the number of free parameters of a mixture.
func (c Covariance) parameters(k, d int) int {
	shapes := k
	if c == Tied {
		shapes = 1
	}
	return k - 1 + k*d + shapes*c.size(d)
}

// triangle returns the size of the lower triangle of an n×n matrix. It is also the offset of
// row n in a larger triangle that is stored row by row.
func triangle(n int) int { return n * (n + 1) / 2 }
