package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

func TestKindsAreDistinctAndDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range catalog.Kinds() {
		require.NotEmpty(t, k.Name)
		require.NotEmpty(t, k.About, k.Name)
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		// Decode of each kind must report a truncated file, and a file of another kind.
		_, err := k.Decode([]byte("{"))
		require.ErrorContains(t, err, "truncated", k.Name)
		other, err := model.Encode("abacus", 1, nil, nil, 3)
		require.NoError(t, err)
		_, err = k.Decode(other)
		require.ErrorContains(t, err, `"abacus"`, k.Name)
	}
}

// TestEveryEstimatorIsTested requires that the estimators that the tests of this package train
// are those of the catalog.
func TestEveryEstimatorIsTested(t *testing.T) {
	cataloged, tested := map[string]bool{}, map[string]bool{}
	for _, e := range catalog.Estimators() {
		cataloged[e.Kind()] = true
	}
	for name, e := range estimators {
		trained, ok := e.stage("x").(model.Estimator)
		require.True(t, ok, name)
		tested[trained.Kind()] = true
	}
	require.Equal(t, cataloged, tested)
}

func TestDecodeTellsUnknownKinds(t *testing.T) {
	file, err := model.Encode("abacus", 1, nil, nil, 3)
	require.NoError(t, err)
	_, err = catalog.Decode(file)
	require.ErrorContains(t, err, `model of kind "abacus": this program knows`)
	require.ErrorContains(t, err, "imputer")
	_, err = catalog.Decode(nil)
	require.ErrorContains(t, err, "empty")
}

// batchOnly is a model that cannot compute single rows.
type batchOnly struct{}

func (batchOnly) Kind() string                                   { return "batch-only" }
func (batchOnly) Inputs() []model.Input                          { return nil }
func (batchOnly) Encode() ([]byte, error)                        { return nil, nil }
func (batchOnly) Transform(rows *engine.Dataset) *engine.Dataset { return rows }

func TestBindTellsWhatCannotScoreRows(t *testing.T) {
	_, err := catalog.Bind(batchOnly{}, model.NewLayout())
	require.ErrorContains(t, err, `"batch-only" cannot score single rows`)
}

// TestOldFilesAreRead requires that files of earlier versions can still be decoded.
func TestOldFilesAreRead(t *testing.T) {
	for path, kind := range map[string]string{
		"../kmeans/testdata/model_v2.json":            "kmeans",
		"../gmm/testdata/model_v1.json":               "gmm",
		"../svm/testdata/svc_v1.json":                 "linear-svc",
		"../svm/testdata/svr_v1.json":                 "linear-svr",
		"../glm/testdata/model_v1.json":               "glm",
		"../fm/testdata/model_v1.json":                "fm",
		"../mlp/testdata/model_v1.json":               "mlp",
		"../linear/testdata/model_v1.json":            "linear",
		"../logistic/testdata/model_v1.json":          "logistic",
		"../naivebayes/testdata/model_v1.json":        "naivebayes",
		"../prepare/testdata/pca.v1.json":             "pca",
		"../prepare/testdata/standard-scaler.v1.json": "standard-scaler",
	} {
		file, err := model.ReadFile(path)
		require.NoError(t, err)
		m, err := catalog.Decode(file)
		require.NoError(t, err, path)
		require.Equal(t, kind, m.Kind())
		layout := model.NewLayout()
		for _, in := range m.Inputs() {
			layout.Add(in.Column)
		}
		step, err := catalog.Bind(m, layout)
		require.NoError(t, err, path)
		require.NotNil(t, step)
	}
}
