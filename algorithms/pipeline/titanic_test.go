package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func titanic(b *engine.Builder) *engine.Dataset {
	return operators.ReadCSV(b, "testdata/titanic.csv", operators.CSVOptions{Header: true})
}

// passengers returns a pipeline that computes features of passengers.
func passengers() pipeline.Pipeline {
	numbers := []string{"age", "fare", "sibsp", "parch"}
	words := []string{"sex", "embarked", "class"}
	return pipeline.Pipeline{Stages: []model.Stage{
		prepare.Imputer{Columns: numbers, Strategy: prepare.Median},
		prepare.StandardScaler{Columns: numbers},
		prepare.Imputer{Columns: words, Strategy: prepare.Mode},
		prepare.StringIndexer{Columns: words, Order: prepare.ValueAscending, Unknown: prepare.Keep},
		prepare.OneHotEncoder{Columns: words, Outputs: []string{"is_sex", "is_embarked", "is_class"}, Unknown: prepare.Zeros},
		prepare.VectorAssembler{Columns: []string{"age", "fare", "sibsp", "parch", "is_sex", "is_embarked", "is_class"}, Form: prepare.Dense},
	}}
}

// TestTitanic compares features with the features that scikit-learn 1.9.1 computed from the
// same columns. It used SimpleImputer(median) and StandardScaler for numbers, and
// SimpleImputer(most_frequent) and OneHotEncoder for text.
func TestTitanic(t *testing.T) {
	r := trial.Run(t, func(b *engine.Builder) {
		rows := titanic(b)
		trained := passengers().Fit(rows)
		engine.Collect(trained, "model")
		engine.Collect(passengers().Apply(rows, trained), "made")
	})
	made := features(t, r)
	require.Len(t, made, 891)
	for i, want := range map[int][]float64{
		0:   {-0.565736461074875, -0.5024451714361915, 0.43279336567850346, -0.473673609298456, 0, 1, 0, 0, 1, 0, 0, 1},
		5:   {-0.10463740114712758, -0.478116428908643, -0.4745451962498414, -0.473673609298456, 0, 1, 0, 1, 0, 0, 0, 1},
		61:  {0.6638610320657846, 0.9623533213877365, -0.4745451962498414, -0.473673609298456, 1, 0, 0, 0, 1, 1, 0, 0},
		829: {2.508257271776774, 0.9623533213877365, -0.4745451962498414, -0.473673609298456, 1, 0, 0, 0, 1, 1, 0, 0},
	} {
		require.InDeltaSlice(t, want, made[i], 1e-13, "passenger %d", i)
	}
	sums := make([]float64, 12)
	for i, row := range made {
		require.Len(t, row, 12)
		for j, v := range row {
			sums[j] += v * float64(i%7)
		}
	}
	require.InDeltaSlice(t, []float64{112.3604584959116, 51.827424563510554, -4.885982514177425, 37.124865707603576, 944, 1724, 522, 244, 1902, 691, 518, 1459}, sums, 1e-9)

	// A job that only applies the model must give the same bits, and so must a Scorer.
	m, err := pipeline.ModelOf(r, "model")
	require.NoError(t, err)
	later := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(m.Transform(titanic(b)), "made")
		engine.Collect(passengers().Apply(titanic(b), m.Dataset(b)), "applied")
	})
	require.Equal(t, made, features(t, later))
	require.Equal(t, []string{"age", "fare", "sibsp", "parch", "sex", "embarked", "class"}, columnsOf(m.Inputs()))

	s, err := m.Scorer()
	require.NoError(t, err)
	row := s.NewRow()
	row.Input(0).SetFloat(22)
	row.Input(1).SetFloat(7.25)
	row.Input(2).SetInt(1)
	row.Input(3).SetInt(0)
	row.Input(4).SetText("male")
	row.Input(5).SetText("S")
	row.Input(6).SetText("Third")
	require.NoError(t, s.Score(row))
	require.Equal(t, made[0], row.Cell("features").Values)
	require.Zero(t, testing.AllocsPerRun(50, func() { _ = s.Score(row) }))
	require.Equal(t, 22.0, row.Input(0).Float)
	require.Equal(t, made[0][0], row.Cell("age").Float)
	require.Nil(t, row.Cell("agee"))
	require.Nil(t, row.Input(7))
}

func TestTitanicHasTheSameBits(t *testing.T) {
	trial.SameBits(t, func(b *engine.Builder) {
		rows := operators.First(titanic(b), 60)
		trained := passengers().Fit(rows)
		engine.Collect(trained, "model")
		engine.Collect(passengers().Apply(rows, trained), "made")
	})
}

func features(t *testing.T, r *engine.Result) [][]float64 {
	t.Helper()
	recs, err := arrowbridge.Records(r, "made")
	require.NoError(t, err)
	var all [][]float64
	for _, rec := range recs {
		at, err := batch.FindColumn(rec.Schema(), "features")
		require.NoError(t, err)
		indptr, values, ok := batch.RaggedView(rec.Column(at))
		require.True(t, ok)
		for i := range int(rec.NumRows()) {
			all = append(all, append([]float64(nil), values[indptr[i]:indptr[i+1]]...))
		}
	}
	return all
}

func columnsOf(inputs []model.Input) []string {
	var all []string
	for _, in := range inputs {
		all = append(all, in.Column)
	}
	return all
}
