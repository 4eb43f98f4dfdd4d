package lightgbm

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// expected has the results that one version of LightGBM gives for its models; see
// testdata/make.py.
type expected struct {
	Rows  [][]*string
	Cases map[string]struct {
		Trees           int
		Raw, Prediction []float64
		Leaf            [][]int32
	}
}

var versions = []string{"2.3.1", "3.3.5", "4.7.0"}

func readExpected(t testing.TB, version string) (expected, [][]float64) {
	data, err := os.ReadFile(filepath.Join("testdata", version, "expected.json"))
	require.NoError(t, err)
	var want expected
	require.NoError(t, json.Unmarshal(data, &want))
	rows := make([][]float64, len(want.Rows))
	for i, row := range want.Rows {
		for _, text := range row {
			v := math.NaN()
			if text != nil {
				v, err = strconv.ParseFloat(*text, 64)
				require.NoError(t, err)
			}
			rows[i] = append(rows[i], v)
		}
	}
	return want, rows
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
		made := margins(m.Ensemble, row)
		m.Transform(made, made)
		all = append(all, made...)
	}
	return all
}

// requireNear requires that numbers agree within 1e-12, relative to the larger of their size
// and 1.
func requireNear(t testing.TB, want, got []float64, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		require.LessOrEqual(t, math.Abs(got[i]-want[i]), 1e-12*max(1, math.Abs(want[i])),
			"%s: number %d is %v, not %v", what, i, got[i], want[i])
	}
}

// eachModel calls f for every model file of every version.
func eachModel(t testing.TB, f func(version, name, path string)) {
	count := 0
	for _, version := range versions {
		paths, err := filepath.Glob(filepath.Join("testdata", version, "*.txt"))
		require.NoError(t, err)
		slices.Sort(paths)
		for _, path := range paths {
			count++
			f(version, strings.TrimSuffix(filepath.Base(path), ".txt"), path)
		}
	}
	require.Greater(t, count, 50)
}

// readTable returns the numbers in the lines of text.
func readTable(t testing.TB, text string) [][]float64 {
	var made [][]float64
	for line := range strings.Lines(text) {
		var row []float64
		for _, f := range strings.Fields(line) {
			v, err := strconv.ParseFloat(f, 64)
			require.NoError(t, err)
			row = append(row, v)
		}
		made = append(made, row)
	}
	return made
}
