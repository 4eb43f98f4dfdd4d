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

	"github.com/superstep-ml/superstep/algorithms/tree"
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

// margins computes the margins of a row by walking the trees from node to node, by the
// definitions of package tree.
func margins(e *tree.Ensemble, row []float64) []float64 {
	sums, counts := make([]float64, e.Outputs), make([]float64, e.Outputs)
	for i := range e.Trees {
		t := &e.Trees[i]
		leaf := t.Leaf(row, e.Single)
		if t.Values == nil {
			sums[t.Output] += t.Weight * t.Nodes[leaf].Value
			counts[t.Output]++
			continue
		}
		for o := range sums {
			sums[o] += t.Weight * t.Values[int(leaf)*e.Outputs+o]
			counts[o]++
		}
	}
	for o := range sums {
		if e.Average && counts[o] > 0 {
			sums[o] /= counts[o]
		}
		sums[o] += e.Base[o]
	}
	return sums
}

func allMargins(e *tree.Ensemble, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		all = append(all, margins(e, row)...)
	}
	return all
}

func allPredictions(m *Model, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		made := make([]float64, m.Predictions())
		m.Transform(margins(m.Ensemble, row), made)
		all = append(all, made...)
	}
	return all
}

// requireNear requires that numbers agree within 1e-6, relative to the larger of their size and
// 1.
func requireNear(t testing.TB, want, got []float64, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		require.LessOrEqual(t, math.Abs(got[i]-want[i]), 1e-6*max(1, math.Abs(want[i])),
			"%s: number %d is %v, not %v", what, i, got[i], want[i])
	}
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
