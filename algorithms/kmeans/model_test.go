package kmeans_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

var rewrite = flag.Bool("rewrite", false, "write the golden model anew; files of released versions must stay as they are")

// sample returns the model in the golden file.
func sample() *kmeans.Model {
	return &kmeans.Model{
		Centers: [][]float64{{0.1, -2.5e-8}, {1e16, 1.0 / 3}}, Sizes: []float64{2, 0.5}, Inertia: 12.25,
		Iterations: 1, Converged: true, Distance: kmeans.Euclidean, Dim: 2, VectorCol: "features", VectorType: "vector[2]",
		History: []kmeans.Superstep{{Inertia: 40, Movement: 1.5}, {Inertia: 12.25}},
	}
}

func TestModelFileOfVersion2(t *testing.T) {
	golden := filepath.Join("testdata", "model_v2.json")
	if *rewrite {
		os.Remove(golden)
		require.NoError(t, sample().Save(golden))
	}
	m, err := kmeans.Load(golden)
	require.NoError(t, err)
	require.Equal(t, sample(), m)
	path := filepath.Join(t.TempDir(), "model.json")
	require.NoError(t, m.Save(path))
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestModelsReadBackExactly(t *testing.T) {
	for _, distance := range []kmeans.Distance{kmeans.Euclidean, kmeans.Cosine} {
		o := train(t, wild(300, 3), kmeans.Params{K: 4, Distance: distance, MaxIter: 5})
		path := filepath.Join(t.TempDir(), "model.json")
		require.NoError(t, o.model.Save(path))
		require.NoError(t, o.model.Save(path)) // replaces the old file
		back, err := kmeans.Load(path)
		require.NoError(t, err)
		text, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, string(o.text), string(text))
		for i, p := range o.predictions {
			cluster, dist := back.Predict(wild(300, 3).row(i))
			require.Equal(t, p.Cluster, int64(cluster))
			require.Equal(t, math.Float64bits(p.Distance), math.Float64bits(dist))
		}
		files, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, files, 1, "Save must leave no temporary file")
	}
}

func TestModelsThatCannotBeSaved(t *testing.T) {
	dir := t.TempDir()
	for want, change := range map[string]func(*kmeans.Model){
		"component 1 of center 0 is NaN": func(m *kmeans.Model) { m.Centers[0][1] = math.NaN() },
		"size 1 is +Inf":                 func(m *kmeans.Model) { m.Sizes[1] = math.Inf(1) },
		"size 0 is -1":                   func(m *kmeans.Model) { m.Sizes[0] = -1 },
		"inertia is NaN":                 func(m *kmeans.Model) { m.Inertia = math.NaN() },
		"entry 0 of history":             func(m *kmeans.Model) { m.History[0].Movement = math.Inf(1) },
		"there are 2 entries in history for 0 iterations": func(m *kmeans.Model) { m.Iterations = 0 },
		"iterations is -1":                    func(m *kmeans.Model) { m.Iterations = -1 },
		"there are no centers":                func(m *kmeans.Model) { m.Centers = nil },
		"there are 1 sizes for 2 centers":     func(m *kmeans.Model) { m.Sizes = m.Sizes[:1] },
		"center 1 has 1 components, dim is 2": func(m *kmeans.Model) { m.Centers[1] = m.Centers[1][:1] },
		"dim is 0":                            func(m *kmeans.Model) { m.Dim = 0 },
		`the columns of clusters and distances are both "distance"`: func(m *kmeans.Model) { m.PredictionCol = "distance" },
		"unknown distance Distance(4)":                              func(m *kmeans.Model) { m.Distance = 4 },
	} {
		m := sample()
		change(m)
		require.ErrorContains(t, m.Save(filepath.Join(dir, "bad.json")), want)
	}
	require.ErrorContains(t, sample().Save(filepath.Join(dir, "none", "x.json")), "save model: ")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o755))
	require.ErrorContains(t, sample().Save(filepath.Join(dir, "taken")), "save model: ")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	_, err = kmeans.Load(filepath.Join(dir, "missing.json"))
	require.ErrorContains(t, err, "load model: ")
}

