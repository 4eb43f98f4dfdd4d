package prepare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestVectorAssembler(t *testing.T) {
	rows := table(samples(false))
	m, r := try(t, rows, prepare.VectorAssembler{Columns: []string{"rooms", "vector", "same", "good"}, Unknown: prepare.Keep})
	require.Equal(t, "[3 1 -2 5 0.1 1]", column(t, r, "features")[0])
	require.Equal(t, "[2 4 8 5 0.1 NaN]", column(t, r, "features")[3])
	require.Equal(t, "vector[6]", typeOf(t, r, "features"))
	require.Zero(t, m.(*prepare.AssemblerModel).Rows())
	golden(t, m)

	m, r = quick(t, rows, prepare.VectorAssembler{Columns: []string{"rooms", "ragged"}})
	require.Equal(t, "[3 1 0]", column(t, r, "features")[0])
	require.Equal(t, "vector", typeOf(t, r, "features"))
	require.Equal(t, []int{1, 2}, m.(*prepare.AssemblerModel).Sizes)
	require.EqualValues(t, 8, m.(*prepare.AssemblerModel).Rows())

	m, r = quick(t, rows, prepare.VectorAssembler{Columns: []string{"sparse", "rooms", "vector"}, Output: "all"})
	require.Equal(t, "[0:1 3:-4 4:3 5:1 6:-2 7:5]", column(t, r, "all")[0])
	require.Equal(t, "[0:0.25 1:1 5:6 6:2.5 7:5]", column(t, r, "all")[5])
	require.Equal(t, 8, m.(*prepare.AssemblerModel).Size())

	_, r = quick(t, rows, prepare.VectorAssembler{Columns: []string{"sparse", "rooms"}, Form: prepare.Dense})
	require.Equal(t, "[1 0 0 -4 3]", column(t, r, "features")[0])
	_, r = quick(t, rows, prepare.VectorAssembler{Columns: []string{"rooms", "vector"}, Form: prepare.Sparse})
	require.Equal(t, "[0:3 1:3 3:5]", column(t, r, "features")[2])
	require.Equal(t, "sparse[4]", typeOf(t, r, "features"))
	_, r = quick(t, rows, prepare.VectorAssembler{Columns: []string{"age", "good"}, Unknown: prepare.Skip})
	require.Equal(t, "1 3 5 6 7 8", strings.Join(column(t, r, "id"), " "))
	_, r = quick(t, rows, prepare.VectorAssembler{Columns: []string{"age", "sparse"}, Unknown: prepare.Keep})
	require.Equal(t, "[0:NaN]", column(t, r, "features")[1])

	fails(t, samples(false), prepare.VectorAssembler{Columns: []string{"age"}}, `column "age": it is null`)
	fails(t, samples(false), prepare.VectorAssembler{Columns: []string{"city"}}, `column "city" is utf8`)
	ragged := samples(false)
	ragged[2].Ragged = nil
	fails(t, ragged, prepare.VectorAssembler{Columns: []string{"ragged"}}, "vectors of 0 to 2 components")
	fails(t, nil, prepare.VectorAssembler{Columns: []string{"ragged"}}, "no rows")
}

// TestColumnsWithoutComponents requires that the other columns can be used if a text column
// with a single value gives no component.
func TestColumnsWithoutComponents(t *testing.T) {
	same := samples(false)
	for i := range same {
		same[i].City = p("Oslo")
	}
	encoded := func(b *engine.Builder) *engine.Dataset {
		in, o := operators.FromSlice(b, same), prepare.OneHotEncoder{Columns: []string{"city"}, DropLast: true}
		return o.Apply(in, o.Fit(in))
	}
	m, r := try(t, encoded, prepare.VectorAssembler{Columns: []string{"city", "rooms", "vector"}})
	require.Equal(t, "[0:3 1:1 2:-2 3:5]", column(t, r, "features")[0])
	require.Equal(t, []int{0, 1, 3}, m.(*prepare.AssemblerModel).Sizes)
	failsTo(t, func(b *engine.Builder) {
		rows := encoded(b)
		a := prepare.VectorAssembler{Columns: []string{"city"}}
		engine.Collect(a.Apply(rows, a.Fit(rows)), "made")
	}, `column "city" has no components in any row`)

	empty := samples(false)
	for i := range empty {
		empty[i].Ragged = []float64{}
	}
	m, r = try(t, table(empty), prepare.PolynomialFeatures{Columns: []string{"ragged", "rooms"}})
	require.Equal(t, "[3 9]", column(t, r, "features")[0])
	require.Equal(t, []int{0, 1}, m.(*prepare.PolynomialModel).Sizes)
}

