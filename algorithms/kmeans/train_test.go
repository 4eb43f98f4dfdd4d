package kmeans_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

// These are the inertias of the best three clusters of iris, as scikit-learn's KMeans computes
// them. The first is for the bundled file, the second for the measurements that Fisher
// published. The common file of the UCI repository differs from Fisher's measurements in two
// flowers.
const (
	irisInertia   = 78.940841426146
	fisherInertia = 78.851441426146
)

// fisher returns iris with the two flowers as Fisher published them.
func fisher(t testing.TB) data {
	m := iris(t)
	copy(m.row(34), []float64{4.9, 3.1, 1.5, 0.2})
	copy(m.row(37), []float64{4.9, 3.6, 1.4, 0.1})
	return m
}

func TestIrisEqualsTheReference(t *testing.T) {
	for best, m := range map[float64]data{irisInertia: iris(t), fisherInertia: fisher(t)} {
		first := [][]float64{m.row(0), m.row(50), m.row(100)}
		o := train(t, m, kmeans.Params{Init: kmeans.Given, Centers: first, Tol: -1}, engine.Parallelism(2))
		centers, near, inertia := referenceLloyd(m, first, 100, 0)
		requireCenters(t, centers, o.model.Centers)
		require.InDelta(t, inertia, o.model.Inertia, 1e-9)
		require.InDelta(t, best, o.model.Inertia, 1e-9)
		require.True(t, o.model.Converged)
		require.Len(t, o.predictions, m.n)
		for i, p := range o.predictions {
			require.Equal(t, int64(i), p.ID)
			require.Equal(t, int64(near[i]), p.Cluster)
		}
	}
}

func TestRandomInit(t *testing.T) {
	m := iris(t)
	for seed := range uint64(5) {
		o := train(t, m, kmeans.Params{K: 3, Init: kmeans.Random, Seed: seed}, engine.Parallelism(3))
		require.GreaterOrEqual(t, o.model.Inertia, irisInertia-1e-9)
		require.Less(t, o.model.Inertia, 200.0)
	}
}

func TestGeneratedEqualsTheReference(t *testing.T) {
	m := mixture(5, referenceRows, 4, 8, 1.5)
	var first [][]float64
	for a := range 8 {
		first = append(first, m.row(a))
	}
	o := train(t, m, kmeans.Params{Init: kmeans.Given, Centers: first, MaxIter: 15, Tol: 1e-3}, engine.Shards(128))
	centers, near, inertia := referenceLloyd(m, first, 15, 1e-3)
	requireCenters(t, centers, o.model.Centers)
	require.InEpsilon(t, inertia, o.model.Inertia, 1e-12)
	for i, p := range o.predictions {
		require.Equal(t, int64(near[i]), p.Cluster)
	}
}

// TestModelDescribesItsCenters requires that a model has the sizes and the inertia that
// predictions for the training rows give.
func TestModelDescribesItsCenters(t *testing.T) {
	m := mixture(6, 500, 3, 5, 2)
	m.w = make([]float64, m.n)
	for i := range m.w {
		m.w[i] = float64(i%4) / 2
	}
	for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
		for _, maxIter := range []int{1, 3, 100} {
			o := train(t, m, kmeans.Params{K: 4, MaxIter: maxIter, Distance: distance})
			sizes, inertia := make([]float64, 4), 0.0
			for i, p := range o.predictions {
				cluster, dist := o.model.Predict(m.row(i))
				require.Equal(t, p.Cluster, int64(cluster))
				require.Equal(t, p.Distance, dist)
				sizes[cluster] += m.w[i]
				if distance == kmeans.Euclidean {
					dist *= dist
				}
				inertia += m.w[i] * dist
			}
			require.Equal(t, sizes, o.model.Sizes)
			require.InEpsilon(t, inertia, o.model.Inertia, 1e-12)
			require.LessOrEqual(t, o.model.Iterations, maxIter)
			require.Equal(t, maxIter == 100, o.model.Converged)
			require.Equal(t, 3, o.model.Dim)
			require.Equal(t, "features", o.model.VectorCol)
			// The history must equal the reports, and the inertia must fall.
			require.Len(t, o.model.History, o.model.Iterations+1)
			for i, h := range o.model.History {
				require.Equal(t, o.inertia[i], h.Inertia)
				if i < o.model.Iterations {
					require.Equal(t, o.movement[i], h.Movement)
					require.Less(t, o.model.History[i+1].Inertia, h.Inertia*(1+1e-12))
				}
			}
			require.Equal(t, o.model.Inertia, o.inertia[o.model.Iterations])
			require.Zero(t, o.model.History[o.model.Iterations].Movement)
		}
	}
}