func TestDamagedModels(t *testing.T) {
	text, err := sample().Encode()
	require.NoError(t, err)
	alter := func(old, new string) []byte {
		require.Contains(t, string(text), old)
		return []byte(strings.Replace(string(text), old, new, 1))
	}
	for _, c := range []struct {
		text []byte
		want string
	}{
		{nil, "model is empty"},
		{[]byte(" \n"), "model is empty"},
		{text[:len(text)/2], "model is truncated after "},
		{text[:len(text)-1], "model is truncated after "},
		{append(bytes.Clone(text), "{}"...), fmt.Sprintf("model is damaged: it ends after %d of %d bytes, and something else follows it", len(text), len(text)+2)},
		{append(bytes.Clone(text), "\nx"...), fmt.Sprintf("model is damaged: it ends after %d of %d bytes, and something else follows it", len(text), len(text)+2)},
		{append(bytes.Clone(text), 'x'), fmt.Sprintf("model is damaged: it ends after %d of %d bytes, and something else follows it", len(text), len(text)+1)},
		{alter("0.1", "0.2"), "model is damaged: the checksum of what was read is xxh3:"},
		{alter("12.25", "12.250000000001"), "the checksum"},
		{alter("[2,0.5]", "[0.5,2]"), "the checksum"},
		{alter("features", "feature"), "the checksum"},
		{alter("vector[2]", "vector[3]"), "the checksum"},
		{alter("true", "false"), "the checksum"},
		{alter("euclidean", "cosine"), "the checksum"},
		{alter(`"version":2`, `"version":3`), `model of kind "kmeans" and version 3: this program reads up to version 2 and must be updated`},
		{alter(`"version":2`, `"version":0`), "version is 0, versions begin at 1"},
		{alter(`"kind":"kmeans"`, `"kind":"gmm"`), `model of kind "gmm": want one of kind "kmeans"`},
		{forged(t, "[]", "{}", "{}"), "it has 0 inputs, want one"},
		{forged(t, `[{"column":"x","type":"vector[1]"}]`, "null", "{}"), "summary: it is null"},
		{forged(t, `[{"column":"x","type":"vector[1]"}]`, `{"history":{"inertia":[1]}}`, "{}"), "history has 1 inertias and 0 movements"},
		{forged(t, `[{"column":"x","type":"vector[1]"}]`, "{}", `{"center":[]}`), `payload: json: unknown field "center"`},
		{forged(t, `[{"column":"x","type":"vector[1]"}]`, "{}", `{"distance":"chebyshev"}`), `unknown distance "chebyshev"`},
		{forged(t, `[{"column":"x","type":"vector[1]"}]`, "{}", `{"distance":"cosine","dim":1,"centers":[[1,2]],"sizes":[1]}`), "center 0 has 2 components, dim is 1"},
		{forged(t, `[{"column":"x","type":"vector[1]"}]`, "{}", `{"distance":"cosine","dim":1,"centers":[[1]],"sizes":[1],"distance_column":"cluster"}`), `are both "cluster"`},
		{[]byte(`{"a":1}`), `not a model: it has no text "format"`},
		{[]byte(`[1]`), "not a model"},
		{[]byte(`hello`), "model is damaged: "},
	} {
		_, err := kmeans.Decode(c.text)
		require.ErrorContains(t, err, c.want)
	}
	// Additional white space is allowed.
	var wide bytes.Buffer
	require.NoError(t, json.Indent(&wide, text, "", "  "))
	m, err := kmeans.Decode(wide.Bytes())
	require.NoError(t, err)
	require.Equal(t, sample(), m)
}

// forged returns a model's file with the given inputs, summary and payload, which may
// contradict each other, and a correct checksum.
func forged(t *testing.T, inputs, summary, payload string) []byte {
	t.Helper()
	var in []model.Input
	require.NoError(t, json.Unmarshal([]byte(inputs), &in))
	text, err := model.Encode("kmeans", 2, in, json.RawMessage(summary), json.RawMessage(payload))
	require.NoError(t, err)
	return text
}

