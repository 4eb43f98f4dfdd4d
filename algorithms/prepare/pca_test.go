package prepare_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
)

func TestPCA(t *testing.T) {
	rows := table(samples(false))
	columns := []string{"rooms", "vector", "ragged"}
	m, r := try(t, rows, prepare.PCA{Columns: columns, K: 2})
	near(t, r, "components", -1.2930474682648418, -4.781696405140928, -1.296710357261798, -1.735438656881708, -2.201708640557502, -5.685129521138437, -1.4783188055092058, 4.062067906176342,
		7.883854996139728, -1.895670317140037, -6.495069768200692, 4.941241304429839, -3.2905549397868086, 0.8320811978372225, 8.17155498344112, 4.2625444918577085)
	require.Equal(t, "vector[2]", typeOf(t, r, "components"))
	golden(t, m)

	m, _ = quick(t, rows, prepare.PCA{Columns: columns})
	pca := m.(*prepare.PCAModel)
	require.InDeltaSlice(t, []float64{27.475648641078926, 17.36693391914211, 8.399795889693857, 4.40679096912066, 0.9486699916787573, 0}, pca.Variance, 1e-13)
	require.InDeltaSlice(t, []float64{0.46888501209918587, 0.2963749874362545, 0.14334651199030385, 0.07520398385737925, 0.01618950461687668, 0}, pca.Ratio, 1e-14)
	require.InDeltaSlice(t, []float64{0.37199248397704243, 0.13717363576670882, -0.12429617500082801, 0, 0.339105991232872, 0.8440157422141288}, pca.Components[0], 1e-14)

	_, r = quick(t, rows, prepare.PCA{Columns: columns, K: 2, Whiten: true, Output: "white"})
	near(t, r, "white", -0.24668372131732397, -1.147414735503835, -0.24738251630414215, -0.4164354485843541, -0.42003537692089443, -1.3642023317893706, -0.28202923186242923, 0.9747328515363111,
		1.5040582318170452, -0.4548845997845405, -1.2391099475918292, 1.1856990917046502, -0.6277622111081348, 0.19966600692332587, 1.5589447732877084, 1.0228391654978137)
	// With Whiten, a constant column becomes 0 instead of being divided by 0.
	_, r = quick(t, rows, prepare.PCA{Columns: []string{"same"}, Whiten: true})
	near(t, r, "components", 0, 0, 0, 0, 0, 0, 0, 0)
	quick(t, rows, prepare.PCA{Columns: []string{"sparse"}, K: 3})
}

// TestPCAOfManyComponents compares variances and directions for many rows and components with
// the results of gonum's solver.
func TestPCAOfManyComponents(t *testing.T) {
	const n, d = 300, 40
	table := trial.Gaussian(3, n, d)
	for i := range n {
		for j := range d {
			table.X[i*d+j] *= float64(1 + j*j)
		}
	}
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(prepare.PCA{Columns: []string{"features"}}.Fit(table.Dataset(b)), "model")
	})
	m, err := prepare.ModelOf(r, "model")
	require.NoError(t, err)
	pca := m.(*prepare.PCAModel)
	x := mat.NewDense(n, d, append([]float64(nil), table.X...))
	for j := range d {
		mean := mat.Sum(x.ColView(j)) / n
		require.InDelta(t, mean, pca.Mean[j], 1e-10)
		for i := range n {
			x.Set(i, j, x.At(i, j)-mean)
		}
	}
	var svd mat.SVD
	require.True(t, svd.Factorize(x, mat.SVDThin))
	var v mat.Dense
	svd.VTo(&v)
	for k, s := range svd.Values(nil) {
		require.InEpsilon(t, s*s/(n-1), pca.Variance[k], 1e-9, "%d", k)
		dot := 0.0
		for j := range d {
			dot += v.At(j, k) * pca.Components[k][j]
		}
		require.InDelta(t, 1, dot*dot, 1e-9, "direction %d", k)
	}
	trial.SameBits(t, func(b *engine.Builder) {
		engine.Collect(prepare.PCA{Columns: []string{"features"}}.Fit(trial.Wild(150, 5).Dataset(b)), "model")
	}, "pca")
}

func TestPCATellsWhatIsWrong(t *testing.T) {
	fails(t, samples(false)[:1], prepare.PCA{Columns: []string{"vector"}}, "one row")
	fails(t, nil, prepare.PCA{Columns: []string{"vector"}}, "no rows")
	fails(t, samples(false), prepare.PCA{Columns: []string{"vector"}, K: 4}, "K is 4, of only 3 components")
	fails(t, samples(false), prepare.PCA{Columns: []string{"ragged"}, K: 4}, "K is 4, of only 2 components")
	fails(t, samples(false), prepare.PCA{Columns: []string{"vector"}, K: -1}, "K is -1")
	fails(t, samples(false), prepare.PCA{Columns: []string{"age"}}, `column "age": it is null`, "imputer")
	fails(t, samples(true), prepare.PCA{Columns: []string{"vector"}}, `column "vector": component 1 is NaN`)
	fails(t, samples(true), prepare.PCA{Columns: []string{"city"}}, `column "city" is utf8`)
}
