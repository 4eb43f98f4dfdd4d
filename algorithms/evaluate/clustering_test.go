package evaluate_test

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

type clustered struct {
	X       []float64 `column:"x,dim=2"`
	Cluster int64
	Truth   string
	Weight  float64
}

var (
	clusterX = [][]float64{{1, 2}, {1.5, 1.75}, {0.5, 2.25}, {8, 8}, {8.5, 7.5}, {7.75, 8.25}, {1, 8}, {1.25, 7.5}, {4, 5}, {8, 1}}
	clusterC = []int64{0, 0, 0, 1, 1, 1, 2, 2, 2, 3}
	clusterT = strings.Split("aabbbbccac", "")
	both     = evaluate.ClusteringOptions{VectorCol: "x", ClusterCol: "cluster", LabelCol: "truth", WeightCol: "weight", Exact: true}
)

func clusteredRows(x [][]float64, c []int64, truth []string, weight []float64) []clustered {
	rows := make([]clustered, len(x))
	for i := range rows {
		rows[i] = clustered{x[i], c[i], truth[i], 1}
		if weight != nil {
			rows[i].Weight = weight[i]
		}
	}
	return rows
}

func clustering(o evaluate.ClusteringOptions) func(*engine.Dataset) *engine.Dataset {
	return func(d *engine.Dataset) *engine.Dataset { return evaluate.Clustering(d, o) }
}

func clusterMeasures(r *evaluate.ClusteringReport) []float64 {
	return []float64{r.Silhouette, r.ExactSilhouette, r.DaviesBouldin, r.CalinskiHarabasz, r.ARI, r.NMI, r.Homogeneity, r.Completeness, r.VMeasure}
}

// TestClusteringEqualsScikitLearn compares reports with scikit-learn's silhouette_score for
// squared and plain distances, davies_bouldin_score, calinski_harabasz_score,
// adjusted_rand_score, normalized_mutual_info_score and homogeneity_completeness_v_measure.
func TestClusteringEqualsScikitLearn(t *testing.T) {
	r := measured[evaluate.ClusteringReport](t, clusteredRows(clusterX, clusterC, clusterT, nil), clustering(both))
	require.InDeltaSlice(t, []float64{
		0.7532401891744824, 0.6519432261166496, 0.3583217669653252, 30.589860139860143,
		0.32098765432098764, 0.5884891726309148, 0.6492712741077913, 0.538113229302088, 0.5884891726309147,
	}, clusterMeasures(r), 1e-12)
	require.Equal(t, 0.8, r.Purity)
	requireSame(t, must(evaluate.MeasureClustering(clusterC, clusterX, clusterT, nil, both)), r)
	requireClose(t, (0.9888806523350631+0.9737394957983193+0.9711538461538461)/3, r.Clusters[0].Silhouette, "of a cluster")
	require.Equal(t, []float64{8, 1}, r.Clusters[3].Center)
	require.Contains(t, r.String(), "cluster  weight  silhouette")

	x, species := iris(t)
	r = must(evaluate.MeasureClustering(species, x, []string(nil), nil, both))
	require.InDeltaSlice(t, []float64{0.6564679231041907, 0.5032506980366628, 0.7517428073901377, 486.32083931855703}, clusterMeasures(r)[:4], 1e-9)
	require.True(t, math.IsNaN(r.ARI))
	var given []int
	for _, v := range x {
		c := 0
		if v[2] > 2.5 {
			c++
		}
		if v[2] > 4.9 {
			c++
		}
		given = append(given, c)
	}
	r = must(evaluate.MeasureClustering(given, nil, species, nil, evaluate.ClusteringOptions{}))
	require.InDeltaSlice(t, []float64{0.8509627406851713, 0.8365829144738786, 0.8357697892170906, 0.8373976234600069, 0.8365829144738787}, clusterMeasures(r)[4:], 1e-12)
	require.True(t, math.IsNaN(r.Silhouette))
	require.Len(t, r.Clusters, 3)
}

// iris returns the measurements and species of the bundled iris data set.
func iris(t testing.TB) (x [][]float64, species []string) {
	f, err := os.Open("../../examples/kmeans/data/iris.csv")
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, record := range records[1:] {
		v := make([]float64, 4)
		for j := range v {
			v[j], err = strconv.ParseFloat(strings.TrimSpace(record[j]), 64)
			require.NoError(t, err)
		}
		x, species = append(x, v), append(species, record[4])
	}
	return x, species
}

