package engine

import (
	"math"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// DefaultMTBF is the mean time between failures that --checkpoint-every auto assumes.
const DefaultMTBF = wire.DefaultMTBF

// Limits of the interval that is chosen from the cost of a checkpoint.
const (
	shortestInterval = time.Second
	longestInterval  = 10 * time.Minute
)

// youngInterval returns the time between two checkpoints for which checkpoints and repeated work
// together cost the least, to first order: sqrt(2·cost·mtbf), within limits. See J. W. Young, A first
// order approximation to the optimum checkpoint interval, Communications of the ACM 17(9), 1974.
// cost is the time for which a checkpoint delays the supersteps, and mtbf the mean time between
// failures that end the run.
func youngInterval(cost, mtbf time.Duration) time.Duration {
	seconds := math.Sqrt(2 * max(0, cost.Seconds()) * mtbf.Seconds())
	if seconds >= longestInterval.Seconds() {
		return longestInterval
	}
	return max(shortestInterval, time.Duration(seconds*float64(time.Second)))
}

// intervalFromCost is the time between two checkpoints of a queue, if it is chosen from their cost.
type intervalFromCost struct {
	cost     time.Duration // moving average
	interval time.Duration
}

// measured returns the interval after a further checkpoint has delayed the supersteps for cost. The
// average weighs each cost twice as much as the one before, so that one that other work of the
// machine made longer has no lasting effect.
func (i intervalFromCost) measured(cost, mtbf time.Duration) intervalFromCost {
	if i.interval > 0 {
		cost = i.cost + (cost-i.cost)/2
	}
	return intervalFromCost{cost: cost, interval: youngInterval(cost, mtbf)}
}
