package operators

import (
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
)

// Split divides a dataset at random into as many as there are weights: every row
// is in exactly one of them, in its place, and in the k-th with probability
// weights[k] divided by their sum. Weights are positive.
//
//	parts := operators.Split(rows, 0.8, 0.2)
//	train, test := parts[0], parts[1]
//
// Where a row goes depends on the job's seed, on its shard and place there, and on where in
// the job the dataset comes from. Every Split draws numbers of its own: one of a part is
// independent of the one that made the part, and so is a second one of the same dataset.
// SplitWith has a seed, by which the same parts can be made again.
func Split(d *engine.Dataset, weights ...float64) []*engine.Dataset {
	return SplitWith(d, SplitOptions{}, weights...)
}

// SplitOptions says how SplitWith draws.
type SplitOptions struct {
	// Seed, unless it is 0, makes the parts such that can be made again: two splits of one
	// dataset by the same seed and weights have the same parts, whatever else the job
	// does, and are independent if their seeds differ. The job's seed counts too.
	Seed uint64
}

// SplitWith is Split with options. By the same seed, too, splits of different datasets and
// of parts are independent of each other.
func SplitWith(d *engine.Dataset, opts SplitOptions, weights ...float64) []*engine.Dataset {
	const op = "Split"
	b := builderOf(op, d)
	parts := make([]*engine.Dataset, len(weights))
	bounds, ok := splitBounds(b, weights)
	var purpose string // that of all parts, so that each row is in one
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

// splitBounds returns the ends of the intervals of [0, 1) that belong to the
// weights, or records what is wrong with them. They ascend from 0 to 1 whatever
// the rounding, so that the intervals leave no gap and do not overlap.
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
