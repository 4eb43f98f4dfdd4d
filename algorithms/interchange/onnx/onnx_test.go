package onnx

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/exporttest"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// cases returns lists of stages. The models trained from them together use everything that can
// be exported.
func cases() map[string][]model.Stage {
	numbers := []string{"age", "fare"}
	features := exporttest.Features
	return map[string][]model.Stage{
		"logistic-text": {
			prepare.Imputer{Columns: numbers, Strategy: prepare.Mean},
			prepare.StandardScaler{Columns: numbers},
			prepare.Imputer{Columns: []string{"sex"}, Strategy: prepare.Mode},
			prepare.StringIndexer{Columns: []string{"sex"}, Outputs: []string{"number"}, Unknown: prepare.Keep},
			prepare.OneHotEncoder{Columns: []string{"sex", "deck", "number"}, Outputs: []string{"is_sex", "is_deck", "is_number"}, Unknown: prepare.Zeros, DropLast: true},
			prepare.VectorAssembler{Columns: []string{"age", "fare", "is_sex", "is_deck", "is_number", "alone"}, Form: prepare.Dense},
			logistic.Params{VectorCol: "features", LabelCol: "class", L2: 0.01},
		},
		"logistic-bool":    features(logistic.Params{VectorCol: "features", LabelCol: "lived", L2: 0.01, Threshold: 0.4}),
		"logistic-two":     {logistic.Params{FeatureCols: []string{"fare", "deck"}, LabelCol: "lived", L2: 0.01, Family: logistic.Multinomial}},
		"logistic-int":     features(logistic.Params{VectorCol: "features", LabelCol: "rank", L2: 0.01}),
		"logistic-float":   {logistic.Params{FeatureCols: []string{"fare", "deck"}, LabelCol: "degree", L2: 0.01}},
		"logistic-offset":  {logistic.Params{FeatureCols: []string{"fare", "deck"}, LabelCol: "lived", L2: 0.01, OffsetCol: "degree"}},
		"linear":           features(linear.Params{VectorCol: "features", LabelCol: "price"}),
		"linear-offset":    {linear.Params{FeatureCols: []string{"fare", "alone", "deck"}, LabelCol: "price", OffsetCol: "degree"}},
		"kmeans":           features(kmeans.Params{VectorCol: "features", K: 4}),
		"kmeans-cosine":    features(kmeans.Params{VectorCol: "features", K: 3, Distance: kmeans.Cosine, PredictionCol: "group", DistanceCol: "far"}),
		"standard-scaler":  {prepare.StandardScaler{Columns: numbers}},
		"min-max-scaler":   {prepare.MinMaxScaler{Columns: numbers, Min: -1, Max: 2, Clip: true}},
		"max-abs-scaler":   {prepare.MaxAbsScaler{Columns: numbers, Outputs: []string{"a", "b"}}},
		"robust-scaler":    features(prepare.RobustScaler{Columns: []string{"features"}}),
		"imputer":          {prepare.Imputer{Columns: []string{"age", "sex", "alone", "deck"}, Strategy: prepare.Constant, Values: []string{"30", "unknown", "true", "7"}}},
		"indexer-keep":     {prepare.StringIndexer{Columns: []string{"sex", "deck", "alone", "fare"}, Unknown: prepare.Keep}},
		"indexer-refuse":   {prepare.StringIndexer{Columns: []string{"deck"}}, prepare.MaxAbsScaler{Columns: []string{"deck"}}},
		"one-hot-shares":   {prepare.OneHotEncoder{Columns: []string{"sex", "deck"}, Unknown: prepare.Shares, DropLast: true}, prepare.VectorAssembler{Columns: []string{"sex", "deck"}, Form: prepare.Dense}},
		"one-hot-missing":  {prepare.Imputer{Columns: []string{"sex"}, Strategy: prepare.Mode}, prepare.OneHotEncoder{Columns: []string{"sex"}, Unknown: prepare.Shares, RefuseMissing: true}},
		"one-hot-keep":     {prepare.OneHotEncoder{Columns: []string{"sex", "alone"}, Unknown: prepare.Keep}},
		"one-hot-refuse":   {prepare.Imputer{Columns: []string{"sex"}, Strategy: prepare.Mode}, prepare.OneHotEncoder{Columns: []string{"sex"}}, prepare.VectorAssembler{Columns: []string{"sex", "fare"}, Form: prepare.Dense}},
		"bucketizer":       {prepare.Bucketizer{Columns: []string{"age", "fare"}, Bounds: [][]float64{{10, 20, 40}}, Unknown: prepare.Keep}},
		"quantiles":        {prepare.QuantileDiscretizer{Columns: []string{"fare"}, Outputs: []string{"fares"}, Buckets: 4}},
		"normalizer-l1":    features(prepare.Normalizer{Columns: []string{"features"}, Norm: prepare.L1}),
		"normalizer-l2":    features(prepare.Normalizer{Columns: []string{"features"}}),
		"normalizer-max":   features(prepare.Normalizer{Columns: []string{"features"}, Norm: prepare.Max}),
		"pca":              features(prepare.PCA{Columns: []string{"features"}, K: 3, Whiten: true}),
		"polynomial":       features(prepare.PolynomialFeatures{Columns: []string{"features"}, Output: "products", Degree: 3, Bias: true}),
		"polynomial-cross": features(prepare.PolynomialFeatures{Columns: []string{"features"}, Output: "products", Degree: 3, InteractionOnly: true}),
	}
}

