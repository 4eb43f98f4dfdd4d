package tune

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// The algorithms of a collective are measured in interleaved rounds: in each round every
// algorithm runs a batch. If other load on the machine lasts for a round, it slows all
// algorithms in that round, and batches are compared only with batches of the same round: see
// estimate. The minimum over rounds would be misleading: if ranks are rarely running when a
// message arrives, a few batches are by chance far faster than usual.
const (
	maxRounds    = 24
	minRounds    = 4    // number of rounds that are run in any case
	roundSeconds = 0.75 // if the timed runs took longer than this in total, no further round begins

	batchSeconds = 2e-3 // target for the total time of the timed runs of a batch
	maxBatch     = 25   // largest number of timed runs of a batch
	minBatch     = 3    // smallest number of timed runs of a batch, also of the first batch of an algorithm
	batchWarmUps = 2    // runs before the timed ones, since other algorithms have used the sockets, cores and caches

	// After slowRounds rounds, an algorithm is eliminated if its time is above slowFactor times
	// the time of the fastest algorithm. If its time for a size of at least abandonFrom bytes
	// is above abandonFactor times the time of the fastest algorithm, it is not measured for
	// larger sizes.
	slowFactor    = 1.8
	slowRounds    = 4
	abandonFactor = 3
	abandonFrom   = 512 << 10
)

// trial is the measurement of one algorithm, interleaved with trials of other algorithms for
// the same collective.
type trial struct {
	*algorithm.Algorithm
	medians    []float64 // medians[r] is the median time in seconds of the runs in round r; rounds after elimination are absent
	seconds    float64   // set by estimate; +Inf before the first batch
	eliminated bool
}

// estimate sets the field seconds of each trial. The time of a round is the median of the times
// of the trials that are not eliminated. For each round of a trial, estimate computes the ratio
// of the trial's time to the time of the round. seconds is the median of these ratios times the
// median time of all rounds. So a trial that was eliminated after fast rounds has no advantage.
func estimate(trials []*trial) {
	var current, rounds []float64
	for round := 0; ; round++ {
		current = current[:0]
		for _, x := range trials {
			if !x.eliminated && round < len(x.medians) {
				current = append(current, x.medians[round])
			}
		}
		if len(current) == 0 {
			break
		}
		rounds = append(rounds, median(current))
	}
	usual := median(slices.Clone(rounds))
	for _, x := range trials {
		ratios := current[:0]
		for round, t := range x.medians {
			ratios = append(ratios, t/rounds[round])
		}
		x.seconds = usual * median(ratios)
	}
}

// median sorts x and returns its median. For an even number of elements it is the mean of the
// two in the middle.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// fastest returns the least time among the trials that are not eliminated. There is always at
// least one such trial.
func fastest(trials []*trial) float64 {
	m := math.Inf(1)
	for _, x := range trials {
		if !x.eliminated {
			m = min(m, x.seconds)
		}
	}
	return m
}

// measureAlgorithms times AllReduces of the given sizes with every algorithm that the group may
// choose, and barriers with every algorithm. All ranks get the same samples.
func (t *Tuner) measureAlgorithms(ctx context.Context, g Group, sizes []int) ([]simulate.Sample, error) {
	anyTree := []float64{0} // the value of rank 0 is used on all ranks
	if g.Rank() == 0 && t.AnyTree {
		anyTree[0] = 1
	}
	if err := g.Max(ctx, anyTree); err != nil {
		return nil, err
	}
	pr := g.Params()
	var trials []*trial
	for _, a := range algorithm.For(program.AllReduce) {
		if a.Supports(pr) == nil && (anyTree[0] > 0 || a.Canonical != nil && a.Canonical(pr.P)) {
			trials = append(trials, &trial{Algorithm: a})
		}
	}
	var all []simulate.Sample
	for _, bytes := range sizes {
		x := make([]float64, bytes/8)
		if err := interleave(ctx, g, trials, func() error { return g.Max(ctx, x) }); err != nil {
			return nil, err
		}
		all = append(all, samples(trials, pr, bytes)...)
		if limit := abandonFactor * fastest(trials); bytes >= abandonFrom {
			trials = slices.DeleteFunc(trials, func(x *trial) bool { return x.seconds > limit })
		}
	}
	trials, pr.Forest = nil, nil
	for _, a := range algorithm.For(program.Barrier) {
		trials = append(trials, &trial{Algorithm: a})
	}
	err := interleave(ctx, g, trials, func() error { return g.Barrier(ctx) })
	return append(all, samples(trials, pr, 0)...), err
}

// samples returns the results of trials as samples of AllReduces or barriers of the given
// number of bytes.
func samples(trials []*trial, pr algorithm.Params, bytes int) []simulate.Sample {
	var all []simulate.Sample
	for _, x := range trials {
		all = append(all, simulate.Sample{
			Kind: simulate.Collective, Bytes: bytes, Seconds: x.seconds, Algorithm: x.Algorithm, Params: pr, Elem: 8,
		})
	}
	return all
}

// interleave times call with each algorithm in turn. All ranks have the same times, so they
// eliminate the same algorithms.
func interleave(ctx context.Context, g Group, trials []*trial, call func() error) error {
	for _, x := range trials {
		x.medians, x.seconds, x.eliminated = nil, math.Inf(1), false
	}
	spent := 0.0
	for round := 0; round < maxRounds && (round < minRounds || spent < roundSeconds); round++ {
		for i := range trials {
			if round%2 == 1 { // reverse the order, so that no algorithm always runs after the same other algorithm
				i = len(trials) - 1 - i
			}
			if x := trials[i]; !x.eliminated {
				seconds, err := x.runBatch(ctx, g, call)
				if err != nil {
					return err
				}
				spent += seconds
			}
		}
		estimate(trials)
		if round+1 < slowRounds {
			continue
		}
		limit := slowFactor * fastest(trials)
		for _, x := range trials {
			x.eliminated = x.eliminated || x.seconds > limit
		}
	}
	return nil
}

// runBatch times a batch of runs and returns the sum of their times in seconds. Each run begins
// after a barrier. The time of a run is the time of the slowest rank, which all ranks receive.
func (x *trial) runBatch(ctx context.Context, g Group, call func() error) (float64, error) {
	var took time.Duration
	timed := func() error {
		start := time.Now()
		err := call()
		took = time.Since(start)
		return err
	}
	times := make([]float64, min(max(int(batchSeconds/x.seconds), minBatch), maxBatch))
	for i := -batchWarmUps; i < len(times); i++ {
		if err := g.Barrier(ctx); err != nil {
			return 0, err
		}
		if err := g.With(x.Algorithm, timed); err != nil {
			return 0, err
		}
		if i >= 0 {
			times[i] = took.Seconds()
		}
	}
	if err := g.Max(ctx, times); err != nil {
		return 0, err
	}
	slices.Sort(times)
	x.medians = append(x.medians, times[len(times)/2])
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	return sum, nil
}
