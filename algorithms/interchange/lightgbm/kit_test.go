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

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
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

func allPredictions(m *Model, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		made := trial.Margins(m.Ensemble, row)
		m.Transform(made, made)
		all = append(all, made...)
	}
	return all
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
