package main

import (
	"context"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// line is one line of the results, with the times from which it is computed.
type line struct {
	benchresult.Line
	times []float64 // times of the runs so far, in seconds
}

// busFactor returns the number of bytes that a link between p ranks must carry per byte of data.
// The bus bandwidth is the algorithm bandwidth times this factor. For any number of ranks, the
// bus bandwidth can be compared with the bandwidth of the hardware. This is the convention of
// nccl-tests.
func (j job) busFactor(p int) float64 {
	share := float64(p-1) / float64(p)
	switch {
	case j.raw == pingPong:
		return 2
	case j.raw != "":
		return 1
	}
	switch j.collective {
	case program.AllReduce:
		return 2 * share
	case program.AllGather, program.ReduceScatter, program.AllToAll, program.Gather, program.Scatter:
		return share
	default:
		return 1
	}
}

// measure runs one round of job j at one size. For a collective, by is the name of the
// algorithm; for plain TCP, it is the way to wait. All ranks get a line with the same times.
// The statistics of the line are set later, by summarise.
func measure(ctx context.Context, c *collective.Comm, cmd *collectiveCommand, j job, by string, bytes int) (*line, error) {
	x, err := cmd.newTimedCase(ctx, c, j, by, bytes)
	if err != nil {
		return nil, err
	}
	defer x.close()
	before, err := check(ctx, x)
	if err != nil {
		return nil, err
	}
	for range cmd.Warmup {
		if err := x.call(ctx); err != nil {
			return nil, err
		}
	}
	n, err := iterations(ctx, c, cmd, x.call)
	if err != nil {
		return nil, err
	}
	times, err := timed(ctx, c, j, n, x.call)
	if err != nil {
		return nil, err
	}
	after, err := check(ctx, x)
	if err != nil {
		return nil, err
	}
	l := &line{Line: benchresult.Line{Collective: j.String(), Chosen: by == "", Ranks: c.Size(), InPlace: cmd.InPlace}, times: times}
	x.describe(&l.Line)

	// The time of a run is the longest time among the ranks.
	total := []int64{before + after}
	if err := allReduce(ctx, c, collective.Max[float64](), times); err != nil {
		return nil, err
	}
	if err := allReduce(ctx, c, collective.Sum[int64](), total); err != nil {
		return nil, err
	}
	l.Errors = total[0]
	slices.Sort(times)
	l.Rounds = []float64{quantile(times, 0.5) * 1e6}
	return l, nil
}

// check runs a case once and returns the number of wrong elements.
func check(ctx context.Context, x timedCase) (wrong int64, err error) {
	x.reset()
	if err := x.call(ctx); err != nil {
		return 0, err
	}
	return x.wrong(), nil
}

func allReduce[T collective.Number](ctx context.Context, c *collective.Comm, op collective.Op[T], x []T) error {
	return collective.AllReduce(c, &collective.Reduction[T]{Name: "summary", Op: op, Whole: x, Out: x, Context: ctx})
}

// iterations returns the number of runs to time: the value of --iterations, or an estimate of
// the number of runs that take --seconds. The number is the same on all ranks.
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

// timed returns the duration of each of n runs on this rank, in seconds. A barrier before each
// run makes all ranks begin it at about the same time. Jobs that are barriers themselves or use
// plain TCP run without these barriers.
func timed(ctx context.Context, c *collective.Comm, j job, n int, call func(context.Context) error) ([]float64, error) {
	times := make([]float64, n)
	for i := range times {
		if j.raw == "" && j.collective != program.Barrier {
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

// join adds the times and errors of other to l. other is another round of the same measurement.
func (l *line) join(other *line) {
	l.times = append(l.times, other.times...)
	l.Rounds = append(l.Rounds, other.Rounds...)
	l.Errors += other.Errors
}

// summarise sets the statistics of l, computed from its times and the bus factor of its job.
func (l *line) summarise(busFactor float64) {
	times, sum := l.times, 0.0
	slices.Sort(times)
	l.Iterations = len(times)
	for _, t := range times {
		sum += t
	}
	l.P50, l.P99, l.Min, l.Mean = quantile(times, 0.5)*1e6, quantile(times, 0.99)*1e6, times[0]*1e6, sum/float64(len(times))*1e6
	if l.P50 > 0 {
		l.AlgBW = float64(l.Bytes) / l.P50 / 1e3
		l.BusBW = l.AlgBW * busFactor
	}
}

// quantile returns the q-quantile of the n elements of sorted: element ⌊q·n⌋, or the last
// element if ⌊q·n⌋ is n.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