func TestToleranceEndsTraining(t *testing.T) {
	m := mixture(8, 1000, 2, 6, 2)
	exact := train(t, m, kmeans.Params{K: 6, Tol: -1, Seed: 2})
	loose := train(t, m, kmeans.Params{K: 6, Tol: 0.5, Seed: 2})
	require.Less(t, loose.model.Iterations, exact.model.Iterations)
	last := func(o outcome, n int) float64 { return o.model.History[o.model.Iterations-n].Movement }
	require.Zero(t, last(exact, 1))
	require.LessOrEqual(t, last(loose, 1), 0.5)
	if loose.model.Iterations > 1 {
		require.Greater(t, last(loose, 2), 0.5)
	}
}

func TestWeightsCountAsRepeatedRows(t *testing.T) {
	m := mixture(9, 300, 3, 4, 1)
	first := [][]float64{m.row(0), m.row(1), m.row(2), m.row(3)}
	m.w = make([]float64, m.n)
	repeated := data{d: m.d}
	for i := range m.n {
		m.w[i] = float64(i * 7 % 5)
		for range i * 7 % 5 {
			repeated.x = append(repeated.x, m.row(i)...)
			repeated.n++
		}
	}
	for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
		p := kmeans.Params{Init: kmeans.Given, Centers: first, Distance: distance, Tol: -1}
		weighted, plain := train(t, m, p), train(t, repeated, p)
		requireCenters(t, plain.model.Centers, weighted.model.Centers)
		require.Equal(t, plain.model.Sizes, weighted.model.Sizes)
		require.InEpsilon(t, plain.model.Inertia, weighted.model.Inertia, 1e-9)
	}
	// No initialisation may choose rows without weight.
	for i := range m.n {
		m.w[i] = 0
		if i%3 == 0 {
			m.w[i] = 1
		} else {
			copy(m.row(i), []float64{1e6, 1e6, float64(i)})
		}
	}
	for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
		o := train(t, m, kmeans.Params{K: 4, Init: init})
		for _, c := range o.model.Centers {
			require.Less(t, c[0], 100.0)
		}
		require.Less(t, o.model.Inertia, 10000.0)
	}
}

func TestFewRows(t *testing.T) {
	for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
		t.Run(init.String(), func(t *testing.T) {
			one := train(t, rowsOf([]float64{3, -4}), kmeans.Params{K: 1, Init: init}, engine.Parallelism(8))
			require.Equal(t, [][]float64{{3, -4}}, one.model.Centers)
			require.Equal(t, []float64{1}, one.model.Sizes)
			require.Zero(t, one.model.Inertia)

			three := train(t, rowsOf([]float64{0, 0}, []float64{0, 2}, []float64{9, 9}, []float64{9, 9}), kmeans.Params{K: 3, Init: init}, engine.Parallelism(8))
			require.ElementsMatch(t, [][]float64{{0, 0}, {0, 2}, {9, 9}}, three.model.Centers)
			require.Zero(t, three.model.Inertia)

			mean := train(t, rowsOf([]float64{0, 0}, []float64{0, 2}, []float64{9, 1}, []float64{-1, 1}), kmeans.Params{K: 1, Init: init})
			require.Equal(t, [][]float64{{2, 1}}, mean.model.Centers)
			require.Equal(t, 4.0+1+4+1+49+9, mean.model.Inertia)
		})
	}
}