// TestCommonModel requires that a k-means model can be used like all other models: read by
// kind, applied in jobs and applied to single rows.
func TestCommonModel(t *testing.T) {
	m := iris(t)
	o := train(t, m, kmeans.Params{K: 3})
	require.Equal(t, "vector[4]", o.model.VectorType)
	common, err := kmeans.Decode(o.text)
	require.NoError(t, err)
	require.Equal(t, "kmeans", common.Kind())
	require.Equal(t, []model.Input{{Column: "features", Type: "vector[4]"}}, common.Inputs())
	_, err = kmeans.Decode(o.text[1:])
	require.Error(t, err)

	p := kmeans.Params{VectorCol: "features", K: 3}
	for _, stage := range []model.Stage{p, kmeans.MiniBatchParams{Params: p}, kmeans.BisectingParams{Params: p}} {
		require.Equal(t, "kmeans", stage.Kind())
		r := trial.Run(t, func(b *engine.Builder) {
			points := m.dataset(b)
			trained := stage.Fit(points)
			engine.Collect(trained, "model")
			engine.Collect(stage.Apply(points, trained), "predictions")
			engine.Collect(common.Transform(points), "transformed")
		})
		own, err := kmeans.ModelOf(r, "model")
		require.NoError(t, err)
		predictions, err := engine.Rows[prediction](r, "predictions")
		require.NoError(t, err)
		transformed, err := engine.Rows[prediction](r, "transformed")
		require.NoError(t, err)
		require.Equal(t, o.predictions, transformed)
		layout := model.NewLayout("id", "features")
		step, err := own.Bind(layout)
		require.NoError(t, err)
		row := layout.NewRow()
		for i, want := range predictions {
			row[1].SetDense(m.row(i))
			require.NoError(t, step(row))
			require.Equal(t, want.Cluster, row[2].Int)
			require.Equal(t, math.Float64bits(want.Distance), math.Float64bits(row[3].Float))
			row[1].SetSparse(4, []int32{0, 1, 2, 3}, m.row(i))
			require.NoError(t, step(row))
			require.Equal(t, want.Cluster, row[2].Int)
		}
		row[1].SetDense([]float64{1, math.NaN(), 2, 3})
		require.NoError(t, step(row))
		require.Equal(t, model.NullCell, row[2].Kind)
		row[1].SetNull()
		require.NoError(t, step(row))
		require.Equal(t, model.NullCell, row[3].Kind)
		row[1].SetDense(m.row(0)[:3])
		require.ErrorContains(t, step(row), `column "features" has 3 components, the model was trained on 4`)
		row[1].SetSparse(9, []int32{8}, []float64{1})
		require.ErrorContains(t, step(row), `column "features": it has 9 components, the model was trained on 4`)
		for _, c := range []struct {
			size    int
			indices []int32
			values  []float64
			want    string
		}{
			{4, []int32{-1}, []float64{1}, "it has a component -1"},
			{0, []int32{4}, []float64{1}, "it has a component 4, the model was trained on 4"},
			{4, []int32{1, 1}, []float64{1, 2}, "it has component 1 twice"},
			{4, []int32{1, 0}, []float64{1, 2}, "component 0 follows component 1"},
			{4, []int32{1, 2}, []float64{1}, "it has 2 indices and 1 values"},
		} {
			row[1].SetSparse(c.size, c.indices, c.values)
			require.ErrorContains(t, step(row), `column "features": `+c.want)
		}
		row[1].SetInt(7)
		require.ErrorContains(t, step(row), `column "features" is `)
		_, err = own.Bind(model.NewLayout("feature"))
		require.ErrorContains(t, err, `did you mean "feature"`)
	}
}

func FuzzDecode(f *testing.F) {
	text, err := sample().Encode()
	require.NoError(f, err)
	f.Add(text)
	f.Add(text[:40])
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := kmeans.Decode(text)
		if err != nil {
			return
		}
		again, err := m.Encode()
		require.NoError(t, err)
		back, err := kmeans.Decode(again)
		require.NoError(t, err)
		require.Equal(t, m, back)
		m.Predict(make([]float64, m.Dim))
	})
}

func TestPredictOnePoint(t *testing.T) {
	m := &kmeans.Model{Centers: [][]float64{{0, 0}, {3, 4}, {3, 4}}, Sizes: []float64{1, 1, 1}, Dim: 2}
	cluster, dist := m.Predict([]float64{3, 0})
	require.Equal(t, 0, cluster)
	require.Equal(t, 3.0, dist)
	cluster, dist = m.Predict([]float64{3, 5})
	require.Equal(t, 1, cluster, "of two centres at the same distance, Predict must return the lower number")
	require.Equal(t, 1.0, dist)
	cluster, dist = m.PredictSparse([]int32{1}, []float64{8})
	require.Equal(t, 1, cluster)
	require.Equal(t, 5.0, dist)
	for _, x := range [][]float64{nil, {1}, {1, 2, 3}, {math.NaN(), 1}} {
		cluster, dist = m.Predict(x)
		require.Equal(t, -1, cluster)
		require.True(t, math.IsNaN(dist))
	}
	for _, index := range []int32{-1, 2} {
		cluster, dist = m.PredictSparse([]int32{index}, []float64{1})
		require.Equal(t, -1, cluster)
		require.True(t, math.IsNaN(dist))
	}
	cluster, _ = m.PredictSparse([]int32{0, 1}, []float64{1})
	require.Equal(t, -1, cluster)

	c := &kmeans.Model{Centers: [][]float64{{1, 0}, {0, 1}}, Sizes: []float64{1, 1}, Dim: 2, Distance: kmeans.Cosine}
	cluster, dist = c.Predict([]float64{1, 1e9})
	require.Equal(t, 1, cluster)
	require.InDelta(t, 0, dist, 1e-9)
	cluster, dist = c.PredictSparse([]int32{0}, []float64{-2})
	require.Equal(t, 1, cluster)
	require.Equal(t, 1.0, dist)
}

