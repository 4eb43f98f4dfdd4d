package pipeline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type person struct {
	Age  *float64 `column:"age"`
	City string   `column:"city"`
}

func people(b *engine.Builder) *engine.Dataset {
	age := func(v float64) *float64 { return &v }
	return operators.FromSlice(b, []person{{age(20), "Oslo"}, {nil, "<Rome> & \"Bern\""}, {age(40), "Oslo"}, {age(33), "Kyiv"}})
}

func small() pipeline.Pipeline {
	return pipeline.Pipeline{Stages: []model.Stage{
		prepare.Imputer{Columns: []string{"age"}},
		prepare.OneHotEncoder{Columns: []string{"city"}, Unknown: prepare.Skip},
		prepare.VectorAssembler{Columns: []string{"age", "city"}},
	}}
}

func trained(t *testing.T, p pipeline.Pipeline) *pipeline.Model {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(p.Fit(people(b)), "model") })
	m, err := pipeline.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

func TestModelReadsBack(t *testing.T) {
	m := trained(t, small())
	path := filepath.Join(t.TempDir(), "m.json")
	require.NoError(t, m.Save(path))
	again, err := pipeline.Load(path)
	require.NoError(t, err)
	require.Equal(t, m, again)
	require.Len(t, again.Stages(), 3)
	text, err := m.Encode()
	require.NoError(t, err)
	whole, err := pipeline.DecodeAny(text)
	require.NoError(t, err)
	require.Equal(t, m, whole)
	stage, err := m.Stages()[1].Encode()
	require.NoError(t, err)
	one, err := pipeline.DecodeAny(stage)
	require.NoError(t, err)
	require.Equal(t, "one-hot-encoder", one.Kind())
	made, err := pipeline.NewModel(m.Stages()...)
	require.NoError(t, err)
	require.Equal(t, m, made)

	golden := filepath.Join("testdata", "pipeline.v1.json")
	if os.Getenv("REWRITE_MODELS") != "" {
		require.NoError(t, m.Save(golden))
	}
	old, err := pipeline.Load(golden)
	require.NoError(t, err)
	require.Equal(t, m, old)
}

func TestDecodeTellsWhatIsWrong(t *testing.T) {
	text, err := trained(t, small()).Encode()
	require.NoError(t, err)
	_, err = pipeline.Decode(text[:len(text)/2])
	require.ErrorContains(t, err, "truncated")
	_, err = pipeline.Decode([]byte(strings.Replace(string(text), "31", "32", 1)))
	require.ErrorContains(t, err, "damaged")
	_, err = pipeline.Decode([]byte(strings.Replace(string(text), `"kind":"pipeline","version":1`, `"kind":"pipeline","version":2`, 1)))
	require.ErrorContains(t, err, "reads up to version 1 and must be updated")
	wrap := func(kind string, version int, payload any) []byte {
		file, err := model.Encode(kind, version, nil, nil, payload)
		require.NoError(t, err)
		return file
	}
	type stages map[string]any
	raw := func(file []byte) any { return jsonRaw(file) }
	_, err = pipeline.Decode(wrap("pipeline", 1, stages{"stages": []any{}}))
	require.ErrorContains(t, err, "no stages")
	_, err = pipeline.Decode(wrap("pipeline", 1, stages{"stages": []any{raw(wrap("abacus", 1, 3))}}))
	require.ErrorContains(t, err, `stage 0: model of kind "abacus": this program knows`)
	_, err = pipeline.Decode(wrap("pipeline", 1, stages{"stages": []any{raw(wrap("imputer", 2, 3))}}))
	require.ErrorContains(t, err, `kind "imputer" and version 2: this program reads up to version 1`)
	_, err = pipeline.Decode(wrap("pipeline", 1, stages{"stage": 3}))
	require.ErrorContains(t, err, "payload")
	deep := text
	for range 10 {
		deep = wrap("pipeline", 1, stages{"stages": []any{raw(deep)}})
	}
	_, err = pipeline.Decode(deep)
	require.ErrorContains(t, err, "nested more than")
	_, err = pipeline.NewModel()
	require.ErrorContains(t, err, "no stages")
	_, err = pipeline.NewModel(nil)
	require.ErrorContains(t, err, "stage 0 is nil")
	_, err = pipeline.Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "load model")
}

