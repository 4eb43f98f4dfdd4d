package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPlaneFindsTheMinimum requires, for a quadratic function, that the mixture is the minimum
// over the plane. There the gradient is orthogonal to every axis, including steps that depend
// linearly on earlier axes.
func TestPlaneFindsTheMinimum(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, steps := rapid.IntRange(4, 9).Draw(r, "n"), rapid.IntRange(0, LatestSteps).Draw(r, "steps")
		twice := steps > 1 && rapid.Bool().Draw(r, "twice")
		number := rapid.Float64Range(-2, 2)
		vector := func(name string) []float64 { return rapid.SliceOfN(number, n, n).Draw(r, name) }
		// F = ½·Σ h·x² + g·x for the losses, with rows of weight 3, plus the penalty ½·l2·Σ x².
		h, g := rapid.SliceOfN(rapid.Float64Range(0.5, 4), n, n).Draw(r, "bend"), vector("gradient")
		const l2 = 0.25
		space := newBlocks(n, 4)
		factors := make([]float64, n)
		for i := range factors {
			factors[i] = 1
		}
		w := &work{training: &training{
			Evaluator: Evaluator{Dim: n, PenaltyFactors: factors}, space: space,
			penalty: penalty{l2: l2, factors: factors, space: &space},
		}, pseudo: g, direction: make([]float64, n)}
		for i := range g {
			w.direction[i] = -g[i]
		}
		p := &w.probing.plane
		p.ring = &ring{}
		p.prepare(&space, make([]float64, LatestSteps*n))
		var kept [][]float64
		for k := range steps {
			s := vector("step")
			if twice && k == 1 {
				s = kept[0]
			}
			kept = append(kept, s)
			p.push(2, s)
		}
		p.setAxes(w, true, space.dot(g, w.direction), float64(l2*space.dot(w.direction, w.direction)))
		require.Equal(t, steps, p.pastSteps())
		axes := [][]float64{append([]float64(nil), w.direction...)}
		for k := range kept {
			s := append([]float64(nil), kept[len(kept)-1-k]...)
			for i := range s {
				s[i] *= 2
			}
			axes = append(axes, s)
		}
		sums := make([]float64, 0, 10)
		for i, x := range axes {
			for _, y := range axes[:i+1] {
				var sum float64
				for j := range h {
					sum += 3 * h[j] * x[j] * y[j]
				}
				sums = append(sums, sum)
			}
		}
		var size float64
		for _, v := range g {
			size += v * v
		}
		if size < 1e-2 {
			return
		}
		if !p.solve(sums, 3) {
			// The minimum over the plane lies where the coefficient of the direction is not
			// positive.
			require.Positive(t, steps, "without latest steps, solve must find a minimum")
			require.Equal(t, [maxAxes]float64{1}, p.mix)
			return
		}
		slope, bend := p.alongMix()
		p.applyMix(w.direction)
		var wantSlope, wantBend float64
		for i, x := range w.direction {
			wantSlope += g[i] * x
			wantBend += l2 * x * x
		}
		require.InDelta(t, wantSlope, slope, 1e-9*(1+size))
		require.InDelta(t, wantBend, bend, 1e-9*(1+size))
		for k, axis := range axes {
			var along, rest, length float64
			for i, x := range w.direction {
				left := g[i] + (h[i]+l2)*x
				along += left * axis[i]
				rest += left * left
				length += axis[i] * axis[i]
			}
			tolerance := 1e-6
			if k > 0 { // a step that was left out may lie slightly outside the plane
				tolerance = 1e-3
			}
			require.InDelta(t, 0, along, tolerance*(1e-3+math.Sqrt(rest*length)), "axis %d", k)
		}
	})
}

// TestPlaneWithoutMinimum requires that the direction is unchanged if the plane has no
// curvature, or values that are not finite.
func TestPlaneWithoutMinimum(t *testing.T) {
	for _, bend := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		p := plane{dim: 2, slopes: [maxAxes]float64{-1, 0.5}}
		require.False(t, p.solve([]float64{bend, 0, 1}, 1), "%v", bend)
		require.Equal(t, [maxAxes]float64{1}, p.mix)
	}
	// If a step has no curvature, the mixture is the direction alone.
	p := plane{dim: 2, slopes: [maxAxes]float64{-1, 0.5}}
	require.True(t, p.solve([]float64{4, 0, 0}, 1))
	require.Equal(t, [maxAxes]float64{0.25}, p.mix)
	// A mixture that leads upwards is not used either. Here its coefficient of the direction is
	// 0.
	p = plane{dim: 2, slopes: [maxAxes]float64{1, 0}}
	require.False(t, p.solve([]float64{1, 0, 1}, 1))
}