func TestEmptyClustersGetTheFarthestRows(t *testing.T) {
	// All rows start in the cluster of the first centre. The rows 9 and 7 are the farthest from
	// this centre.
	m := rowsOf([]float64{7}, []float64{0}, []float64{1}, []float64{9}, []float64{0.5})
	p := kmeans.Params{Init: kmeans.Given, Centers: [][]float64{{0}, {1e3}, {2e3}}, MaxIter: 1}
	o := train(t, m, p)
	require.Equal(t, [][]float64{{0.5}, {9}, {7}}, o.model.Centers)
	require.Equal(t, []float64{3, 1, 1}, o.model.Sizes)
	require.Equal(t, 0.5, o.model.Inertia)

	// Rows at the same distance are chosen in order, and rows without weight are never chosen.
	m = rowsOf([]float64{5}, []float64{-5}, []float64{0}, []float64{8})
	m.w = []float64{2, 1, 1, 0}
	p.Centers = [][]float64{{0}, {100}}
	for _, at := range []placement{{1, 0}, {3, 0}, {3, 2}, {8, 3}} {
		o = train(t, m, p, engine.Parallelism(at.p), engine.Workers(at.workers))
		require.Equal(t, [][]float64{{-2.5}, {5}}, o.model.Centers)
	}

	// If the chosen row is the only row of its cluster, it also stays in this cluster, and the
	// next update chooses another row.
	m = rowsOf([]float64{0, 0}, []float64{50, 0}, []float64{51, 0})
	p = kmeans.Params{Init: kmeans.Given, Centers: [][]float64{{0, 30}, {50, 0}, {1e3, 0}}, MaxIter: 1}
	o = train(t, m, p)
	require.Equal(t, [][]float64{{0, 0}, {50.5, 0}, {0, 0}}, o.model.Centers)
	require.Equal(t, []float64{1, 2, 0}, o.model.Sizes)
	p.MaxIter = 0
	o = train(t, m, p)
	require.Equal(t, []float64{1, 1, 1}, o.model.Sizes)
	require.Zero(t, o.model.Inertia)

	// However far away the given centres are, training must end with the same result as from
	// good centres.
	m = iris(t)
	p = kmeans.Params{Init: kmeans.Given, Centers: [][]float64{m.row(0), {1e5, 0, 0, 0}, {0, 1e5, 0, 0}}}
	for i, at := range []placement{{1, 0}, {2, 2}, {5, 3}} {
		got := train(t, m, p, engine.Parallelism(at.p), engine.Workers(at.workers))
		require.InDelta(t, irisInertia, got.model.Inertia, 0.1)
		if i == 0 {
			o = got
		}
		requireSame(t, o, got)
	}
}

// TestClustersEmptyAtTheEnd uses data for which a cluster loses all its rows in the last update
// that Tol requires. It requires one more update, which gives the cluster a row.
func TestClustersEmptyAtTheEnd(t *testing.T) {
	m := rowsOf([]float64{4, 9}, []float64{-2, -3}, []float64{7, 7}, []float64{3, -6})
	p := kmeans.Params{Init: kmeans.Given, Centers: [][]float64{{-3, 3}, {7, -5}, {9, -1}}, Tol: 1e9}
	o := train(t, m, p)
	require.Equal(t, [][]float64{{-2, -3}, {3, -6}, {5.5, 8}}, o.model.Centers)
	require.Equal(t, []float64{1, 1, 2}, o.model.Sizes)
	require.InDelta(t, 6.5, o.model.Inertia, 1e-12)
	require.Equal(t, 2, o.model.Iterations)
	require.True(t, o.model.Converged)
	// If no further update is allowed, the cluster stays empty, and the model has the size 0
	// for it.
	p.MaxIter = 1
	o = train(t, m, p)
	require.Equal(t, [][]float64{{1, 3}, {3, -6}, {7, 7}}, o.model.Centers)
	require.Equal(t, []float64{0, 2, 2}, o.model.Sizes)
	require.Equal(t, 1, o.model.Iterations)
}

