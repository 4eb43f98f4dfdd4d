package operators

import (
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
)

// Split divides a dataset at random into one part per weight. Every row is in exactly one part.
// It is in part k with probability weights[k] divided by the sum of the weights. Rows keep
// their shards and order. Weights must be positive.
//
//	parts := operators.Split(rows, 0.8, 0.2)
//	train, test := parts[0], parts[1]
//
// The part of a row depends on the job's seed, on its shard and its index within the shard, and
// on how the job made the dataset. Every Split draws different random numbers: a Split of a
// part is independent of the Split that made the part, and two Splits of one dataset are
// independent of each other. To make the same parts again, use SplitWith and a seed.
func Split(d *engine.Dataset, weights ...float64) []*engine.Dataset {
	return SplitWith(d, SplitOptions{}, weights...)
}

// SplitOptions are the options of SplitWith.
type SplitOptions struct {
	// Seed, unless it is 0, makes the parts reproducible: two splits of one dataset with the
	// same seed and weights have the same parts, whatever else the job does. Splits with
	// different seeds are independent. The random numbers also depend on the job's seed.
	Seed uint64
}

// SplitWith does the same as Split, with options. Splits of different datasets are independent
// of each other, even with the same seed; the parts of a Split are different datasets.
func SplitWith(d *engine.Dataset, opts SplitOptions, weights ...float64) []*engine.Dataset {
	const op = "Split"
	b := builderOf(op, d)
	parts := make([]*engine.Dataset, len(weights))
	bounds, ok := splitBounds(b, weights)
	var purpose string // the same purpose for all parts, so that each row is in exactly one part
	if ok && usable(d) {
		purpose = drawPurpose(op, d, opts.Seed)
	}
	for k := range parts {
		if !ok || !usable(d) {
			parts[k] = b.Poisoned(op)
			continue
		}
		lo, hi := bounds[k], bounds[k+1]
		attrs := []engine.Attr{
			{Key: "part", Value: strconv.Itoa(k+1) + " of " + strconv.Itoa(len(weights))},
			{Key: "from", Value: strconv.FormatFloat(lo, 'g', -1, 64)},
			{Key: "to", Value: strconv.FormatFloat(hi, 'g', -1, 64)},
		}
		if opts.Seed != 0 {
			attrs = append(attrs, engine.Attr{Key: "seed", Value: strconv.FormatUint(opts.Seed, 10)})
		}
		parts[k] = addDrawn(d, op, purpose, attrs, func(u float64) int {
			if lo <= u && u < hi {
				return 1
			}
			return 0
		})
	}
	return parts
}

// splitBounds returns the bounds of consecutive intervals of [0, 1), one interval for each
// weight. If the weights are not valid, it records why and returns false. The bounds ascend
// from 0 to 1 whatever the rounding errors, so the intervals have no gaps and do not overlap.
func splitBounds(b *engine.Builder, weights []float64) ([]float64, bool) {
	if len(weights) == 0 {
		b.Errorf("Split: no weight is given; give one for each part")
		return nil, false
	}
	sum := 0.0
	for k, w := range weights {
		if !(w > 0) || math.IsInf(w, 0) {
			b.Errorf("Split: weight %d is %v; want a positive number", k+1, w)
			return nil, false
		}
		sum += w
	}
	if math.IsInf(sum, 0) {
		b.Errorf("Split: the sum of the weights is not finite")
		return nil, false
	}
	bounds := make([]float64, len(weights)+1)
	upTo := 0.0
	for k, w := range weights {
		upTo += w
		bounds[k+1] = upTo / sum
	}
	return bounds, true
}