// TestClusteringEqualsItsDefinition compares reports with a reference that computes silhouettes
// and agreement pair by pair.
func TestClusteringEqualsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 25).Draw(t, "n")
		d := rapid.IntRange(1, 3).Draw(t, "d")
		far := rapid.SampledFrom([]float64{0, 1e6}).Draw(t, "far")
		x, c, truth := make([][]float64, n), make([]int, n), make([]int, n)
		for i := range n {
			for range d {
				x[i] = append(x[i], far+float64(rapid.IntRange(-8, 8).Draw(t, "x"))/4)
			}
			c[i], truth[i] = rapid.IntRange(0, 3).Draw(t, "c"), rapid.IntRange(0, 2).Draw(t, "truth")
		}
		r := must(evaluate.MeasureClustering(c, x, truth, nil, evaluate.ClusteringOptions{Exact: true}))
		squared := func(i, j int) (s float64) {
			for k := range d {
				s += (x[i][k] - x[j][k]) * (x[i][k] - x[j][k])
			}
			return s
		}
		both, same, known, all := 0.0, 0.0, 0.0, 0.0
		var mean, exact float64
		for i := range n {
			mean += naiveSilhouette(i, c, squared) / float64(n)
			exact += naiveSilhouette(i, c, func(i, j int) float64 { return math.Sqrt(squared(i, j)) }) / float64(n)
			for j := range i {
				all++
				if c[i] == c[j] {
					same++
				}
				if truth[i] == truth[j] {
					known++
				}
				if c[i] == c[j] && truth[i] == truth[j] {
					both++
				}
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(c)))) < 2 {
			require.Equal(t, []string{"silhouette: there is one cluster", "davies_bouldin: there is one cluster", "calinski_harabasz: there is one cluster"}, r.Undefined)
		} else {
			require.InDelta(t, mean, r.Silhouette, 1e-9)
			require.InDelta(t, exact, r.ExactSilhouette, 1e-12)
		}
		ari := 1.0
		if expected := same * known / all; (same+known)/2 != expected {
			ari = (both - expected) / ((same+known)/2 - expected)
		}
		require.InDelta(t, ari, r.ARI, 1e-9)
	})
}

// naiveSilhouette returns the silhouette of row i from its distances to all other rows.
func naiveSilhouette(i int, c []int, distance func(i, j int) float64) float64 {
	sums, counts := map[int]float64{}, map[int]float64{}
	for j := range c {
		if i != j {
			sums[c[j]] += distance(i, j)
			counts[c[j]]++
		}
	}
	if counts[c[i]] == 0 {
		return 0
	}
	a, b := sums[c[i]]/counts[c[i]], math.Inf(1)
	for k := range counts {
		if k != c[i] {
			b = min(b, sums[k]/counts[k])
		}
	}
	if math.IsInf(b, 0) || max(a, b) == 0 {
		return 0
	}
	return (b - a) / max(a, b)
}

func TestClusteringIsAFunctionOfTheRows(t *testing.T) {
	n := 300
	numbers, weight := wildNumbers("points", 2*n), wildNumbers("cluster weight", n)
	draws := sharding.NewRandom(9, "clusters", 0, 0)
	x, c, truth := make([][]float64, n), make([]int64, n), make([]string, n)
	for i := range n {
		x[i], c[i], truth[i], weight[i] = numbers[2*i:2*i+2], int64(draws.IntN(5)), clusterT[draws.IntN(10)], math.Abs(weight[i])
	}
	want := must(evaluate.MeasureClustering(c, x, truth, weight, both))
	rows := clusteredRows(x, c, truth, weight)
	slices.Reverse(rows)
	requireSame(t, want, measured[evaluate.ClusteringReport](t, rows, clustering(both), engine.Shards(128)))
	trial.SameBits(t, func(b *engine.Builder) {
		engine.Collect(evaluate.Clustering(operators.FromSlice(b, rows), both), "report")
	})
}

// TestClusteringOfAnyVectors requires that vectors of every type give the same report, and that
// integer weights give the report of repeated rows.
func TestClusteringOfAnyVectors(t *testing.T) {
	type row struct {
		Dense   []float64 `column:"dense,dim=2"`
		Single  []float32 `column:"single,dim=2"`
		Ragged  []float64
		Singles []float32
		Sparse  batch.SparseVector `column:"sparse,size=2"`
		Cluster uint8
	}
	rows := make([]row, len(clusterX))
	for i, v := range clusterX {
		single := []float32{float32(v[0]), float32(v[1])}
		rows[i] = row{v, single, v, single, batch.SparseVector{Indices: []int32{0, 1}, Values: v}, uint8(clusterC[i])}
	}
	want := must(evaluate.MeasureClustering(clusterC, clusterX, []int(nil), nil, evaluate.ClusteringOptions{}))
	for _, name := range []string{"dense", "single", "ragged", "singles", "sparse"} {
		requireSame(t, want, measured[evaluate.ClusteringReport](t, rows, clustering(evaluate.ClusteringOptions{VectorCol: name, ClusterCol: "cluster"})))
	}
	rows[3].Ragged = []float64{1}
	requireFailure(t, rows, clustering(evaluate.ClusteringOptions{VectorCol: "ragged", ClusterCol: "cluster"}), "components")
}

