package kmeans

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/engine"
)

// BisectingParams are the parameters of TrainBisecting. Among Params, MaxIter is the largest
// number of updates within a bisection, and Tol ends a bisection. Init must have its zero
// value, because bisections draw their own first centres. Precision must be Double.
type BisectingParams struct {
	Params
	// Split is the rule by which the next cluster to cut is chosen; the zero value is
	// LargestInertia.
	Split Split
	// Trials is the number of times that each cut is tried. Each trial starts from different
	// rows. The trial with the smallest inertia is used. 0 means 3.
	Trials int
}

const defaultTrials = 3

// Split is the rule by which the next cluster to cut is chosen.
type Split int

const (
	// LargestInertia cuts the cluster with the largest inertia.
	LargestInertia Split = iota
	// LargestSize cuts the cluster with the largest weight.
	LargestSize
)

var splits = enum.Names[Split]{Type: "Split", What: "split", Names: []string{"largest inertia", "largest size"}}

// String returns "largest inertia" or "largest size".
func (s Split) String() string { return splits.String(s) }

// MarshalText implements encoding.TextMarshaler.
func (s Split) MarshalText() ([]byte, error) { return splits.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (s *Split) UnmarshalText(text []byte) error { return splits.Parse(s, text) }

// Validate returns all errors about the parameters, joined.
func (p BisectingParams) Validate() error {
	errs := p.Params.problems()
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.Init != KMeansParallel {
		bad("Init is %v: bisecting draws its first centres itself", p.Init)
	}
	if p.Trials < 0 || p.Trials > math.MaxInt16 {
		bad("Trials is %d: want 1 to %d, or 0 for %d", p.Trials, math.MaxInt16, defaultTrials)
	}
	errs = append(errs, enum.Check(p.Split)...)
	return errors.Join(append(errs, p.Params.doubleOnly("bisections")...)...)
}

// TrainBisecting trains a model by bisecting k-means. It begins with all rows in one cluster.
// Then it repeatedly cuts one cluster in two, by k-means with two centres, until there are K
// clusters. A superstep reads only the rows of one cluster. So if a bisection takes s
// supersteps, all K-1 cuts together read each row about s·log2 K times. TrainBisecting is
// suited to large K, and gives clusters of more even size than Train.
//
// The result is a model like the models of Train. It has the centres of the final K clusters,
// in the order in which the cuts made the clusters. The model predicts the nearest centre. The
// cluster of a training row in predictions may therefore differ from the cluster to which the
// cuts assigned the row; this does not increase the inertia. One more pass over all rows
// evaluates the centres, so that the model has the sizes and the inertia that predictions for
// the training rows give. To improve the centres further, pass them to Train as Centers.
//
// The queue is named "kmeans bisecting". It reports the number of clusters as "clusters", and
// in each superstep of a bisection the inertia of the best trial as "inertia".
func TrainBisecting(points *engine.Dataset, p BisectingParams) *engine.Dataset {
	p.Trials = cmp.Or(p.Trials, defaultTrials)
	if p.K == 1 && p.Validate() == nil {
		// With K = 1 no cluster has to be cut. The only centre is the mean of all rows,
		// whatever the first centre is.
		p.Init = Random
		return Train(points, p.Params)
	}
	return trainBy("kmeans.TrainBisecting", points, p.Params, p.Validate(), false, func(b *engine.Builder, rows *engine.Dataset, in input, own Params) *engine.Dataset {
		p.Params = own
		return bisecting{in, p}.addQueue(b, rows)
	})
}
