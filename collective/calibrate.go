package collective

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/collective/tune"
)

// Calibrate measures what messages between processes, folding and copying cost here,
// and has the group choose algorithms by that from now on. All ranks of a group call
// it, once, before what they want to be quick. It takes ten to fifteen seconds. A group
// within one process has nothing to choose, and returns at once.
//
// It never changes a bit of a result: what competes are programs that give the same.
func Calibrate(ctx context.Context, c *Comm) error {
	net := c.group.net
	if net == nil || len(net.hosts) < 2 {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return c.calibrate(ctx, calibrated)
}

// calibrate does it, with reductions of some sizes.
func (c *Comm) calibrate(ctx context.Context, sizes []int) error {
	net := c.group.net
	samples, err := c.measure(ctx, net.hosts[1][0], sizes)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fitted, err := simulate.Fit(ctx, net.tuner.Network, samples, simulate.Options{})
		if err != nil {
			return c.failed(fmt.Errorf("calibrating: %w", err))
		}
		t := *net.tuner
		t.Network = fitted
		if t.Corrections, err = corrections(ctx, fitted, samples); err != nil {
			return c.failed(fmt.Errorf("calibrating: %w", err))
		}
		net.tuner = &t
	}
	// What was decided before counts no more, on any rank.
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	clear(c.calls.decisions)
	if c.index == 0 {
		clear(net.calls.decisions)
		net.tries.close() // which may be begun anew
	}
	return c.Barrier(ctx)
}

// Sizes and numbers of what is measured: a few milliseconds each.
const (
	pingPongs    = 200
	streamBytes  = 1 << 20
	streamCount  = 32
	localBytes   = 4 << 20
	localRounds  = 8
	calibrateTag = math.MinInt // which no user is likely to choose
)

// corrections are what the fitted network gets wrong about the reductions timed.
func corrections(ctx context.Context, net *simulate.Network, samples []simulate.Sample) ([]tune.Correction, error) {
	prices, err := simulate.Predict(ctx, net, samples, simulate.Options{})
	if err != nil {
		return nil, err
	}
	var all []tune.Correction
	for i, s := range samples {
		if s.Kind == simulate.Collective && prices[i] > 0 {
			all = append(all, tune.Correction{
				Collective: s.Algorithm.Collective, Algorithm: s.Algorithm.Name, Ranks: s.Params.P,
				Bytes: s.Bytes, Factor: s.Seconds / prices[i],
			})
		}
	}
	return all, nil
}

// measure times messages between rank 0 and a rank of another process, what rank 0 does
// alone, and reductions and barriers by all. What rank 0 gets is what counts.
func (c *Comm) measure(ctx context.Context, other int, sizes []int) ([]simulate.Sample, error) {
	var samples []simulate.Sample
	for _, bytes := range []int{8, 16 << 10, 1 << 20} {
		s, err := c.pingPong(ctx, other, bytes)
		if err != nil {
			return nil, err
		}
		samples = append(samples, simulate.Sample{Kind: simulate.PingPong, Bytes: bytes, Seconds: s})
	}
	s, err := c.stream(ctx, other)
	if err != nil {
		return nil, err
	}
	samples = append(samples, simulate.Sample{Kind: simulate.Stream, Bytes: streamBytes, Seconds: s})
	if c.Rank() == 0 {
		fold, copied := localCosts()
		samples = append(samples,
			simulate.Sample{Kind: simulate.Fold, Bytes: localBytes, Seconds: fold},
			simulate.Sample{Kind: simulate.Copy, Bytes: localBytes, Seconds: copied})
	}
	contests, err := c.contests(ctx, sizes)
	if err != nil {
		return nil, err
	}
	samples = append(samples, contests...)
	return samples, c.Barrier(ctx)
}

// pingPong gives half of the time of a message there and back: the median of many.
func (c *Comm) pingPong(ctx context.Context, other, bytes int) (float64, error) {
	if err := c.Barrier(ctx); err != nil || c.Rank() != 0 && c.Rank() != other {
		return 0, err
	}
	buf := make([]uint8, bytes)
	count := pingPongs
	if bytes > 64<<10 {
		count /= 8
	}
	times := make([]time.Duration, 0, count)
	for range count {
		start := time.Now()
		if c.Rank() == 0 {
			if err := Send(c, other, calibrateTag, buf, WithContext(ctx)); err != nil {
				return 0, err
			}
			if err := Recv(c, other, calibrateTag, buf, WithContext(ctx)); err != nil {
				return 0, err
			}
		} else {
			if err := Recv(c, 0, calibrateTag, buf, WithContext(ctx)); err != nil {
				return 0, err
			}
			if err := Send(c, 0, calibrateTag, buf, WithContext(ctx)); err != nil {
				return 0, err
			}
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2].Seconds() / 2, nil
}

// stream gives the time that each of many messages takes, one behind the other.
func (c *Comm) stream(ctx context.Context, other int) (float64, error) {
	if err := c.Barrier(ctx); err != nil || c.Rank() != 0 && c.Rank() != other {
		return 0, err
	}
	buf, done := make([]uint8, streamBytes), make([]uint8, 1)
	start := time.Now()
	for range streamCount {
		var err error
		if c.Rank() == 0 {
			err = Send(c, other, calibrateTag, buf, WithContext(ctx))
		} else {
			err = Recv(c, 0, calibrateTag, buf, WithContext(ctx))
		}
		if err != nil {
			return 0, err
		}
	}
	if c.Rank() != 0 {
		return 0, Send(c, 0, calibrateTag, done, WithContext(ctx))
	}
	if err := Recv(c, other, calibrateTag, done, WithContext(ctx)); err != nil {
		return 0, err
	}
	return time.Since(start).Seconds() / streamCount, nil
}

// localCosts gives the time to fold and to copy localBytes.
func localCosts() (fold, copied float64) {
	n := localBytes / 8
	a, b := make([]float64, n), make([]float64, n)
	op := newTypedOp[float64]()
	op.set(Sum[float64]())
	best := func(f func()) float64 {
		least := time.Duration(1<<63 - 1)
		for range localRounds {
			start := time.Now()
			f()
			least = min(least, time.Since(start))
		}
		return least.Seconds()
	}
	fold = best(func() { op.Fold(bytesOf(a), bytesOf(a), bytesOf(b)) })
	copied = best(func() { copy(a, b) })
	return fold, copied
}

// Tuner is how the group chooses at present: what it prices, and on which network.
// Only that of the process of rank 0 counts. See Explain for its choices.
func (g *TCPGroup) Tuner() *tune.Tuner { return g.local.net.tuner }

// Explain says how the group carries out what is asked for, and why. One choice serves
// all sizes above a power of two up to the next: those of q are priced in the middle.
func (g *TCPGroup) Explain(ctx context.Context, q tune.Query) (*tune.Decision, error) {
	q.Bytes = decisionKey{octave: octave(q.Bytes)}.bytes()
	return g.Tuner().Choose(ctx, q)
}