func TestClusteringOfAModel(t *testing.T) {
	x, species := iris(t)
	type flower struct {
		X       []float64 `column:"x,dim=4"`
		Species string
	}
	rows := make([]flower, len(x))
	for i := range rows {
		rows[i] = flower{x[i], species[i]}
	}
	r := measured[evaluate.ClusteringReport](t, rows, func(d *engine.Dataset) *engine.Dataset {
		model := kmeans.Train(d, kmeans.Params{VectorCol: "x", K: 3, Seed: 1})
		return evaluate.Clustering(kmeans.Predict(d, model, kmeans.PredictOptions{}), evaluate.ClusteringOptions{VectorCol: "x", ClusterCol: "cluster", LabelCol: "species"})
	})
	require.InDelta(t, 78.945, r.Within, 0.01) // inertia of the best three clusters
	require.Greater(t, r.ARI, 0.7)
	require.Greater(t, r.Silhouette, 0.7)
}

func TestClusteringOfLittleAndOfNothing(t *testing.T) {
	r := measured[evaluate.ClusteringReport](t, []clustered{}, clustering(both))
	require.Equal(t, []string{"all: there are no rows of positive weight"}, r.Undefined)
	requireSame(t, must(evaluate.MeasureClustering([]int64{}, [][]float64{}, []string{}, nil, both)), r)
	r = measured[evaluate.ClusteringReport](t, clusteredRows(clusterX[:1], clusterC, clusterT, nil), clustering(both))
	require.Len(t, r.Undefined, 3)
	require.Equal(t, []float64{1, 1, 1, 0}, []float64{r.ARI, r.NMI, r.Purity, r.Within})
	// Every row is alone in its cluster.
	r = must(evaluate.MeasureClustering([]int{0, 1, 2}, clusterX[:3], []string(nil), nil, both))
	require.Equal(t, []float64{0, 0, 0}, []float64{r.Silhouette, r.ExactSilhouette, r.DaviesBouldin})
	require.Equal(t, []string{"calinski_harabasz: there are no more rows than clusters"}, r.Undefined)
	// All points are equal. In the second case, some rows also have weight 0.
	r = must(evaluate.MeasureClustering([]int{0, 1, 0, 1}, [][]float64{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, []string(nil), nil, both))
	require.Equal(t, []float64{0, 0, 0}, []float64{r.Silhouette, r.DaviesBouldin, r.Within})
	require.Equal(t, []string{"calinski_harabasz: every row is at its cluster's centre"}, r.Undefined)
	r = must(evaluate.MeasureClustering([]int{0, 1, 0, 1}, clusterX[:4], []string(nil), []float64{1, 0, 1, 0}, both))
	require.Len(t, r.Clusters, 1)
	r = must(evaluate.MeasureClustering([]int{0, 1}, clusterX[:2], []string{"a", "b"}, []float64{0, 0}, both))
	require.Equal(t, []string{"all: there are no rows of positive weight"}, r.Undefined)
}

func TestClusteringRefusesWhatItCannotMeasure(t *testing.T) {
	rows := clusteredRows(clusterX, clusterC, clusterT, nil)
	for text, o := range map[string]evaluate.ClusteringOptions{
		"VectorCol and LabelCol are empty":               {ClusterCol: "cluster"},
		"Exact is set, but there is no VectorCol":        {ClusterCol: "cluster", LabelCol: "truth", Exact: true},
		"ExactRows is -1":                                {ClusterCol: "cluster", LabelCol: "truth", ExactRows: -1},
		"exact silhouette of 10 rows":                    {ClusterCol: "cluster", VectorCol: "x", Exact: true, ExactRows: 9},
		"ClusterCol is empty":                            {VectorCol: "x"},
		`column "truth" is utf8, not a vector`:           {ClusterCol: "cluster", VectorCol: "truth"},
		`VectorCol: `:                                    {ClusterCol: "cluster", VectorCol: "y"},
		`column "x" is vector[2]: want numbers, text or`: {ClusterCol: "x", LabelCol: "truth"},
	} {
		requireFailure(t, rows, clustering(o), text)
	}
	bad := slices.Clone(rows)
	bad[0].X = []float64{1, math.NaN()}
	requireFailure(t, bad, clustering(both), `column "x": component 1 is NaN; set Skip`)
	skip := both
	skip.Skip = true
	requireSame(t, must(evaluate.MeasureClustering(clusterC[1:], clusterX[1:], clusterT[1:], nil, both)), measured[evaluate.ClusteringReport](t, bad, clustering(skip)))
	for _, err := range []error{
		second(evaluate.MeasureClustering(clusterC, clusterX[1:], clusterT, nil, both)),
		second(evaluate.MeasureClustering(clusterC, clusterX, clusterT[1:], nil, both)),
		second(evaluate.MeasureClustering([]int{1, 2}, [][]float64{{1}, {1, 2}}, clusterT[:2], nil, both)),
		second(evaluate.MeasureClustering([]int{1}, [][]float64{{math.NaN()}}, clusterT[:1], nil, both)),
		second(evaluate.MeasureClustering([]float64{math.NaN()}, [][]float64{{1}}, clusterT[:1], nil, both)),
		second(evaluate.MeasureClustering(clusterC, clusterX, clusterT, nil, evaluate.ClusteringOptions{Exact: true, ExactRows: 5})),
	} {
		require.Error(t, err)
	}
}