func typeOf(t *testing.T, r *engine.Result, column string) string {
	t.Helper()
	for _, c := range columnsOf(record(t, r, "made").Schema()) {
		if c.Name == column {
			return c.Type
		}
	}
	return ""
}

func TestFeatureHasher(t *testing.T) {
	rows := table(samples(true))
	s := prepare.FeatureHasher{Columns: []string{"age", "rooms", "city", "good"}, Size: 1000}
	m, r := try(t, rows, s)
	golden(t, m)
	require.Equal(t, "sparse[1000]", typeOf(t, r, "features"))
	// place computes component and sign from the documented definition of the hash.
	place := func(column, value string) (int, float64) {
		h := xxh3.HashStringSeed(value, xxh3.HashString(column))
		return int((h >> 1) % 1000), 1 - 2*float64(h&1)
	}
	want := make([]float64, 1000)
	for _, c := range []struct {
		column, value string
		times         float64
	}{{"age", "", 22}, {"rooms", "", 3}, {"city", "Oslo", 1}, {"good", "true", 1}} {
		at, sign := place(c.column, c.value)
		want[at] += sign * c.times
	}
	require.Equal(t, want, denseOf(t, r, "features", 1000)[0])
	// Null and NaN add nothing, categories are hashed by their value, and collisions occur
	// because there are only 3 components.
	_, r = quick(t, rows, prepare.FeatureHasher{Columns: []string{"age", "rooms"}, Size: 3, Categories: []string{"rooms"}, Unsigned: true, Output: "h"})
	for i, v := range denseOf(t, r, "h", 3) {
		sum := v[0] + v[1] + v[2]
		require.InDelta(t, []float64{23, 1, 39, 27.5, 1, -3, 55, 3}[i], sum, 1e-12)
	}
	fails(t, samples(false), prepare.FeatureHasher{Columns: []string{"vector"}}, `column "vector" is vector[3]`)
	fails(t, samples(false), prepare.FeatureHasher{Columns: []string{"age"}, Size: -1}, "Size is -1")
	fails(t, samples(false), prepare.FeatureHasher{Columns: []string{"age"}, Categories: []string{"rooms"}}, `"rooms", which is not among Columns`)
}

func TestPolynomialFeatures(t *testing.T) {
	rows := table(samples(false)[:3])
	m, r := try(t, rows, prepare.PolynomialFeatures{Columns: []string{"ragged"}, Degree: 3, Bias: true})
	near(t, r, "features", 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 8.0, 1.0, -3.0, 0.5, 9.0, -1.5, 0.25, -27.0, 4.5, -0.75, 0.125)
	require.Equal(t, [][]int{{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 1}, {0, 2}, {3, 0}, {2, 1}, {1, 2}, {0, 3}}, m.(*prepare.PolynomialModel).Powers())
	golden(t, m)
	_, r = quick(t, table(samples(false)[:2]), prepare.PolynomialFeatures{Columns: []string{"vector"}, Degree: 3, InteractionOnly: true, Output: "p"})
	near(t, r, "p", 1.0, -2.0, 5.0, -2.0, 5.0, -10.0, -10.0, 2.0, 4.0, 5.0, 8.0, 10.0, 20.0, 40.0)
	require.Equal(t, "vector[7]", typeOf(t, r, "p"))
	_, r = quick(t, rows, prepare.PolynomialFeatures{Columns: []string{"rooms", "good"}})
	near(t, r, "features", 3, 1, 9, 3, 1, 1, 0, 1, 0, 0, 3, 1, 9, 3, 1)
	fails(t, samples(false), prepare.PolynomialFeatures{Columns: []string{"age"}}, `column "age": it is null`)
	fails(t, samples(false), prepare.PolynomialFeatures{Columns: []string{"sparse"}}, `column "sparse"`)
	fails(t, samples(false), prepare.PolynomialFeatures{Columns: []string{"vector"}, Degree: 33}, "Degree is 33")
	fails(t, samples(false), prepare.PolynomialFeatures{Columns: []string{"vector", "rooms", "same", "age", "good"}, Degree: 30}, "lower Degree")
}

