package kmeans_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// TestSinglePrecisionIsAccurate requires that the result in single precision equals the result
// in double precision, up to the rounding of float32. The relative error of the inertia may be
// at most the error of d+2 roundings to float32.
func TestSinglePrecisionIsAccurate(t *testing.T) {
	m := mixture(17, 3000, 6, 5, 0.4)
	for i, v := range m.x {
		m.x[i] = float64(float32(v))
	}
	var first [][]float64
	for a := range 5 {
		first = append(first, m.row(a))
	}
	for _, weighted := range []bool{false, true} {
		if weighted {
			m.w = make([]float64, m.n)
			for i := range m.w {
				m.w[i] = float64(i%4) / 2
			}
		}
		p := kmeans.Params{Init: kmeans.Given, Centers: first, Tol: -1, MaxIter: 12}
		double := train(t, m, p)
		p.Precision = kmeans.Single
		single := train(t, m, p)
		require.Equal(t, double.model.Iterations, single.model.Iterations)
		require.InEpsilon(t, double.model.Inertia, single.model.Inertia, 8*0x1p-24)
		require.Equal(t, double.model.Sizes, single.model.Sizes)
		for a := range first {
			for j, v := range single.model.Centers[a] {
				require.InEpsilon(t, double.model.Centers[a][j], v, 0x1p-23)
				require.Equal(t, v, float64(float32(v)))
			}
		}
	}
}

func TestSinglePrecisionGivesTheSameBits(t *testing.T) {
	m := wild(600, 4) // magnitudes up to 1e16, whose squares do not overflow float32
	for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
		t.Run(init.String(), func(t *testing.T) {
			var first outcome
			among := fewPlacements
			if init == kmeans.KMeansParallel {
				among = placements
			}
			for i, at := range among {
				if at.p > 8 {
					continue
				}
				o := train(t, m, kmeans.Params{K: 9, Init: init, Precision: kmeans.Single, MaxIter: 8, Tol: -1, Seed: 5},
					engine.Parallelism(at.p), engine.Workers(at.workers), engine.BatchRows([]int{7, 1024, 1}[i%3]), engine.CheckState(i%2 == 1))
				if i == 0 {
					first = o
				}
				requireSame(t, first, o)
			}
			for _, options := range trial.Cuts(12) {
				requireSame(t, first, train(t, m, kmeans.Params{K: 9, Init: init, Precision: kmeans.Single, MaxIter: 8, Tol: -1, Seed: 5}, options...))
			}
		})
	}
}

// TestSinglePrecisionOfAnyColumn requires that columns of float32 and of float64, of fixed and
// of variable size, give the same model.
func TestSinglePrecisionOfAnyColumn(t *testing.T) {
	type narrow struct {
		Features []float32 `column:"features,dim=3"`
		Weight   float64
	}
	type wide struct {
		Features []float64 `column:"features,dim=3"`
		Weight   float64
	}
	type open struct {
		Features []float32
		Weight   float64
	}
	values := mixture(21, 90, 3, 3, 1)
	var narrows []narrow
	var wides []wide
	var opens []open
	for i := range values.n {
		x := make([]float32, 3)
		for j, v := range values.row(i) {
			x[j] = float32(v)
		}
		narrows = append(narrows, narrow{x, float64(i % 3)})
		wides = append(wides, wide{append([]float64(nil), values.row(i)...), float64(i % 3)})
		opens = append(opens, open{x, float64(i % 3)})
	}
	for _, p := range []kmeans.Params{{K: 3}, {K: 1}, {K: 3, Init: kmeans.Random}} {
		p.VectorCol, p.WeightCol, p.Precision = "features", "weight", kmeans.Single
		want, err := tryTrained(t, narrows, p)
		require.NoError(t, err)
		for _, try := range []func() (string, error){
			func() (string, error) { return tryTrained(t, wides, p) },
			func() (string, error) { return tryTrained(t, opens, p) },
		} {
			got, err := try()
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

func TestSinglePrecisionReseeds(t *testing.T) {
	m := rowsOf([]float64{7}, []float64{0}, []float64{1}, []float64{9}, []float64{0.5})
	o := train(t, m, kmeans.Params{Init: kmeans.Given, Centers: [][]float64{{0}, {1e3}, {2e3}}, MaxIter: 1, Precision: kmeans.Single})
	require.Equal(t, [][]float64{{0.5}, {9}, {7}}, o.model.Centers)
	require.Equal(t, 0.5, o.model.Inertia)
}

func TestSinglePrecisionRefuses(t *testing.T) {
	single := func(p kmeans.Params) kmeans.Params { p.Precision = kmeans.Single; return p }
	require.EqualError(t, single(kmeans.Params{VectorCol: "x", K: 1, Distance: kmeans.Cosine}).Validate(),
		"Precision is single and Distance is cosine: single precision needs Euclidean distance")
	require.EqualError(t, kmeans.Params{VectorCol: "x", K: 1, Precision: 3}.Validate(), "Precision(3) is not one of the package's constants")
	var p kmeans.Precision
	require.NoError(t, p.UnmarshalText([]byte("single")))
	text, err := p.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "single", string(text))
	sparse := rowsOf([]float64{1, 0}, []float64{0, 1})
	sparse.sparse = true
	far := [][]float64{{1e300}}
	for _, c := range []struct {
		m    data
		p    kmeans.Params
		want string
	}{
		{sparse, kmeans.Params{K: 1}, `column "features" is sparse: single precision needs a dense vector`},
		{rowsOf([]float64{1}, []float64{-1e39}), kmeans.Params{K: 1}, "component 0 is -1e+39, beyond the range of float32"},
		{rowsOf([]float64{1, math.NaN()}), kmeans.Params{K: 1}, "component 1 is NaN"},
		{rowsOf([]float64{1}), kmeans.Params{Init: kmeans.Given, Centers: far}, "beyond the range of float32: use double precision"},
		{rowsOf([]float64{1e30}, []float64{-1e30}, []float64{0}), kmeans.Params{K: 2, Init: kmeans.Random}, "exceed the range"},
		{data{d: 2}, kmeans.Params{K: 1}, "there are no rows to cluster"},
	} {
		_, err := tryTrain(t, c.m, single(c.p))
		require.ErrorContains(t, err, c.want)
	}
	ragged := rowsOf([]float64{1, 2})
	ragged.unsized = true
	_, err = tryTrain(t, ragged, single(kmeans.Params{Init: kmeans.Given, Centers: [][]float64{{1}}}))
	require.ErrorContains(t, err, "has 2 components, the centres have 1")
}
