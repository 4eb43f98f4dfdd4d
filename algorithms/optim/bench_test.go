package optim_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// byHand is L-BFGS as a programmer would write it for one thread, with the two-loop recursion
// on vectors, a backtracking search on cached margins, and one buffer for all shards. It
// returns the final loss and the number of times that it read the rows.
func byHand(e *evaluator, shards int, l2 float64, iterations int) (loss float64, reads int) {
	n := e.parameters()
	each := func(out []float64, f func(shard int, out []float64) error) {
		clear(out)
		for shard := range shards {
			if len(e.rows[shard]) > 0 {
				_ = f(shard, out)
			}
		}
	}
	sums, v, g, p := make([]float64, 1+n), make([]float64, n), make([]float64, n), make([]float64, n)
	var s, y [][]float64
	var rho []float64
	w := e.totalWeight()
	value := func(t float64, grad []float64) float64 {
		f := sums[0] / w
		for i := range n {
			at := v[i] + t*p[i]
			grad[i] = sums[1+i]/w + l2*e.factors[i]*at
			f += l2 * e.factors[i] * at * at / 2
		}
		return f
	}
	each(sums, func(shard int, out []float64) error { return e.Start(shard, v, out) })
	reads++
	loss = value(0, g)
	next := make([]float64, n)
	for range iterations {
		copy(p, g)
		alpha := make([]float64, len(s))
		for i := len(s) - 1; i >= 0; i-- {
			alpha[i] = rho[i] * kernel.Dot(s[i], p)
			kernel.Axpy(-alpha[i], y[i], p)
		}
		if k := len(s) - 1; k >= 0 {
			kernel.Scale(1/(rho[k]*kernel.Dot(y[k], y[k])), p)
		}
		for i := range s {
			kernel.Axpy(alpha[i]-rho[i]*kernel.Dot(y[i], p), s[i], p)
		}
		kernel.Scale(-1.0, p)
		slope, step := kernel.Dot(g, p), 1.0
		if len(s) == 0 {
			step = min(1, 1/math.Sqrt(-slope))
		}
		each(sums, func(shard int, out []float64) error { return e.Direction(shard, p, step, out) })
		reads++
		f := value(step, next)
		if f > loss+1e-4*step*slope {
			var tried [2]float64
			for f > loss+1e-4*step*slope && step > 1e-10 {
				step /= 2
				each(tried[:], func(shard int, out []float64) error { return e.Trials(shard, []float64{step}, out) })
				f = tried[0] / w
				for i := range n {
					at := v[i] + step*p[i]
					f += l2 * e.factors[i] * at * at / 2
				}
			}
			each(sums, func(shard int, out []float64) error { return e.Gradient(shard, step, out) })
			reads++
			f = value(step, next)
		}
		each(nil, func(shard int, _ []float64) error { return e.Advance(shard, step) })
		newS, newY := make([]float64, n), make([]float64, n)
		for i := range n {
			newS[i], newY[i] = step*p[i], next[i]-g[i]
			v[i] += newS[i]
		}
		g, next, loss = next, g, f
		s, y, rho = append(s, newS), append(y, newY), append(rho, 1/kernel.Dot(newS, newY))
		if len(s) > 10 {
			s, y, rho = s[1:], y[1:], rho[1:]
		}
	}
	return loss, reads
}

// BenchmarkCost compares the time of the queue on one subtask with the time of byHand over the
// same evaluator. It reports nanoseconds per read of the rows for both, and their ratio. The
// setup of the job is not measured, and the times are those of the fastest of several runs.
func BenchmarkCost(b *testing.B) {
	const rows, d, iterations, shards = 100_000, 50, 20, 128
	o := objective{table: noisy(1, rows, d), loss: logistic}
	job := engine.Define("cost", func(jb *engine.Builder, _ struct{}) error {
		build(o.table, o, optim.Settings{Method: optim.LBFGS, L2: 1e-4, Tol: -1, MaxIter: iterations})(jb)
		return nil
	})
	e := &evaluator{objective: o, rows: map[int][]row{}, factors: make([]float64, d+1)}
	for i := range d {
		e.factors[i] = 1
	}
	for shard := range shards {
		for i, r := sharding.Split(rows, shards, shard).Lo, sharding.Split(rows, shards, shard); i < r.Hi; i++ {
			e.rows[shard] = append(e.rows[shard], row{x: o.table.Row(i), y: o.table.Label[i], w: 1})
		}
	}
	queue, hand := math.Inf(1), math.Inf(1)
	for b.Loop() {
		r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1), engine.Shards(shards))
		require.NoError(b, err)
		var took time.Duration
		var reads float64
		for _, t := range optim.StepCosts(r, "minimize")[1:] {
			took += t.Elapsed
		}
		for _, n := range r.Series("minimize", "reads")[1:] {
			reads += n
		}
		r.Release()
		queue = min(queue, float64(took)/reads)
		began := time.Now()
		_, n := byHand(e, shards, 1e-4, iterations)
		hand = min(hand, float64(time.Since(began))/float64(n))
	}
	b.ReportMetric(queue, "ns/read-queue")
	b.ReportMetric(hand, "ns/read-by-hand")
	b.ReportMetric(queue/hand, "ratio")
}

// BenchmarkSuperstep runs SGD steps with hardly any rows, so it measures the cost of the
// superstep itself.
func BenchmarkSuperstep(b *testing.B) {
	o := classes(1, 256, 5)
	job := engine.Define("superstep", func(jb *engine.Builder, _ struct{}) error {
		build(o.table, o, optim.Settings{Method: optim.SGD, Tol: -1, MaxIter: 2000})(jb)
		return nil
	})
	for _, p := range []int{1, 2} {
		b.Run(map[int]string{1: "p=1", 2: "p=2"}[p], func(b *testing.B) {
			best := math.Inf(1)
			for b.Loop() {
				r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(p), engine.Shards(128))
				require.NoError(b, err)
				best = min(best, float64(r.Queue("minimize").Elapsed)/float64(r.Queue("minimize").Supersteps))
				r.Release()
			}
			b.ReportMetric(best, "ns/superstep")
		})
	}
}
