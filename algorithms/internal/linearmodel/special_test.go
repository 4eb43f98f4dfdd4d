package linearmodel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
)

// near requires that got has a relative error of at most 1e-10.
func near(t *testing.T, want, got float64, what string) {
	t.Helper()
	require.LessOrEqual(t, math.Abs(got-want), 1e-10*math.Abs(want), "%s is %v, want %v with a relative error of at most 1e-10", what, got, want)
}

// The expected values in the tests below are from scipy 1.17: special.erfc, 2·stats.t.sf,
// stats.f.sf, special.gammaincc and special.gammaln.

func TestNormalTail(t *testing.T) {
	for _, c := range [][2]float64{
		{-3, 1.9999779095030015}, {-0.5, 1.5204998778130465}, {0, 1}, {1e-08, 0.9999999887162083}, {0.1, 0.8875370839817152},
		{0.5, 0.4795001221869535}, {1, 0.15729920705028516}, {1.4, 0.04771488023735121}, {1.5, 0.03389485352468927},
		{2, 0.004677734981047266}, {3, 2.2090496998585445e-05}, {5, 1.5374597944280347e-12}, {10, 2.0884875837625446e-45},
		{20, 5.395865611607901e-176}, {26, 5.663192408856145e-296},
	} {
		want := c[1]
		if c[0] < 0 {
			want = 2 - want
		}
		near(t, want, linearmodel.NormalTail(c[0]*math.Sqrt2), fmt.Sprint("normal ", c[0]))
	}
	require.Zero(t, linearmodel.NormalTail(40*math.Sqrt2))
	require.Zero(t, linearmodel.NormalTail(math.Inf(1)))
	require.True(t, math.IsNaN(linearmodel.NormalTail(math.NaN())))
}

func TestStudentTail(t *testing.T) {
	for _, c := range [][3]float64{
		{0, 1, 1}, {0.5, 1, 0.7048327646991335}, {1, 1, 0.5}, {12.7, 1, 0.050024327689344165}, {1e6, 1, 6.366197723673691e-07},
		{0.1, 2.5, 0.9278065440624897}, {2, 3, 0.13932596855884305}, {4.3, 7, 0.0035666016877670356}, {-2.2, 10, 0.05244106844935316},
		{1.96, 30, 0.05934231289605049}, {1.7, 31, 0.09914485827904662}, {6, 100, 3.172491502802852e-08},
		{0.01, 1000, 0.9920232819321873}, {2.5, 1000, 0.012578567801090807}, {10, 1000, 1.6670702958600137e-22},
		{1.5, 1e6, 0.1336147182367928}, {1.8, 1e6, 0.07186093949968342}, {5, 1e6, 5.733997870890745e-07},
		{30, 50, 1.2380022795987244e-33}, {1e-5, 12, 0.9999921854738957},
	} {
		near(t, c[2], linearmodel.StudentTail(c[0], c[1]), fmt.Sprint("t ", c[0], " with ", c[1]))
	}
	require.Zero(t, linearmodel.StudentTail(math.Inf(1), 3))
	require.Zero(t, linearmodel.StudentTail(1e200, 3))
	require.True(t, math.IsNaN(linearmodel.StudentTail(1, 0)))
	require.True(t, math.IsNaN(linearmodel.StudentTail(math.NaN(), 4)))
}

func TestFTail(t *testing.T) {
	for _, c := range [][4]float64{
		{0, 2, 3, 1}, {1, 1, 1, 0.5}, {4, 2, 10, 0.052922149401344654}, {0.3, 5, 7, 0.8981557643278846},
		{25, 3, 100, 3.757126909092306e-12}, {3.2, 40, 60, 2.317502435862393e-05}, {1.05, 1000, 2000, 0.18430154863827322},
		{1.2, 1000, 100000, 1.3617752227515378e-05}, {1e4, 2, 3, 1.8367040331831148e-06},
	} {
		near(t, c[3], linearmodel.FTail(c[0], c[1], c[2]), fmt.Sprint("F ", c))
	}
	require.Zero(t, linearmodel.FTail(math.Inf(1), 2, 3))
	require.True(t, math.IsNaN(linearmodel.FTail(1, 0, 3)))
	near(t, linearmodel.StudentTail(2, 9), linearmodel.FTail(4, 1, 9), "t squared")
}

func TestGammaTail(t *testing.T) {
	for _, c := range [][3]float64{
		{0.5, 0.1, 0.6547208460185768}, {0.5, 3, 0.014305878435429641}, {1, 2, 0.1353352832366127}, {3.5, 1, 0.9598403687301016},
		{3.5, 10, 0.005569683072945574}, {10, 9, 0.5874082443319417}, {10, 25, 0.0002214766382487835}, {100, 90, 0.84177901081357},
		{100, 150, 5.924540335483916e-06}, {5000, 5100, 0.07932888107761896}, {5000, 4900, 0.922055043773486},
		{1e5, 1e5, 0.4995794778896348}, {0.01, 1e-5, 0.10366320173280281}, {50, 3, 1},
	} {
		near(t, c[2], linearmodel.GammaTail(c[0], c[1]), fmt.Sprint("Q ", c))
	}
	require.EqualValues(t, 1, linearmodel.GammaTail(2, 0))
	require.Zero(t, linearmodel.GammaTail(2, math.Inf(1)))
	require.True(t, math.IsNaN(linearmodel.GammaTail(-1, 2)))
}

func TestLogGamma(t *testing.T) {
	for _, c := range [][2]float64{
		{1e-5, 11.512919692895826}, {0.1, 2.252712651734206}, {0.5, 0.5723649429247}, {1, 0}, {1.5, -0.12078223763524526}, {2, 0},
		{3.7, 1.428072326665388}, {9.9, 12.57717990421988}, {10, 12.801827480081469}, {11.2, 15.576654464525776},
		{100, 359.1342053695754}, {12345.678, 103959.91990554606}, {1e7, 151180949.36947393},
	} {
		require.InDelta(t, c[1], linearmodel.LogGamma(c[0]), 1e-14*max(1, math.Abs(c[1])), "log gamma of %v", c[0])
	}
	require.True(t, math.IsInf(linearmodel.LogGamma(0), 1))
}
