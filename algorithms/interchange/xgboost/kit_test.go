package xgboost

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// expected has the results that one version of XGBoost gives for its models; see
// testdata/make.py.
type expected struct {
	Rows  [][]*float64
	Cases map[string]struct {
		Objective                 string
		Rounds, Best              int
		Margin, Prediction, First []float64
		Leaf                      [][]int32
	}
}

var versions = []string{"1.7.6", "2.1.4", "3.2.0"}

func readExpected(t testing.TB, version string) (expected, [][]float64) {
	data, err := os.ReadFile(filepath.Join("testdata", version, "expected.json"))
	require.NoError(t, err)
	var want expected
	require.NoError(t, json.Unmarshal(data, &want))
	rows := make([][]float64, len(want.Rows))
	for i, row := range want.Rows {
		for _, v := range row {
			if v == nil {
				rows[i] = append(rows[i], math.NaN())
			} else {
				rows[i] = append(rows[i], *v)
			}
		}
	}
	return want, rows
}

// readAll returns the results of all versions.
func readAll(t testing.TB) (map[string]expected, map[string][][]float64) {
	all, rows := map[string]expected{}, map[string][][]float64{}
	for _, v := range versions {
		all[v], rows[v] = readExpected(t, v)
	}
	return all, rows
}

func allPredictions(m *Model, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		made := make([]float64, m.Predictions())
		m.Transform(trial.Margins(m.Ensemble, row), made)
		all = append(all, made...)
	}
	return all
}

// eachModel calls f for every model file of every version.
func eachModel(t testing.TB, f func(version, name, path string)) {
	count := 0
	for _, version := range versions {
		paths, err := filepath.Glob(filepath.Join("testdata", version, "*"))
		require.NoError(t, err)
		slices.Sort(paths)
		for _, path := range paths {
			base := filepath.Base(path)
			if base == "expected.json" {
				continue
			}
			count++
			f(version, base[:len(base)-len(filepath.Ext(base))], path)
		}
	}
	require.Greater(t, count, 80)
}

// encodings returns the encoders of both formats.
func encodings(m *Model) map[string]func() ([]byte, error) {
	return map[string]func() ([]byte, error){"JSON": m.Encode, "UBJSON": m.EncodeUBJSON}
}

func describe(version, path string) string { return fmt.Sprintf("%s %s", version, filepath.Base(path)) }
