package prepare_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// narrow is a row whose columns have types other than float64, and which has a vector that may
// be null.
type narrow struct {
	Byte  uint8      `column:"byte"`
	Float float32    `column:"float"`
	Flag  bool       `column:"flag"`
	Short []float32  `column:"short,dim=2"`
	Maybe *[]float64 `column:"maybe,dim=2"`
}

func narrows(b *engine.Builder) *engine.Dataset {
	v := func(x, y float64) *[]float64 { return &[]float64{x, y} }
	return operators.FromSlice(b, []narrow{
		{1, 0.5, true, []float32{1, 4}, v(1, 10)}, {2, 1.5, false, []float32{2, 5}, nil}, {6, 4, true, []float32{6, 6}, v(3, zero/zero)},
	})
}

func TestOtherTypes(t *testing.T) {
	m, r := try(t, narrows, prepare.MinMaxScaler{Columns: []string{"byte", "float", "flag", "short", "maybe"}})
	near(t, r, "byte", 0, 0.2, 1)
	near(t, r, "float", 0, 1/3.5, 1)
	near(t, r, "flag", 1, 0, 1)
	near(t, r, "short", 0, 0, 0.2, 0.5, 1, 1)
	require.Equal(t, "[0 0]  [1 NaN]", strings.Join(column(t, r, "maybe"), " "))
	require.Equal(t, "vector32[2]", m.Inputs()[3].Type)
	require.Equal(t, "vector[2]", typeOf(t, r, "short"))

	_, r = quick(t, narrows, prepare.Imputer{Columns: []string{"maybe", "byte"}, Strategies: []prepare.Strategy{prepare.Mean, prepare.Mode}})
	require.Equal(t, "[1 10] [2 10] [3 10]", strings.Join(column(t, r, "maybe"), " "))
	require.Equal(t, "uint8", typeOf(t, r, "byte"))
	_, r = quick(t, narrows, prepare.Normalizer{Columns: []string{"short", "maybe"}, Norm: prepare.Max})
	require.Equal(t, "", column(t, r, "maybe")[1])
	near(t, r, "short", 0.25, 1, 0.4, 1, 1, 1)
	_, r = quick(t, narrows, prepare.VectorAssembler{Columns: []string{"maybe", "short", "flag"}, Unknown: prepare.Keep})
	require.Equal(t, "[NaN NaN 2 5 0]", column(t, r, "features")[1])
	_, r = quick(t, narrows, prepare.StringIndexer{Columns: []string{"byte", "float", "flag"}, Order: prepare.ValueDescending})
	require.Equal(t, "2 1 0", strings.Join(column(t, r, "byte"), " "))
	require.Equal(t, "0 1 0", strings.Join(column(t, r, "flag"), " "))
	failsTo(t, func(b *engine.Builder) {
		engine.Collect(prepare.PCA{Columns: []string{"maybe"}}.Fit(narrows(b)), "made")
	}, `column "maybe": it is null`)
}

// TestModelsOnOtherTables requires that building a job fails if the table to which a model is
// applied lacks columns of the model or has columns with other types.
func TestModelsOnOtherTables(t *testing.T) {
	for _, s := range []model.Stage{
		prepare.StandardScaler{Columns: []string{"rooms"}},
		prepare.Imputer{Columns: []string{"rooms"}},
		prepare.Bucketizer{Columns: []string{"rooms"}, Bounds: [][]float64{{1}}},
		prepare.VectorAssembler{Columns: []string{"rooms"}},
		prepare.PolynomialFeatures{Columns: []string{"rooms"}},
		prepare.PCA{Columns: []string{"rooms"}},
		prepare.QuantileDiscretizer{Columns: []string{"rooms"}},
	} {
		m, _ := quick(t, table(samples(false)), s)
		rows := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, samples(false)) }
		trial.Fails(t, func(b *engine.Builder) { m.Transform(operators.Select(rows(b), "id", "city")) }, `"rooms"`, "types_test.go")
		trial.Fails(t, func(b *engine.Builder) {
			m.Transform(operators.Rename(operators.Select(rows(b), "id", "city"), "city", "rooms"))
		}, `column "rooms" is utf8`)
	}
	m, _ := quick(t, table(samples(false)), prepare.OneHotEncoder{Columns: []string{"rooms"}})
	trial.Fails(t, func(b *engine.Builder) {
		m.Transform(operators.Rename(operators.Select(operators.FromSlice(b, samples(false)), "vector"), "vector", "rooms"))
	}, `column "rooms" is vector[3]`)
}
