package tune

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// Group is the handle of one rank in the group that is calibrated. All ranks make the same
// calls of Barrier, Max and With in the same order.
type Group interface {
	Rank() int

	// Peer returns a rank that rank 0 reaches over the network.
	Peer() int

	// Params returns the parameters of the programs that carry out an AllReduce of the group.
	Params() algorithm.Params

	Send(ctx context.Context, to int, data []byte) error
	Recv(ctx context.Context, from int, data []byte) error
	Barrier(ctx context.Context) error

	// Max is an AllReduce: each element of x becomes the maximum over all ranks.
	Max(ctx context.Context, x []float64) error

	// With runs call. While call runs, algorithm a carries out all operations of the collective
	// that it implements.
	With(a *algorithm.Algorithm, call func() error) error

	// Add computes dst[i] += x[i] for all i, with the same code as a reduction of the group.
	Add(dst, x []float64)
}

// reductionSizes has the sizes in bytes of the AllReduces that are timed. For few of the sizes,
// the cost per message dominates; for more sizes, the cost per byte dominates.
var reductionSizes = []int{8, 4 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20}

// Calibrate measures the times of messages between processes, of folding, of copying, of
// barriers, and of AllReduces of the given sizes in bytes (nil means default sizes). On rank 0
// it returns a copy of t whose network and corrections are fitted to the measurements. On the
// other ranks it returns nil.
func (t *Tuner) Calibrate(ctx context.Context, g Group, sizes []int) (*Tuner, error) {
	if sizes == nil {
		sizes = reductionSizes
	}
	measured, err := t.measure(ctx, g, sizes)
	if err != nil || g.Rank() != 0 {
		return nil, err
	}
	fitted := *t
	if fitted.Network, err = simulate.Fit(ctx, t.Network, measured, simulate.Options{}); err == nil {
		fitted.Corrections, err = corrections(ctx, fitted.Network, measured)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrating: %w", err)
	}
	return &fitted, nil
}

// These are the sizes and counts of point-to-point and local measurements. Each measurement
// takes a few milliseconds.
const (
	pingPongs   = 200
	streamBytes = 1 << 20
	streamCount = 32
	localBytes  = 4 << 20
	localRounds = 8
)

// corrections returns, for each measured collective, the ratio of its measured time to the time
// predicted for the fitted network.
func corrections(ctx context.Context, net *simulate.Network, measured []simulate.Sample) ([]Correction, error) {
	prices, err := simulate.Predict(ctx, net, measured, simulate.Options{})
	if err != nil {
		return nil, err
	}
	var all []Correction
	for i, s := range measured {
		if s.Kind == simulate.Collective && prices[i] > 0 {
			all = append(all, Correction{
				Collective: s.Algorithm.Collective, Algorithm: s.Algorithm.Name, Ranks: s.Params.P,
				Bytes: s.Bytes, Factor: s.Seconds / prices[i],
			})
		}
	}
	return all, nil
}

// measure times messages between rank 0 and its peer, local work of rank 0, and collectives of
// all ranks. Only the samples that it returns on rank 0 are used.
func (t *Tuner) measure(ctx context.Context, g Group, sizes []int) ([]simulate.Sample, error) {
	var all []simulate.Sample
	for _, bytes := range []int{8, 16 << 10, 1 << 20} {
		s, err := pingPong(ctx, g, bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, simulate.Sample{Kind: simulate.PingPong, Bytes: bytes, Seconds: s})
	}
	s, err := stream(ctx, g)
	if err != nil {
		return nil, err
	}
	all = append(all, simulate.Sample{Kind: simulate.Stream, Bytes: streamBytes, Seconds: s})
	if g.Rank() == 0 {
		fold, copied := localCosts(g)
		all = append(all,
			simulate.Sample{Kind: simulate.Fold, Bytes: localBytes, Seconds: fold},
			simulate.Sample{Kind: simulate.Copy, Bytes: localBytes, Seconds: copied})
	}
	collectives, err := t.measureAlgorithms(ctx, g, sizes)
	if err != nil {
		return nil, err
	}
	return append(all, collectives...), g.Barrier(ctx)
}

// pingPong returns half of the median time of a message from rank 0 to its peer and back.
func pingPong(ctx context.Context, g Group, bytes int) (float64, error) {
	if err := g.Barrier(ctx); err != nil || g.Rank() != 0 && g.Rank() != g.Peer() {
		return 0, err
	}
	other, first, second := 0, g.Recv, g.Send
	if g.Rank() == 0 {
		other, first, second = g.Peer(), g.Send, g.Recv
	}
	buf := make([]byte, bytes)
	count := pingPongs
	if bytes > 64<<10 {
		count /= 8
	}
	times := make([]time.Duration, 0, count)
	for range count {
		start := time.Now()
		if err := first(ctx, other, buf); err != nil {
			return 0, err
		}
		if err := second(ctx, other, buf); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2].Seconds() / 2, nil
}

// stream returns the time per message in seconds if rank 0 sends many messages to its peer
// without waiting for answers.
func stream(ctx context.Context, g Group) (float64, error) {
	if err := g.Barrier(ctx); err != nil || g.Rank() != 0 && g.Rank() != g.Peer() {
		return 0, err
	}
	other, message, reply := 0, g.Recv, g.Send
	if g.Rank() == 0 {
		other, message, reply = g.Peer(), g.Send, g.Recv
	}
	buf, done := make([]byte, streamBytes), make([]byte, 1)
	start := time.Now()
	for range streamCount {
		if err := message(ctx, other, buf); err != nil {
			return 0, err
		}
	}
	if err := reply(ctx, other, done); err != nil {
		return 0, err
	}
	return time.Since(start).Seconds() / streamCount, nil
}

// localCosts returns the least measured times in seconds of folding localBytes and of copying
// localBytes.
func localCosts(g Group) (fold, copied float64) {
	a, b := make([]float64, localBytes/8), make([]float64, localBytes/8)
	best := func(f func()) float64 {
		least := time.Duration(1<<63 - 1)
		for range localRounds {
			start := time.Now()
			f()
			least = min(least, time.Since(start))
		}
		return least.Seconds()
	}
	fold = best(func() { g.Add(a, b) })
	copied = best(func() { copy(a, b) })
	return fold, copied
}
