package kmeans

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Params are the parameters of Train. The zero value of each field except VectorCol and K means
// its default.
type Params struct {
	// VectorCol names the column of the points. It has dense vectors, as operators.Vectorize
	// makes them, or sparse vectors. VectorCol is required.
	VectorCol string
	// K is the number of clusters, at least 1 and at most the number of distinct points. Points
	// that are less than about 1e-160 apart are treated as one point, because the squares of
	// such distances are 0. K is required, except with Given, for which 0 means the number of
	// Centers.
	K int
	// MaxIter is the largest number of times the centres are updated; 0 means 100.
	MaxIter int
	// Training ends when no centre moves farther than Tol in an update. Tol is a Euclidean
	// distance in the units of the data (for Cosine, a distance between unit vectors). 0 means
	// 1e-4. A negative value means exactly 0: training continues until no centre moves.
	Tol float64
	// Init is the way in which the first centres are found; the zero value is KMeansParallel.
	Init Init
	// InitSteps is the number of sampling rounds of KMeansParallel; 0 means 3. More rounds
	// follow if fewer than K distinct candidates were found.
	InitSteps int
	// Oversampling is the expected number of candidates that each round of
	// KMeansParallel samples; 0 means 2·K.
	Oversampling float64
	// Centers has the first centres, if Init is Given.
	Centers [][]float64
	// Distance is the measure of distance; the zero value is Euclidean.
	Distance Distance
	// WeightCol names a column of row weights, numbers of 0 or more. Empty means that every row
	// has the weight 1. A row of weight 2 counts as two rows. A row of weight 0 gets a cluster
	// but does not influence the centres.
	WeightCol string
	// PredictionCol and DistanceCol name the columns that the model adds; empty means
	// "cluster" and "distance".
	PredictionCol, DistanceCol string
	// Precision is the precision of rows and distances in training; the zero value is Double.
	Precision Precision
	// Seed is the seed of the random draws; 0 means the seed of the job.
	Seed uint64
	// NonFinite is the policy for rows whose vector is null or contains a NaN or an infinity;
	// the zero value refuses them.
	NonFinite NonFinite
}

const (
	defaultMaxIter   = 100
	defaultTol       = 1e-4
	defaultInitSteps = 3
)

// Validate returns all errors about the parameters, joined.
func (p Params) Validate() error { return errors.Join(p.problems()...) }

// problems returns the errors about the parameters.
func (p Params) problems() []error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.VectorCol == "" {
		bad("VectorCol is empty: name the column of the points")
	}
	switch {
	case p.K < 0, p.K == 0 && p.Init != Given:
		bad("K is %d: want at least 1 cluster", p.K)
	case p.K > math.MaxInt32:
		bad("K is %d: want at most %d clusters", p.K, math.MaxInt32)
	}
	if p.MaxIter < 0 || p.MaxIter >= math.MaxInt32 {
		bad("MaxIter is %d: want 1 to %d, or 0 for %d", p.MaxIter, math.MaxInt32-1, defaultMaxIter)
	}
	if !kernel.Finite(p.Tol) {
		bad("Tol is %v: want a number", p.Tol)
	}
	if p.InitSteps < 0 {
		bad("InitSteps is %d: want at least 1, or 0 for %d", p.InitSteps, defaultInitSteps)
	}
	if !(p.Oversampling >= 0 && p.Oversampling <= math.MaxInt32) {
		bad("Oversampling is %v: want a positive number, or 0 for 2·K", p.Oversampling)
	}
	if p.Precision == Single && p.Distance == Cosine {
		bad("Precision is single and Distance is cosine: single precision needs Euclidean distance")
	}
	errs = append(errs, enum.Check(p.Init, p.Distance, p.Precision, p.NonFinite)...)
	if p.WeightCol != "" && p.WeightCol == p.VectorCol {
		bad("WeightCol and VectorCol are both %q", p.WeightCol)
	}
	if c, d := clusterName(p.PredictionCol), distanceName(p.DistanceCol); c == d {
		bad("PredictionCol and DistanceCol are both %q", c)
	}
	if p.PredictionCol != "" && p.PredictionCol == p.VectorCol {
		bad("PredictionCol and VectorCol are both %q", p.VectorCol)
	}
	if p.DistanceCol != "" && p.DistanceCol == p.VectorCol {
		bad("DistanceCol and VectorCol are both %q", p.VectorCol)
	}
	p.validateCenters(bad)
	return errs
}

// validateCenters reports to bad the first error in Centers that can be found without the data.
func (p Params) validateCenters(bad func(format string, a ...any)) {
	switch {
	case p.Init != Given && p.Centers == nil:
		return
	case p.Init != Given:
		bad("Centers are set but Init is %v: set Init to Given to start from them", p.Init)
		return
	case len(p.Centers) == 0:
		bad("Init is Given but there are no Centers")
		return
	case p.K > 0 && p.K != len(p.Centers):
		bad("K is %d but there are %d Centers", p.K, len(p.Centers))
		return
	}
	dim := len(p.Centers[0])
	for i, c := range p.Centers {
		if len(c) == 0 || len(c) != dim {
			bad("Centers[%d] has %d components, Centers[0] has %d: want the same number, at least 1", i, len(c), dim)
			return
		}
		zeros := true
		for j, v := range c {
			if !kernel.Finite(v) {
				bad("Centers[%d][%d] is %v: want a finite number", i, j, v)
				return
			}
			zeros = zeros && v == 0
		}
		if zeros && p.Distance == Cosine {
			bad("Centers[%d] is a vector of zeros, which has no direction: cosine distance needs one", i)
			return
		}
	}
}

