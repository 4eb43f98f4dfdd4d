package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
)

// line is one line of the result.
type line struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"` // that ran
	Chosen     bool    `json:"chosen"`    // by the group, not by name
	Executor   string  `json:"executor"`
	Ranks      int     `json:"ranks"`
	Bytes      int     `json:"bytes"` // of a rank's larger buffer
	Count      int     `json:"count"` // elements
	Type       string  `json:"type"`
	Op         string  `json:"op,omitempty"`
	InPlace    bool    `json:"in_place"`
	Iterations int     `json:"iterations"` // in all rounds
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Min        float64 `json:"min_us"`
	Mean       float64 `json:"mean_us"`
	AlgBW      float64 `json:"algbw_gbs"` // bytes / p50
	BusBW      float64 `json:"busbw_gbs"` // what links carry: algbw times busFactor
	Errors     int64   `json:"errors"`    // wrong elements, all ranks together

	// Rounds has the p50 of each round alone: what disturbs a machine for a while shows
	// there, since it only lengthens some.
	Rounds []float64 `json:"round_p50_us"`

	times []float64 // of the runs so far, in seconds
}

// busFactor corrects the bandwidth for what a collective must move over a link per byte
// of data, so that it can be held against the hardware whatever the number of ranks
// (the convention of nccl-tests).
func busFactor(k program.Collective, p int) float64 {
	share := float64(p-1) / float64(p)
	switch k {
	case program.AllReduce:
		return 2 * share
	case program.AllGather, program.ReduceScatter, program.AllToAll, program.Gather, program.Scatter:
		return share
	default:
		return 1
	}
}

// measure runs a collective at one size, for one round. Every rank gets the same line,
// not summarised yet.
func measure(ctx context.Context, c *collective.Comm, cmd *collectiveCommand, k program.Collective, by string, bytes int) (*line, error) {
	switch cmd.Type {
	case "float32":
		return measureOf[float32](ctx, c, cmd, k, by, bytes)
	case "int64":
		return measureOf[int64](ctx, c, cmd, k, by, bytes)
	case "int32":
		return measureOf[int32](ctx, c, cmd, k, by, bytes)
	case "uint8":
		return measureOf[uint8](ctx, c, cmd, k, by, bytes)
	default:
		return measureOf[float64](ctx, c, cmd, k, by, bytes)
	}
}

func measureOf[T collective.Number](ctx context.Context, c *collective.Comm, cmd *collectiveCommand, k program.Collective, by string, bytes int) (*line, error) {
	x := newCase[T](c, k, cmd, by, bytes)
	x.reset()
	if err := x.call(ctx); err != nil {
		return nil, err
	}
	wrong := x.wrong()
	for range cmd.Warmup {
		if err := x.call(ctx); err != nil {
			return nil, err
		}
	}
	n, err := iterations(ctx, c, cmd, x.call)
	if err != nil {
		return nil, err
	}
	times, err := timed(ctx, c, k, n, x.call)
	if err != nil {
		return nil, err
	}
	x.reset()
	if err := x.call(ctx); err != nil {
		return nil, err
	}
	by = c.Describe().Algorithm
	wrong += x.wrong()

	// The time of a run is that of the slowest rank.
	total := []int64{wrong}
	if err := allReduce(ctx, c, collective.Max[float64](), times); err != nil {
		return nil, err
	}
	if err := allReduce(ctx, c, collective.Sum[int64](), total); err != nil {
		return nil, err
	}
	l := &line{
		Collective: k.String(), Algorithm: by, Executor: c.Describe().Executor,
		Ranks: c.Size(), Bytes: x.n * x.elem, Count: x.n, Type: cmd.Type,
		InPlace: cmd.InPlace, Errors: total[0], times: times,
	}
	if k.Reduces() {
		l.Op = cmd.Op
	}
	slices.Sort(times)
	l.Rounds = []float64{quantile(times, 0.5) * 1e6}
	return l, nil
}

func allReduce[T collective.Number](ctx context.Context, c *collective.Comm, op collective.Op[T], x []T) error {
	return collective.AllReduce(c, &collective.Reduction[T]{Name: "summary", Op: op, Whole: x, Out: x, Context: ctx})
}

// iterations is how many runs are timed, the same on all ranks.
func iterations(ctx context.Context, c *collective.Comm, cmd *collectiveCommand, call func(context.Context) error) (int, error) {
	if cmd.Iterations > 0 {
		return cmd.Iterations, nil
	}
	const probes = 3
	start := time.Now()
	for range probes {
		if err := call(ctx); err != nil {
			return 0, err
		}
	}
	each := max(time.Since(start).Seconds()/probes, 1e-7)
	n := min(max(int(cmd.Seconds/each), 5), 100_000)
	agreed, err := c.BroadcastInt64(ctx, 0, int64(n))
	return int(agreed), err
}

// timed gives the seconds of each of n runs on this rank. All ranks begin a run at the
// same time, as nearly as a barrier makes them; barriers themselves follow each other.
func timed(ctx context.Context, c *collective.Comm, k program.Collective, n int, call func(context.Context) error) ([]float64, error) {
	times := make([]float64, n)
	for i := range times {
		if k != program.Barrier {
			if err := c.Barrier(ctx); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		if err := call(ctx); err != nil {
			return nil, err
		}
		times[i] = time.Since(start).Seconds()
	}
	return times, nil
}

// join adds another round of the same line.
func (l *line) join(other *line) {
	l.times = append(l.times, other.times...)
	l.Rounds = append(l.Rounds, other.Rounds...)
	l.Errors += other.Errors
}

// summarise fills in the figures of the times.
func (l *line) summarise(k program.Collective) {
	times, sum := l.times, 0.0
	slices.Sort(times)
	l.Iterations = len(times)
	for _, t := range times {
		sum += t
	}
	l.P50, l.P99, l.Min, l.Mean = quantile(times, 0.5)*1e6, quantile(times, 0.99)*1e6, times[0]*1e6, sum/float64(len(times))*1e6
	if l.P50 > 0 {
		l.AlgBW = float64(l.Bytes) / l.P50 / 1e3
		l.BusBW = l.AlgBW * busFactor(k, l.Ranks)
	}
}

// quantile is the smallest of some sorted times that a share of them is below.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// String names the line for errors.
func (l *line) String() string {
	return fmt.Sprintf("%s by %s of %d bytes", l.Collective, l.Algorithm, l.Bytes)
}
