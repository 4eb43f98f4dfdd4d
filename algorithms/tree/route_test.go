package tree

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeft checks every rule of Tree.Left by an example.
func TestLeft(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	const third = 1.0 / 3
	for _, c := range []struct {
		flags     Flags
		threshold float64
		single    bool
		left      []float64
		right     []float64
	}{
		{0, 1, false, []float64{0.9, math.Nextafter(1, 0), -inf, -1}, []float64{1, 2, inf, nan}},
		{DefaultLeft, 1, false, []float64{0.9, -inf, nan}, []float64{1, 2, inf}},
		{0, 1, true, []float64{0.9, -inf}, []float64{math.Nextafter(1, 0), 1, inf, nan}},
		{0, float64(float32(third)), true, []float64{0.3}, []float64{third, float64(float32(third))}},
		{0, 0, false, []float64{-5e-324, -1}, []float64{0, math.Copysign(0, -1), 5e-324}},
		{0, math.Copysign(0, -1), true, []float64{-1e-40}, []float64{0, math.Copysign(0, -1), -1e-50}},
		{0, inf, true, []float64{0, -inf, math.MaxFloat32}, []float64{inf, 1e300, nan}},
		{0, -inf, false, nil, []float64{0, -inf, inf, nan}},
		{DefaultLeft, -inf, false, []float64{nan}, []float64{0, -inf}},
		{ZeroMissing, 1, false, []float64{0.5, -1, 1.1e-35, -1.1e-35}, []float64{nan, 0, math.Copysign(0, -1), 1e-35, -1e-35, 1}},
		{ZeroMissing | DefaultLeft, -1, false, []float64{nan, 0, 1e-36, -2}, []float64{2e-35, -1, 1}},
		{NaNIsZero, 1, false, []float64{nan, 0}, []float64{1}},
		{NaNIsZero | DefaultLeft, -1, false, []float64{-2}, []float64{nan, 0}},
		{NaNIsZero | ZeroMissing | DefaultLeft, -1, false, []float64{nan, 0}, []float64{1}},
		{Categorical, 0, true, []float64{0, 0.7, 2, 2.9, 33}, []float64{1, 3, 32, 34, 64, 1e300, inf, -inf, -1, -0.5, nan, math.MaxInt32 + 1}},
		{Categorical | SetRight, 0, false, []float64{1, 3, 32, 64, 1e300, inf, -inf, -1, -0.5}, []float64{0, 0.7, 2, 33, nan}},
		{Categorical | SetRight | DefaultLeft, 0, false, []float64{1, nan}, []float64{0}},
		{Categorical | DefaultLeft, 0, true, []float64{0, nan}, []float64{1, -1}},
		{Categorical | NaNIsZero, 0, false, []float64{0, nan}, []float64{1}},
		{Categorical | ZeroMissing, 0, false, []float64{2}, []float64{0, nan, 1}},
	} {
		e := &Ensemble{
			Features: []string{"x"}, Outputs: 1, Base: []float64{0}, Single: c.single,
			Trees: []Tree{{
				Nodes: []Node{{Left: 1, Right: 2, Flags: c.flags, Threshold: c.threshold, SetWords: 2}, {Value: 1}, {Value: 2}},
				Sets:  []uint32{1<<0 | 1<<2, 1 << 1}, Weight: 1,
			}},
		}
		require.NoError(t, e.Validate())
		s := e.Scorer()
		out := []float64{0}
		for i, values := range [][]float64{c.left, c.right} {
			for _, x := range values {
				require.Equal(t, i == 0, e.Trees[0].Left(0, x, c.single), "%v of %+v", x, c)
				s.Scores([]float64{x}, out)
				require.Equal(t, float64(1+i), out[0], "%v of %+v", x, c)
			}
		}
	}
}
