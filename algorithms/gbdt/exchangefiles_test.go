package gbdt_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestFilesOfOthers reads model files of several versions of XGBoost and LightGBM. It compares
// the predictions of the models with the predictions of packages xgboost and lightgbm, which
// read the same files and are tested against the libraries. Files with unknown objectives must
// be refused with the reason.
func TestFilesOfOthers(t *testing.T) {
	refused := map[string]string{
		"ova": `"multiclassova"`, "sqrt": "predicts roots", "entropylambda": `"cross_entropy_lambda"`,
		"hinge": `"binary:hinge"`, "two": "it has 2 outputs", "xgboost quantile": "it has 3 outputs",
	}
	read := 0
	for _, pattern := range []string{"../interchange/xgboost/testdata/*/*.json", "../interchange/xgboost/testdata/*/*.ubj", "../interchange/lightgbm/testdata/*/*.txt"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			if name == "expected" {
				continue
			}
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var m *gbdt.Model
			var e *tree.Ensemble
			var transform func(margins, predictions []float64)
			if strings.Contains(path, "lightgbm") {
				l, err2 := lightgbm.Decode(data)
				require.NoError(t, err2, path)
				e, transform = l.Ensemble, l.Transform
				m, err = gbdt.FromLightGBM(l, gbdt.ImportOptions{})
			} else {
				x, err2 := xgboost.Decode(data)
				require.NoError(t, err2, path)
				if x.Predictions() < x.Ensemble.Outputs {
					x.Objective = "multi:softprob" // compare probabilities, not class numbers
				}
				e, transform = x.Ensemble, x.Transform
				m, err = gbdt.FromXGBoost(x, gbdt.ImportOptions{})
			}
			want, ok := refused[name]
			if !ok && strings.Contains(path, "xgboost") { // LightGBM supports only one quantile
				want, ok = refused["xgboost "+name]
			}
			if ok {
				require.ErrorContains(t, err, want, path)
				continue
			}
			require.NoError(t, err, path)
			predictsAs(t, m, e, transform, path)
			read++
		}
	}
	require.Greater(t, read, 40)
}

// predictsAs requires that m predicts what the ensemble e predicts; transform applies the link.
func predictsAs(t *testing.T, m *gbdt.Model, e *tree.Ensemble, transform func(margins, predictions []float64), path string) {
	t.Helper()
	r := sharding.NewRandom(1, path, 0, 0)
	s := e.Scorer()
	row, want := make([]float64, len(e.Features)), make([]float64, e.Outputs)
	got := make([]float64, len(m.Classes.Values))
	for range 30 {
		for j := range row {
			if row[j] = math.Round(8*r.NormFloat64()) / 4; r.IntN(6) == 0 {
				row[j] = math.NaN()
			}
		}
		s.Scores(row, want)
		transform(want, want)
		if len(got) == 0 {
			require.InDelta(t, want[0], m.Predict(row), 1e-12*max(1, math.Abs(want[0])), path)
			continue
		}
		require.True(t, m.PredictProbability(row, got))
		if e.Outputs == 1 {
			require.InDelta(t, want[0], got[1], 1e-12, path)
			continue
		}
		require.InDeltaSlice(t, want, got, 1e-12, path)
	}
}