// TestPipelinesNest requires that a pipeline can be a stage of another pipeline.
func TestPipelinesNest(t *testing.T) {
	nested := pipeline.Pipeline{Stages: []model.Stage{
		small(),
		pipeline.Pipeline{Stages: []model.Stage{prepare.MaxAbsScaler{Columns: []string{"features"}}}},
	}}
	require.Equal(t, "pipeline → pipeline", nested.String())
	trial.SameBits(t, func(b *engine.Builder) {
		m := nested.Fit(people(b))
		engine.Collect(m, "model")
		engine.Collect(nested.Apply(people(b), m), "made")
	})
	m := trained(t, nested)
	require.Equal(t, []string{"age", "city"}, columnsOf(m.Inputs()))
	s, err := m.Scorer("city", "something", "age")
	require.NoError(t, err)
	row := s.NewRow()
	row.Input(0).SetText("Oslo")
	require.NoError(t, s.Score(row))
	require.Equal(t, []int32{0, 3}, row.Cell("features").Indices)
	require.Equal(t, []float64{31.0 / 40, 1}, row.Cell("features").Values)
}

func TestScorerTellsWhatIsWrong(t *testing.T) {
	m := trained(t, small())
	_, err := m.Scorer("city", "aeg")
	require.ErrorContains(t, err, `stage 0 (imputer): the row has no column "age": did you mean "aeg"?`)
	_, err = m.Scorer("city", "age", "city")
	require.ErrorContains(t, err, `"city" is named twice`)
	s, err := m.Scorer()
	require.NoError(t, err)
	other, err := m.Scorer()
	require.NoError(t, err)
	require.ErrorContains(t, other.Score(s.NewRow()), "another scorer's")
	row := s.NewRow()
	row.Input(0).SetText("old")
	require.ErrorContains(t, s.Score(row), `stage 0 (imputer): column "age": it is text`)
	row.Input(0).SetNull()
	row.Input(1).SetText("Lima")
	require.Equal(t, model.ErrSkip, s.Score(row))
}

func TestScorerIsConcurrent(t *testing.T) {
	s, err := trained(t, small()).Scorer("age", "city")
	require.NoError(t, err)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			row := s.NewRow()
			for i := range 200 {
				row.Input(0).SetFloat(float64(1 + g*1000 + i))
				row.Input(1).SetText("Kyiv")
				if err := s.Score(row); err != nil || row.Cell("features").Values[0] != float64(1+g*1000+i) {
					t.Errorf("%v %v", err, row.Cell("features"))
					return
				}
			}
		})
	}
	group.Wait()
}

func TestPipelineTellsWhatIsWrong(t *testing.T) {
	fit := func(p pipeline.Pipeline) func(b *engine.Builder) {
		return func(b *engine.Builder) { engine.Collect(p.Apply(people(b), p.Fit(people(b))), "made") }
	}
	trial.Fails(t, fit(pipeline.Pipeline{}), "pipeline.Fit: the pipeline has no stages", "pipeline_test.go")
	trial.Fails(t, fit(pipeline.Pipeline{Stages: []model.Stage{nil}}), "stage 0 is nil")
	trial.Fails(t, fit(pipeline.Pipeline{Stages: []model.Stage{prepare.Imputer{}}}), "stage 0 (imputer): Columns is empty")
	trial.Fails(t, fit(pipeline.Pipeline{Stages: []model.Stage{prepare.Imputer{Columns: []string{"aeg"}}, prepare.Normalizer{Columns: []string{"age"}}}}), `"aeg"`)
	trial.Fails(t, func(b *engine.Builder) { small().Apply(people(b), nil) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) { small().Apply(people(b), people(b)) }, `no column "model"`)
	trial.Fails(t, func(b *engine.Builder) { small().Fit(nil) }, "the dataset is nil")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(small().Apply(people(b), pipeline.Pipeline{Stages: small().Stages[:1]}.Fit(people(b))), "made")
	}, "the model has 1 stages, the pipeline 3")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(small().Fit(operators.FromSlice(b, []person(nil))), "made")
	}, "no rows")
	// Applying the model to rows that lack its columns, or that have columns with other types,
	// must fail.
	m := trained(t, small())
	trial.Fails(t, func(b *engine.Builder) { m.Transform(operators.Select(people(b), "age")) }, `"city"`)
	trial.Fails(t, func(b *engine.Builder) {
		m.Transform(operators.Rename(operators.Rename(people(b), "age", "x"), "city", "age"))
	}, `column "age" is utf8: want numbers or dense vectors for mean`)
}

func jsonRaw(file []byte) json.RawMessage { return file }
