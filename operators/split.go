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
// Where a row goes depends on the job's seed and on its shard and place there. A
// second Split of the same dataset by the same weights gives the same parts.
func Split(d *engine.Dataset, weights ...float64) []*engine.Dataset {
	const op = "Split"
	b := builderOf(op, d)
	parts := make([]*engine.Dataset, len(weights))
	bounds, ok := splitBounds(b, weights)
	for k := range parts {
		if !ok || !usable(d) {
			parts[k] = b.Poisoned(op)
			continue
		}
		lo, hi := bounds[k], bounds[k+1]
		parts[k] = addDrawn(d, op, 0, []engine.Attr{
			{Key: "part", Value: strconv.Itoa(k+1) + " of " + strconv.Itoa(len(weights))},
			{Key: "from", Value: strconv.FormatFloat(lo, 'g', -1, 64)},
			{Key: "to", Value: strconv.FormatFloat(hi, 'g', -1, 64)},
		}, func(u float64) int {
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