func TestReseedingByCosine(t *testing.T) {
	m := rowsOf([]float64{1, 0}, []float64{5, 0.1}, []float64{0, 3}, []float64{0.1, 2})
	o := train(t, m, kmeans.Params{Init: kmeans.Given, Distance: kmeans.Cosine, Centers: [][]float64{{1, 0.1}, {-1, -1}}})
	require.Equal(t, []float64{2, 2}, o.model.Sizes)
	require.Equal(t, o.predictions[0].Cluster, o.predictions[1].Cluster)
	require.Equal(t, o.predictions[2].Cluster, o.predictions[3].Cluster)
	require.Less(t, o.model.Inertia, 0.01)
}

// referenceCosine runs textbook spherical k-means.
func referenceCosine(m data, first [][]float64, updates int) (centers [][]float64, near []int) {
	unit := func(v []float64) []float64 {
		var norm float64
		for _, x := range v {
			norm += x * x
		}
		u := make([]float64, len(v))
		for j, x := range v {
			u[j] = x / math.Sqrt(norm)
		}
		return u
	}
	for _, c := range first {
		centers = append(centers, unit(c))
	}
	near = make([]int, m.n)
	for range updates {
		sums := make([][]float64, len(centers))
		for a := range sums {
			sums[a] = make([]float64, m.d)
		}
		for i := range m.n {
			u, best := unit(m.row(i)), math.Inf(-1)
			for a, c := range centers {
				var dot float64
				for j, v := range u {
					dot += v * c[j]
				}
				if dot > best {
					best, near[i] = dot, a
				}
			}
			for j, v := range u {
				sums[near[i]][j] += v
			}
		}
		for a := range centers {
			centers[a] = unit(sums[a])
		}
	}
	return centers, near
}

func TestCosineEqualsTheReference(t *testing.T) {
	m := mixture(11, 2000, 5, 6, 2)
	for i := range m.n { // scales the rows: lengths must not matter
		for j := range m.d {
			m.row(i)[j] = (m.row(i)[j] - 5) * float64(1+i%10)
		}
	}
	first := [][]float64{m.row(0), m.row(1), m.row(2), m.row(3)}
	o := train(t, m, kmeans.Params{Init: kmeans.Given, Centers: first, Distance: kmeans.Cosine, Tol: -1, MaxIter: 300})
	require.True(t, o.model.Converged)
	centers, near := referenceCosine(m, first, o.model.Iterations)
	requireCenters(t, centers, o.model.Centers)
	for i, p := range o.predictions {
		require.Equal(t, int64(near[i]), p.Cluster)
		require.GreaterOrEqual(t, p.Distance, 0.0)
	}
}

func TestSparseEqualsDense(t *testing.T) {
	dense := mixture(12, 600, 8, 5, 1)
	for i := range dense.x {
		if i*i%7 < 4 {
			dense.x[i] = 0
		}
	}
	sparse, unsized, ragged := dense, dense, dense
	sparse.sparse = true
	unsized.sparse, unsized.unsized = true, true
	ragged.unsized = true
	for i := range dense.n {
		dense.row(i)[i%8] += 1 // so that no row is all zeros
	}
	for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
		for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
			p := kmeans.Params{K: 6, Init: init, Distance: distance, Seed: 5}
			want := train(t, dense, p)
			for _, m := range []data{sparse, unsized, ragged} {
				got := train(t, m, p, engine.Parallelism(3))
				requireCenters(t, want.model.Centers, got.model.Centers)
				for i := range want.predictions {
					require.Equal(t, want.predictions[i].Cluster, got.predictions[i].Cluster)
					require.InDelta(t, want.predictions[i].Distance, got.predictions[i].Distance, 1e-6)
				}
			}
		}
	}
}

func TestSeeds(t *testing.T) {
	m := mixture(13, 400, 2, 9, 2)
	for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
		p := kmeans.Params{K: 9, Init: init, MaxIter: 1}
		job := train(t, m, p, engine.Seed(4))
		p.Seed = 4
		own := train(t, m, p, engine.Seed(99))
		requireSame(t, job, own)
		p.Seed = 5
		require.NotEqual(t, string(own.text), string(train(t, m, p).text))
	}
}