func TestPredictingAllocatesNothingAndIsConcurrent(t *testing.T) {
	m := sample()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				m.Predict([]float64{1, 2})
				m.PredictSparse([]int32{1}, []float64{2})
			}
		})
	}
	group.Wait()
	x, indices := []float64{1, 2}, []int32{1}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.Predict(x)
		m.PredictSparse(indices, x[:1])
	}))
}

// TestNamesOfOutputs requires, for every kind of training, that the columns that a model adds
// have the names that the parameters set.
func TestNamesOfOutputs(t *testing.T) {
	m := iris(t)
	p := kmeans.Params{VectorCol: "features", K: 2, PredictionCol: "group", DistanceCol: "far"}
	for _, stage := range []model.Stage{p, kmeans.MiniBatchParams{Params: p}, kmeans.BisectingParams{Params: p}} {
		r := trial.Run(t, func(b *engine.Builder) {
			trained := stage.Fit(m.dataset(b))
			engine.Collect(trained, "model")
			engine.Collect(stage.Apply(m.dataset(b), trained), "applied")
		})
		made, err := kmeans.ModelOf(r, "model")
		require.NoError(t, err)
		text, err := made.Encode()
		require.NoError(t, err)
		back, err := kmeans.Decode(text)
		require.NoError(t, err)
		require.Equal(t, "group", back.PredictionCol)
		require.Equal(t, "far", back.DistanceCol)
		again := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(back.Transform(m.dataset(b)), "applied")
			plain := kmeans.Predict(m.dataset(b), back.Dataset(b), kmeans.PredictOptions{})
			engine.Collect(operators.Rename(operators.Rename(plain, "cluster", "group"), "distance", "far"), "plain")
		})
		type named struct {
			Group int64
			Far   float64
		}
		want, err := engine.Rows[named](r, "applied")
		require.NoError(t, err)
		for _, name := range []string{"applied", "plain"} {
			got, err := engine.Rows[named](again, name)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		layout := model.NewLayout("features")
		_, err = back.Bind(layout)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"features": 0, "group": 1, "far": 2}, layout.Columns())
	}
}

func TestSavedModelsPredictInJobs(t *testing.T) {
	m := iris(t)
	o := train(t, m, kmeans.Params{K: 3})
	run := func(points data, model *kmeans.Model, options kmeans.PredictOptions) (*engine.Result, error) {
		job := engine.Define("apply", func(b *engine.Builder, _ struct{}) error {
			engine.Collect(kmeans.Predict(points.dataset(b), model.Dataset(b), options), "predictions")
			return nil
		})
		return engine.Run(t.Context(), job, struct{}{}, checked(t), engine.Shards(4))
	}
	r, err := run(m, o.model, kmeans.PredictOptions{VectorCol: "features", ClusterCol: "c", DistanceCol: "d"})
	require.NoError(t, err)
	defer r.Release()
	type renamed struct {
		C int64
		D float64
	}
	rows, err := engine.Rows[renamed](r, "predictions")
	require.NoError(t, err)
	for i, p := range o.predictions {
		require.Equal(t, renamed{p.Cluster, p.Distance}, rows[i])
	}
	_, err = kmeans.ModelOf(r, "predictions")
	require.Error(t, err)
	_, err = kmeans.ModelOf(r, "model")
	require.ErrorContains(t, err, `no result "model"`)

	sparse := rowsOf([]float64{0, 1, 2, 3, 4})
	sparse.sparse = true
	ragged := rowsOf([]float64{0, 1, 2, 3, 4})
	ragged.unsized = true
	for _, points := range []data{rowsOf([]float64{1, 2, 3}), sparse, ragged} {
		_, err = run(points, o.model, kmeans.PredictOptions{})
		require.ErrorContains(t, err, `row 0 of the shard: column "features" has`)
		require.ErrorContains(t, err, "the model was trained on 4")
	}
}