func TestNormalizer(t *testing.T) {
	rows := table(samples(false))
	_, r := try(t, rows, prepare.Normalizer{Columns: []string{"ragged"}, Norm: prepare.L1})
	near(t, r, "ragged", 1.0, 0.0, 0.0, 1.0, -0.8571428571428571, 0.14285714285714285, 0.9997500624843788, 0.0002499375156210947, 0.4166666666666667, 0.5833333333333334, 0.46153846153846156, -0.5384615384615384, 0.0, 0.0, 0.5, 0.5)
	_, r = quick(t, rows, prepare.Normalizer{Columns: []string{"ragged"}})
	near(t, r, "ragged", 1.0, 0.0, 0.0, 1.0, -0.9863939238321437, 0.1643989873053573, 0.9999999687500015, 0.0002499999921875004, 0.5812381937190965, 0.813733471206735, 0.6507913734559685, -0.7592566023652966, 0.0, 0.0, 0.7071067811865475, 0.7071067811865475)
	m, r := try(t, rows, prepare.Normalizer{Columns: []string{"ragged", "sparse"}, Outputs: []string{"n", "s"}, Norm: prepare.Max})
	near(t, r, "n", 1.0, 0.0, 0.0, 1.0, -1.0, 0.16666666666666666, 1.0, 0.00025, 0.7142857142857143, 1.0, 0.8571428571428571, -1.0, 0.0, 0.0, 1.0, 1.0)
	require.Equal(t, "[0:0.25 3:-1] []", strings.Join(column(t, r, "s")[:2], " "))
	golden(t, m)
	// The squares of these lengths overflow or underflow float64.
	far := samples(false)[:2]
	far[0].Ragged, far[1].Ragged = []float64{3e200, -4e200}, []float64{3e-200, 4e-200}
	_, r = quick(t, table(far), prepare.Normalizer{Columns: []string{"ragged"}})
	near(t, r, "ragged", 0.6, -0.8, 0.6, 0.8)
	far[0].Ragged = []float64{1.5e308, 1.5e308}
	_, r = quick(t, table(far), prepare.Normalizer{Columns: []string{"ragged"}, Norm: prepare.L1})
	near(t, r, "ragged", 0.5, 0.5, 3.0/7, 4.0/7)
	// An infinity is refused, as in scikit-learn.
	for _, norm := range []prepare.Norm{prepare.L2, prepare.L1, prepare.Max} {
		far[1].Ragged, far[1].Sparse = []float64{1, math.Inf(-1)}, operators.SparseVector{Indices: []int32{3}, Values: []float64{math.Inf(1)}}
		fails(t, far, prepare.Normalizer{Columns: []string{"ragged"}, Norm: norm}, `column "ragged": component 1 is -Inf: want a finite number`, "row")
		fails(t, far, prepare.Normalizer{Columns: []string{"sparse"}, Norm: norm}, `column "sparse": component 3 is +Inf: want a finite number`)
	}
	fails(t, samples(false), prepare.Normalizer{Columns: []string{"age"}}, `column "age" is float64: want vectors`)
	fails(t, samples(false), prepare.Normalizer{Columns: []string{"ragged"}, Norm: 5}, "Norm(5)")
}

func TestModelsRefuseOtherVectors(t *testing.T) {
	long := samples(false)
	long[4].Ragged = []float64{1}
	for _, c := range []struct {
		stage interface {
			Fit(*engine.Dataset) *engine.Dataset
			Apply(rows, m *engine.Dataset) *engine.Dataset
		}
		want string
	}{
		{prepare.MinMaxScaler{Columns: []string{"ragged"}}, "trained on 2"},
		{prepare.VectorAssembler{Columns: []string{"ragged"}}, "trained on 2"},
		{prepare.PolynomialFeatures{Columns: []string{"ragged"}}, "trained on 2"},
		{prepare.PCA{Columns: []string{"ragged"}}, "want 2"},
		{prepare.Imputer{Columns: []string{"ragged"}}, "trained on 2"},
	} {
		build := func(b *engine.Builder) {
			engine.Collect(c.stage.Apply(operators.FromSlice(b, long), c.stage.Fit(operators.FromSlice(b, samples(false)))), "made")
		}
		failsTo(t, build, `column "ragged": it has 1 components`, c.want)
	}
}
