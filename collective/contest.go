package collective

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// calibrated are the sizes of the reductions that are timed: few where a message costs
// the same whatever is in it, more where bytes begin to count.
var calibrated = []int{8, 4 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20}

// A contest goes on for rounds in which every contestant has a turn of some runs. What
// disturbs a machine, and what a scheduler happens to do with two processes for a
// while, so falls on all alike: what counts is a turn beside the others of its round, see
// rate. (The least of the turns would be what the luckiest takes: where ranks are rarely
// awake when a message comes, a few turns are far quicker than what users get.)
const (
	contestRounds  = 24   // at most
	leastRounds    = 4    // however long they take
	contestSeconds = 0.75 // of runs that count, after which no round begins

	turnSeconds = 2e-3 // of a turn, about
	turnRuns    = 25   // at most
	turnLeast   = 3    // at least, and in the first turn
	turnWarmUps = 2    // others have had the sockets, the cores and the caches

	// A contestant that after some rounds took so much longer than the best is out. What
	// was slow with many bytes is not tried with more.
	outFactor      = 1.8
	outRounds      = 4
	hopelessFactor = 3
	hopelessFrom   = 512 << 10
)

// contestant is an algorithm in a contest of those that do the same.
type contestant struct {
	*algorithm.Algorithm
	turns []float64 // the median of each round, in seconds, up to the last round in which it was in
	takes float64   // see rate; +Inf before the first turn
	out   bool
}

// rate estimates the time that each contestant takes: the median over its rounds of its time
// relative to the round's median, times the median of all rounds. The median of a round is that of
// the contestants still in, so that one eliminated after quick rounds gains no advantage.
func rate(field []*contestant) {
	var in, rounds []float64
	for round := 0; ; round++ {
		in = in[:0]
		for _, x := range field {
			if !x.out && round < len(x.turns) {
				in = append(in, x.turns[round])
			}
		}
		if len(in) == 0 {
			break
		}
		rounds = append(rounds, median(in))
	}
	usual := median(slices.Clone(rounds))
	for _, x := range field {
		ratios := in[:0]
		for round, t := range x.turns {
			ratios = append(ratios, t/rounds[round])
		}
		x.takes = usual * median(ratios)
	}
}

// median returns the median of some numbers, which it sorts: of an even number the mean of
// the two in the middle.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// least is what the best of those of a field takes that are in, as one always is.
func least(field []*contestant) float64 {
	m := math.Inf(1)
	for _, x := range field {
		if !x.out {
			m = min(m, x.takes)
		}
	}
	return m
}

// contests times what the processes choose among: reductions of some sizes, and
// barriers. All ranks get the same samples.
func (c *Comm) contests(ctx context.Context, sizes []int) ([]simulate.Sample, error) {
	net := c.group.net
	// Which trees compete is up to rank 0.
	anyTree, err := c.BroadcastBool(ctx, 0, net.tuner.AnyTree)
	if err != nil {
		return nil, err
	}
	pr := algorithm.Params{P: len(net.hosts)}
	if f := net.makeWhole().forest; f != nil {
		pr.Forest = f.nodes
	}
	var field []*contestant
	for _, a := range algorithm.For(program.AllReduce) {
		if a.Supports(pr) == nil && (anyTree || a.Canonical != nil && a.Canonical(pr.P)) {
			field = append(field, &contestant{Algorithm: a})
		}
	}
	var samples []simulate.Sample
	for _, bytes := range sizes {
		x := make([]float64, bytes/8)
		r := &Reduction[float64]{Name: "calibration", Op: Max[float64](), Whole: x, Out: x, Context: ctx}
		if err := c.contest(ctx, field, func() error { return AllReduce(c, r) }); err != nil {
			return nil, err
		}
		samples = append(samples, results(field, pr, bytes)...)
		if limit := hopelessFactor * least(field); bytes >= hopelessFrom {
			field = slices.DeleteFunc(field, func(x *contestant) bool { return x.takes > limit })
		}
	}
	field, pr.Forest = nil, nil
	for _, a := range algorithm.For(program.Barrier) {
		field = append(field, &contestant{Algorithm: a})
	}
	err = c.contest(ctx, field, func() error { return c.Barrier(ctx) })
	return append(samples, results(field, pr, 0)...), err
}

// results are the outcome of a contest.
func results(field []*contestant, pr algorithm.Params, bytes int) []simulate.Sample {
	var samples []simulate.Sample
	for _, x := range field {
		samples = append(samples, simulate.Sample{
			Kind: simulate.Collective, Bytes: bytes, Seconds: x.takes, Algorithm: x.Algorithm, Params: pr, Elem: 8,
		})
	}
	return samples
}

// contest times a call by each algorithm of a field, in turn. All ranks see the same
// times, and so agree about who is out.
func (c *Comm) contest(ctx context.Context, field []*contestant, call func() error) error {
	for _, x := range field {
		x.turns, x.takes, x.out = nil, math.Inf(1), false
	}
	spent := 0.0
	for round := 0; round < contestRounds && (round < leastRounds || spent < contestSeconds); round++ {
		for i := range field {
			if round%2 == 1 { // none has always the same before it
				i = len(field) - 1 - i
			}
			if x := field[i]; !x.out {
				seconds, err := c.turn(ctx, x, call)
				if err != nil {
					return err
				}
				spent += seconds
			}
		}
		rate(field)
		if round+1 < outRounds {
			continue
		}
		limit := outFactor * least(field)
		for _, x := range field {
			x.out = x.out || x.takes > limit
		}
	}
	return nil
}

// turn times some runs of a contestant, and returns their time in all. Each begins with
// a barrier, and lasts as long as for the slowest rank, so that all ranks get the same.
func (c *Comm) turn(ctx context.Context, x *contestant, call func() error) (float64, error) {
	times := make([]float64, min(max(int(turnSeconds/x.takes), turnLeast), turnRuns))
	for i := -turnWarmUps; i < len(times); i++ {
		if err := c.Barrier(ctx); err != nil {
			return 0, err
		}
		c.trying(x.Algorithm)
		start := time.Now()
		err := call()
		if i >= 0 {
			times[i] = time.Since(start).Seconds()
		}
		if c.tried(); err != nil {
			return 0, err
		}
	}
	if err := AllReduce(c, &Reduction[float64]{Name: "calibration", Op: Max[float64](), Whole: times, Out: times, Context: ctx}); err != nil {
		return 0, err
	}
	slices.Sort(times)
	x.turns = append(x.turns, times[len(times)/2])
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	return sum, nil
}

// trying has this process carry out the next collectives by an algorithm, if they are of
// its kind, until tried; all processes do the same. They have connections of their own:
// buffers of sockets grow with what goes through them, and short messages through long
// buffers are slower, which those who use the group are not to be left with.
//
// The first of the ranks says so for all: no other can be in an operation that needs the
// first, which has ended its last one and not begun the next.
func (c *Comm) trying(a *algorithm.Algorithm) {
	if net := c.group.net; c.index == 0 {
		net.tries.trial = a
		net.calls, net.tries = net.tries, net.calls
	}
}

// tried ends trying.
func (c *Comm) tried() {
	if net := c.group.net; c.index == 0 {
		net.calls, net.tries = net.tries, net.calls
	}
}