func applied() []map[string]any { return exporttest.Rows(1e6) }

// trained returns the trained model of each case.
func trained(t *testing.T) map[string]model.Model {
	all := exporttest.Lone(t)
	for name, stages := range cases() {
		all[name] = exporttest.Train(t, stages...)
	}
	return all
}

// TestExport requires that each graph gives the same results as its model, and that the
// imported model has the same model file.
func TestExport(t *testing.T) {
	for name, m := range trained(t) {
		t.Run(name, func(t *testing.T) {
			data, err := Export(m)
			require.NoError(t, err)
			again, err := Export(m)
			require.NoError(t, err)
			require.Equal(t, data, again)
			f, err := decodeFile(data)
			require.NoError(t, err)
			require.Equal(t, data, f.encode())
			requireSame(t, m, f, applied(), 1e-12)

			back, err := Import(data)
			require.NoError(t, err)
			want, err := m.Encode()
			require.NoError(t, err)
			got, err := back.Encode()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			fixture(t, name, m, data)
			requireSingle(t, name, m)
		})
	}
}

// requireSingle requires that a graph of ExportSingle gives the same results as its model,
// within the rounding of float32, and that the imported model is exported to the same file
// again.
func requireSingle(t *testing.T, name string, m model.Model) {
	data, err := ExportSingle(m)
	if name == "indexer-keep" {
		require.ErrorContains(t, err, "is no number of float32", "fares as categories")
		return
	}
	require.NoError(t, err)
	f, err := decodeFile(data)
	require.NoError(t, err)
	requireSame(t, m, f, applied(), 1e-5)
	back, err := Import(data)
	require.NoError(t, err)
	again, err := ExportSingle(back)
	require.NoError(t, err)
	require.Equal(t, data, again)
}

// fixture compares a file with the one in testdata, on which onnxruntime was run; see check.py.
func fixture(t *testing.T, name string, m model.Model, data []byte) {
	kept := map[string]bool{"logistic-text": true, "linear": true, "kmeans": true, "pca": true}
	path := filepath.Join("testdata", name+".onnx")
	if *rewrite {
		writeRun(t, name, m)
	}
	if !kept[name] {
		return
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, string(want) == string(data), "%s differs from what is written now: run check.py on what -rewrite writes", path)
}

// run is input for check.py: a file, the inputs, and the outputs that the model in this package
// gives for them.
type run struct {
	Single  bool             `json:"single"`
	File    []byte           `json:"file"`
	Rows    []map[string]any `json:"rows"`
	Inputs  []model.Input    `json:"inputs"`
	Outputs map[string][]any `json:"outputs"`
}

// writeRun writes runs to the directory in the environment variable RUNS. The files are not
// committed.
func writeRun(t *testing.T, name string, m model.Model) {
	dir := os.Getenv("RUNS")
	if dir == "" {
		return
	}
	for suffix, write := range map[string]func(model.Model) ([]byte, error){"": Export, "-single": ExportSingle} {
		data, err := write(m)
		if err != nil {
			continue
		}
		f, err := decodeFile(data)
		require.NoError(t, err)
		r := run{Single: suffix != "", File: data, Rows: applied(), Inputs: m.Inputs(), Outputs: map[string][]any{}}
		for out, a := range evaluate(t, f, feed(t, m, r.Rows)) {
			for i := range a.size() {
				switch {
				case a.isText:
					r.Outputs[out] = append(r.Outputs[out], a.text[i])
				case math.IsNaN(a.num[i]):
					r.Outputs[out] = append(r.Outputs[out], nil)
				default:
					r.Outputs[out] = append(r.Outputs[out], a.num[i])
				}
			}
		}
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+suffix+".json"), text, 0o644))
	}
}
