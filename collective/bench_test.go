package collective

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Each benchmark in this file times the package and a plain implementation in short alternating
// bouts, and reports the ratio of their times. So other load on the machine slows both equally.
// ns/op is the sum of the times of both.

// condBarrier is the plain implementation of a barrier. It uses a condition variable and a
// counter.
type condBarrier struct {
	mu    sync.Mutex
	cond  *sync.Cond
	n     int
	count int
	phase int
}

func newCondBarrier(n int) *condBarrier {
	b := &condBarrier{n: n}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *condBarrier) wait() {
	b.mu.Lock()
	phase := b.phase
	if b.count++; b.count == b.n {
		b.count = 0
		b.phase++
		b.cond.Broadcast()
	} else {
		for phase == b.phase {
			b.cond.Wait()
		}
	}
	b.mu.Unlock()
}

// team has n goroutines that run the same function. They are not ended between bouts.
type team struct {
	n    int
	jobs []chan func(rank int)
	done sync.WaitGroup
}

func newTeam(b *testing.B, n int) *team {
	t := &team{n: n, jobs: make([]chan func(int), n)}
	for i := range t.jobs {
		t.jobs[i] = make(chan func(int))
		go func() {
			for body := range t.jobs[i] {
				body(i)
				t.done.Done()
			}
		}()
	}
	b.Cleanup(func() {
		for _, c := range t.jobs {
			close(c)
		}
	})
	return t
}

func (t *team) run(body func(rank int)) time.Duration {
	t.done.Add(t.n)
	start := time.Now()
	for _, c := range t.jobs {
		c <- body
	}
	t.done.Wait()
	return time.Since(start)
}

// compare runs ours and plain alternately on n goroutines, with bout operations in each turn.
// It reports the median times of ours and plain and their ratio.
func compare(b *testing.B, n, bout int, ours, plain func(rank int)) {
	t := newTeam(b, n)
	repeat := func(body func(int)) func(int) {
		return func(rank int) {
			for range bout {
				body(rank)
			}
		}
	}
	ours, plain = repeat(ours), repeat(plain)
	t.run(ours)
	t.run(plain)
	var a, p []float64
	for b.Loop() {
		a = append(a, float64(t.run(ours))/float64(bout))
		p = append(p, float64(t.run(plain))/float64(bout))
	}
	slices.Sort(a)
	slices.Sort(p)
	ours50, plain50 := a[len(a)/2], p[len(p)/2]
	b.ReportMetric(ours50, "ours-ns")
	b.ReportMetric(plain50, "plain-ns")
	b.ReportMetric(ours50/plain50, "ratio")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// BenchmarkBarrier compares Barrier with condBarrier. With 8 goroutines, Barrier should take at
// most 3 times as long.
func BenchmarkBarrier(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 32} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			g, plain := NewLocalGroup(n), newCondBarrier(n)
			ctx := context.Background()
			compare(b, n, 2000,
				func(rank int) { must(g.Rank(rank).Barrier(ctx)) },
				func(int) { plain.wait() })
		})
	}
}

// BenchmarkVerdict compares BroadcastBool, which ends every superstep, with condBarrier.
// BroadcastBool should take at most 5 times as long. Its context can be cancelled, like the
// context of a job.
func BenchmarkVerdict(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 32} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			g, plain := NewLocalGroup(n), newCondBarrier(n)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			compare(b, n, 2000,
				func(rank int) {
					_, err := g.Rank(rank).BroadcastBool(ctx, 0, false)
					must(err)
				},
				func(int) { plain.wait() })
		})
	}
}

// BenchmarkSmallAllReduce compares an AllReduce of 8 float64, followed by a BroadcastBool, with
// condBarrier. The two operations together should take at most 20 times as long as condBarrier.
func BenchmarkSmallAllReduce(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 32} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			g, plain := NewLocalGroup(n), newCondBarrier(n)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			requests := forestRequests(n, 128, 8)
			compare(b, n, 1000,
				func(rank int) {
					c := g.Rank(rank)
					must(AllReduce(c, requests[rank]))
					_, err := c.BroadcastBool(ctx, 0, false)
					must(err)
				},
				func(int) { plain.wait() })
		})
	}
}

func forestRequests(p, shards, n int) []*Reduction[float64] {
	requests := make([]*Reduction[float64], p)
	for r := range requests {
		requests[r] = &Reduction[float64]{
			Name: "bench", Op: Sum[float64](), Shards: shards, Out: make([]float64, n),
		}
		for _, node := range sharding.Cover(sharding.Split(shards, p, r)) {
			requests[r].Forest = append(requests[r].Forest,
				sharding.Entry[[]float64]{Node: node, Value: make([]float64, n)})
		}
	}
	return requests
}

// BenchmarkSerialLimit helps to choose serialLimit. It compares two ways to run the same
// operation: each rank folds a part ("ours"), and the last rank to arrive folds everything
// ("plain").
func BenchmarkSerialLimit(b *testing.B) {
	for _, p := range []int{2, 8} {
		for _, n := range []int{64, 256, 1024, 2048, 4096, 8192, 16384} {
			b.Run(fmt.Sprintf("ranks=%d/n=%d", p, n), func(b *testing.B) {
				parts, serial := NewLocalGroup(p), NewLocalGroup(p)
				parts.serialLimit, serial.serialLimit = 0, math.MaxInt
				requests := make([]*Reduction[float64], p)
				for r := range requests {
					x := make([]float64, n)
					requests[r] = &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}
				}
				compare(b, p, 200, func(rank int) { must(AllReduce(parts.Rank(rank), requests[rank])) },
					func(rank int) { must(AllReduce(serial.Rank(rank), requests[rank])) })
			})
		}
	}
}

// BenchmarkLargeAllReduce adds 8,388,608 float64 (64 MiB) of two ranks in place. It should take
// at most 1.15 times as long as a plain loop on two goroutines, each of which adds one half of
// the elements and stores the sums to both buffers.
func BenchmarkLargeAllReduce(b *testing.B) {
	const n, p = 8 << 20, 2
	x := [p][]float64{make([]float64, n), make([]float64, n)}
	for i := range n {
		x[0][i], x[1][i] = float64(i), -float64(i)
	}
	for _, shape := range []string{"whole", "forest"} {
		b.Run(shape, func(b *testing.B) {
			g := NewLocalGroup(p)
			var out [p][]float64
			requests := make([]*Reduction[float64], p)
			for r := range requests {
				out[r] = x[r]
				req := &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x[r], Out: x[r]}
				if shape == "forest" {
					out[r] = make([]float64, n)
					req.Whole, req.Out, req.Shards = nil, out[r], 2
					req.Forest = []sharding.Entry[[]float64]{{Node: sharding.Leaf(r), Value: x[r]}}
				}
				requests[r] = req
			}
			plain := newCondBarrier(p)
			compare(b, p, 1,
				func(rank int) { must(AllReduce(g.Rank(rank), requests[rank])) },
				func(rank int) {
					plain.wait()
					h := sharding.Split(n, p, rank)
					addIntoBoth(x[0][h.Lo:h.Hi], x[1][h.Lo:h.Hi], out[0][h.Lo:h.Hi], out[1][h.Lo:h.Hi])
					plain.wait()
				})
		})
	}
}

//go:noinline
func addIntoBoth(a, b, x, y []float64) {
	b, x, y = b[:len(a)], x[:len(a)], y[:len(a)]
	for i := range a {
		s := a[i] + b[i]
		x[i], y[i] = s, s
	}
}
