package optim_test

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// distance is an objective with one parameter v: the mean absolute difference between v and the
// numbers y of a column. The smooth approximation is the maximum of α·r - ½·μ·(α-a)² over α
// from -1 to 1, with r = y - v.
type distance struct{ reads *atomic.Int64 }

func (o distance) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	e := &distances{distance: o, mu: 0.5, shards: map[int]*proxDistance{}}
	return optim.Evaluator{
			Dim: 1, Weight: apart, PenaltyFactors: []float64{1}, Evaluate: e.Evaluate, Hessian: e.Hessian,
			Snapshot:  optim.Snapshot{Append: e.Append, Restore: e.Restore},
			Smoothing: optim.Smoothing{BoundLen: 3, Bound: e.Bound, Gap: e.Gap, Refine: e.Refine},
		}, ctx.ForShards(func(shard int) error {
			y := points.Get(ctx, shard).Floats("label")
			e.shards[shard] = &proxDistance{y: y, a: make([]float64, len(y)), next: make([]float64, len(y)), mu: 0.5}
			return nil
		})
}

type proxDistance struct {
	y, a, next []float64
	mu         float64
}

type distances struct {
	distance
	mu     float64
	shards map[int]*proxDistance
}

const apart = 41 // number of rows of the test

// maximizer returns the maximising α of row i, r, and whether α is inside its bounds.
func (s *proxDistance) maximizer(i int, v float64) (alpha, r float64, inside bool) {
	r = s.y[i] - v
	free := s.a[i] + r/s.mu
	alpha = max(-1, min(1, free))
	return alpha, r, alpha == free
}

func (e *distances) Hessian(shard int, v, out []float64) error {
	s := e.shards[shard]
	for i := range s.y {
		alpha, r, inside := s.maximizer(i, v[0])
		out[0] += alpha*r - s.mu*(alpha-s.a[i])*(alpha-s.a[i])/2
		out[1] -= alpha
		if inside {
			out[2] += 1 / s.mu
		}
	}
	if e.reads != nil {
		e.reads.Add(int64(len(s.y)))
	}
	return nil
}

func (e *distances) Evaluate(shard int, v, out []float64) error {
	var all [3]float64
	err := e.Hessian(shard, v, all[:])
	out[0] += all[0]
	out[1] += all[1]
	return err
}

func (e *distances) Bound(shard int, v, out []float64) error {
	s := e.shards[shard]
	for i, y := range s.y {
		alpha, r, _ := s.maximizer(i, v[0])
		s.next[i] = alpha
		out[0] += math.Abs(r)
		out[1] += alpha * y
		out[2] += alpha
	}
	if e.reads != nil {
		e.reads.Add(int64(len(s.y)))
	}
	return nil
}

func (e *distances) Gap(v, sums []float64, _, l2 float64) (objective, bound float64) {
	return sums[0]/apart + l2*v[0]*v[0]/2, sums[1]/apart - sums[2]/apart*sums[2]/apart/(2*l2)
}

func (e *distances) Append(shard int, dst []byte) ([]byte, error) {
	s := e.shards[shard]
	return shared.Float64s().Append(dst, append([]float64{s.mu}, s.a...))
}

func (e *distances) Restore(shard int, src []byte) error {
	kept, err := shared.Float64s().Decode(src)
	s := e.shards[shard]
	s.mu, s.a = kept[0], kept[1:]
	return err
}

func (e *distances) Refine(shard int) error {
	s := e.shards[shard]
	copy(s.a, s.next)
	s.mu /= 4
	return nil
}

// TestRoundsCloseTheGap requires that rounds over smooth approximations find the minimum of an
// objective with kinks. It compares the result with a search that uses no derivatives.
func TestRoundsCloseTheGap(t *testing.T) {
	table := trial.Gaussian(2, apart, 1)
	for i, x := range table.X {
		table.Label = append(table.Label, 3+2*x+0.1*float64(i%3))
	}
	for _, l2 := range []float64{0.01, 0.3, 3} {
		f := func(v float64) float64 {
			sum := l2 * v * v / 2
			for _, y := range table.Label {
				sum += math.Abs(y-v) / apart
			}
			return sum
		}
		lo, hi := -20.0, 20.0
		for range 200 {
			if a, b := lo+(hi-lo)/3, hi-(hi-lo)/3; f(a) < f(b) {
				hi = b
			} else {
				lo = a
			}
		}
		for _, m := range []optim.Method{optim.LBFGS, optim.Newton, optim.OWLQN} {
			var reads atomic.Int64
			s := optim.Settings{Method: m, L2: l2, GapTol: 1e-9, Tol: 1e-10, MaxIter: 300}
			r := minimize(t, table, distance{&reads}, s, engine.Parallelism(3))
			require.Equal(t, optim.GapClosed, r.Reason, "%v: gap %v", m, r.Gap)
			require.True(t, r.Converged)
			require.InDelta(t, f(lo), r.Loss, 1e-9)
			require.InDelta(t, f(r.Parameters[0]), r.Loss, 1e-12)
			require.GreaterOrEqual(t, r.Gap, r.Loss-f(lo)-1e-12)
			require.InDelta(t, float64(reads.Load())/apart, r.Reads, 1e-9)
			require.Len(t, r.Record, r.Iterations+1)
		}
		s := optim.Settings{Method: optim.LBFGS, L2: l2}
		one := minimize(t, table, distance{}, s)
		require.Equal(t, optim.GradientSmall, one.Reason)
		require.Less(t, one.Loss, f(lo), "the smooth approximation must be below the objective")
		s.GapTol, s.MaxIter = 1e-9, 1
		cut := minimize(t, table, distance{}, s)
		require.Equal(t, optim.MaxIterations, cut.Reason)
		require.InDelta(t, f(cut.Parameters[0]), cut.Loss, 1e-12, "Loss must be the objective without approximation")
	}
	trial.SameBits(t, build(table, distance{}, optim.Settings{Method: optim.LBFGS, L2: 0.1, GapTol: 1e-8, Information: true}), "minimize")
	trial.Fails(t, build(smooth().table, smooth(), optim.Settings{GapTol: 1e-6}), "the objective gives no lower bound")
	trial.Fails(t, build(table, distance{}, optim.Settings{Method: optim.SGD, GapTol: 1e-6}), "GapTol is for the other methods than SGD")
	trial.Fails(t, build(table, distance{}, optim.Settings{GapTol: -1}), "GapTol is -1")
}
