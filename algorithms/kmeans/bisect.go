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
// number of updates within a bisection, and Tol ends a bisection. Init must be left at its zero
// value, since bisections draw their own first centres. Precision must be Double.
type BisectingParams struct {
	Params
	// Split says which cluster is cut in two next; the zero value is LargestInertia.
	Split Split
	// Trials is how often each cut is tried, each time from other rows. The trial of least
	// inertia counts. 0 means 3.
	Trials int
}

const defaultTrials = 3

// Split says which cluster is cut in two next.
type Split int

const (
	// LargestInertia cuts the cluster of largest inertia.
	LargestInertia Split = iota
	// LargestSize cuts the cluster of largest weight.
	LargestSize
)

var splits = enum.Names[Split]{Type: "Split", What: "split", Names: []string{"largest inertia", "largest size"}}

// String returns "largest inertia" or "largest size".
func (s Split) String() string { return splits.String(s) }

// MarshalText implements encoding.TextMarshaler.
func (s Split) MarshalText() ([]byte, error) { return splits.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (s *Split) UnmarshalText(text []byte) error { return splits.Parse(s, text) }

// Validate returns everything that is wrong with the parameters.
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

// TrainBisecting is Train by bisecting k-means: it begins with all rows in one cluster and cuts
// one cluster in two, by k-means with two centres, until there are K. A superstep reads the
// rows of one cluster only. All K-1 cuts together therefore read each row about log2 K times as
// often as one bisection has supersteps. This suits large K, and gives clusters of more even
// size.
//
// The result is a model like that of Train, with the centres of the last K clusters, in the
// order in which they were cut off. It predicts the nearest centre. This need not be the
// cluster to which the cuts led a row, and gives an inertia that is no larger. One more pass
// evaluates the centres, so that sizes and inertia of the model are those of predicting the
// training rows. To improve the centres further, give them to Train as Centers.
//
// Its queue is named "kmeans bisecting". It reports "clusters", and in each superstep of a
// bisection the "inertia" of the best trial.
func TrainBisecting(points *engine.Dataset, p BisectingParams) *engine.Dataset {
	p.Trials = cmp.Or(p.Trials, defaultTrials)
	if p.K == 1 && p.Validate() == nil {
		// There is nothing to cut: the only centre is the mean of all rows, wherever training
		// begins.
		p.Init = Random
		return Train(points, p.Params)
	}
	return trainBy("kmeans.TrainBisecting", points, p.Params, p.Validate(), false, func(b *engine.Builder, rows *engine.Dataset, in input, own Params) *engine.Dataset {
		p.Params = own
		return bisecting{in, p}.addQueue(b, rows)
	})
}