// withDefaults returns the valid parameters p with every zero replaced by its default.
func (p Params) withDefaults(jobSeed uint64) Params {
	if p.Init == Given {
		p.K = len(p.Centers)
	}
	p.MaxIter, p.Tol, p.InitSteps = cmp.Or(p.MaxIter, defaultMaxIter), max(cmp.Or(p.Tol, defaultTol), 0), cmp.Or(p.InitSteps, defaultInitSteps)
	p.Oversampling, p.Seed = cmp.Or(p.Oversampling, 2*float64(p.K)), cmp.Or(p.Seed, jobSeed)
	return p
}

// Init is a way to find the first centres.
type Init int

const (
	// KMeansParallel samples a few times K candidates in InitSteps rounds and clusters them
	// (k-means||, Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, VLDB 2012). The
	// probability of a row is in proportion to its weight times its squared distance to the
	// candidates so far. It takes InitSteps+1 passes over the data.
	KMeansParallel Init = iota
	// Random draws K distinct rows; every row of positive weight has the same probability. It
	// is the fastest way, but the result often has a larger inertia than after the other ways.
	Random
	// KMeansPlusPlus chooses one row after the other. Each time it chooses the best of 2+⌊ln K⌋
	// trials (greedy k-means++, Arthur and Vassilvitskii, SODA 2007). A trial draws a row with
	// a probability in proportion to weight times squared distance to the centres so far.
	// KMeansPlusPlus takes 2·K passes over the data.
	KMeansPlusPlus
	// Given starts from Params.Centers.
	Given
)

var inits = enum.Names[Init]{Type: "Init", What: "init", Names: []string{"k-means||", "random", "k-means++", "given"}}

// String returns "k-means||", "random", "k-means++" or "given".
func (i Init) String() string { return inits.String(i) }

// MarshalText implements encoding.TextMarshaler.
func (i Init) MarshalText() ([]byte, error) { return inits.Text(i) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (i *Init) UnmarshalText(text []byte) error { return inits.Parse(i, text) }

// Distance is a measure of distance.
type Distance int

const (
	// Euclidean is the length of the difference. A centre is the weighted mean of its points,
	// and the inertia is the weighted sum of squared distances.
	Euclidean Distance = iota
	// Cosine is 1 − cos of the angle between two vectors (spherical k-means). A centre is the
	// unit vector of the weighted mean of its points' unit vectors, and the inertia is the
	// weighted sum of distances. The distance equals half the squared length of the difference
	// between the two unit vectors. Points of zeros have no direction and are refused in
	// training.
	Cosine
)

var distances = enum.Names[Distance]{Type: "Distance", What: "distance", Names: []string{"euclidean", "cosine"}}

// String returns "euclidean" or "cosine".
func (d Distance) String() string { return distances.String(d) }

// MarshalText implements encoding.TextMarshaler.
func (d Distance) MarshalText() ([]byte, error) { return distances.Text(d) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (d *Distance) UnmarshalText(text []byte) error { return distances.Parse(d, text) }

// Precision is the precision of rows and distances in training.
type Precision int

const (
	// Double stores rows as float64 and computes in float64.
	Double Precision = iota
	// Single stores dense rows as float32 and computes distances in float32. It takes half the
	// memory, and computes more distances per second. It requires Euclidean distance. Columns
	// of type vector32 are not copied. Sums are float64, and centres are rounded to float32
	// after each update. For d components, squared distances and the inertia have a relative
	// error of at most (d+2)·2⁻²⁴. If the distances of a row to its two nearest centres differ
	// by less than this error, the row may be assigned to either of the two. Models always
	// predict in float64.
	Single
)

var precisions = enum.Names[Precision]{Type: "Precision", What: "precision", Names: []string{"double", "single"}}

// String returns "double" or "single".
func (p Precision) String() string { return precisions.String(p) }

// MarshalText implements encoding.TextMarshaler.
func (p Precision) MarshalText() ([]byte, error) { return precisions.Text(p) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (p *Precision) UnmarshalText(text []byte) error { return precisions.Parse(p, text) }

// arrowType returns the Arrow type of the components.
func (p Precision) arrowType() arrow.DataType {
	if p == Single {
		return arrow.PrimitiveTypes.Float32
	}
	return arrow.PrimitiveTypes.Float64
}

// NonFinite is the policy for rows whose vector is null or contains a NaN or an infinity.
type NonFinite int

const (
	// Refuse ends the run with an error that names row, column and component.
	Refuse NonFinite = iota
	// Skip leaves such rows out of training, and the counter "rows skipped" in the run's report
	// has their number. Predict gives them null as cluster and distance.
	Skip
)

var policies = enum.Names[NonFinite]{Type: "NonFinite", What: "non-finite policy", Names: []string{"refuse", "skip"}}

// String returns "refuse" or "skip".
func (n NonFinite) String() string { return policies.String(n) }

// MarshalText implements encoding.TextMarshaler.
func (n NonFinite) MarshalText() ([]byte, error) { return policies.Text(n) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (n *NonFinite) UnmarshalText(text []byte) error { return policies.Parse(n, text) }
