package xgboost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// TestModelsOfXGBoost requires that models of three versions of XGBoost give the same margins,
// predictions, leaves, and margins of the first round in this package as in these versions.
func TestModelsOfXGBoost(t *testing.T) {
	all, rows := readAll(t)
	eachModel(t, func(version, name, path string) {
		what := describe(version, path)
		want, ok := all[version].Cases[name]
		require.True(t, ok, what)
		m, err := Load(path)
		require.NoError(t, err, what)
		require.Equal(t, want.Objective, m.Objective, what)
		require.Equal(t, want.Rounds, m.Rounds(), what)
		best, ok := m.BestRound()
		require.Equal(t, want.Best >= 0, ok, what)
		if ok {
			require.Equal(t, want.Best+1, best, what)
		}
		trial.RequireNear(t, 1e-6, want.Margin, trial.AllMargins(m.Ensemble, rows[version]), what+" margins")
		trial.RequireNear(t, 1e-6, want.Prediction, allPredictions(m, rows[version]), what+" predictions")
		trial.RequireNear(t, 1e-6, want.First, trial.AllMargins(m.First(1).Ensemble, rows[version]), what+" first round")
		for k := range m.Ensemble.Trees {
			number := map[int32]int32{} // for each leaf of the file, its number in the ensemble
			for i, row := range rows[version] {
				leaf := m.Ensemble.Trees[k].Leaf(row, true)
				if name != "pruned" { // the files of "pruned" have unreachable nodes
					require.Equal(t, want.Leaf[i][k], leaf, "%s row %d tree %d", what, i, k)
				}
				if before, ok := number[want.Leaf[i][k]]; ok {
					require.Equal(t, before, leaf, "%s row %d tree %d", what, i, k)
				}
				number[want.Leaf[i][k]] = leaf
			}
		}
	})
}

// TestRoundTrip requires that a decoded model is the same after it was encoded, in both
// formats, and decoded again.
func TestRoundTrip(t *testing.T) {
	_, rows := readAll(t)
	eachModel(t, func(version, name, path string) {
		what := describe(version, path)
		m, err := Load(path)
		require.NoError(t, err, what)
		for format, encode := range encodings(m) {
			data, err := encode()
			require.NoError(t, err, what)
			back, err := Decode(data)
			require.NoError(t, err, what+format)
			trial.RequireNear(t, 1e-6, trial.AllMargins(m.Ensemble, rows[version]), trial.AllMargins(back.Ensemble, rows[version]), what+format)
			if name != "softprob" && name != "parallel" && name != "softmax" && name != "dart-softprob" && name != "two" && name != "quantile" {
				// The other models have a base for each output, which is added to leaf values.
				trial.SameTrees(t, m.Ensemble, back.Ensemble, what+format)
			}
			require.Equal(t, m.Attributes, back.Attributes, what)
			require.Equal(t, m.ParallelTrees, back.ParallelTrees, what)
			require.Equal(t, [3]int{2, 1, 0}, back.Version, what)
			for k, v := range m.Parameters {
				require.Equal(t, v, back.Parameters[k], what)
			}
			again, err := encodings(back)[format]()
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, again), what+format)
		}
	})
}

// TestToyOf14 compares the predictions of a model of XGBoost 1.4, whose splits are all
// categorical, with the predictions of XGBoost.
func TestToyOf14(t *testing.T) {
	m, err := Load("testdata/toy_categorical.json")
	require.NoError(t, err)
	require.Equal(t, [3]int{1, 4, 0}, m.Version)
	lines, err := os.ReadFile("testdata/toy_categorical.rows")
	require.NoError(t, err)
	var rows [][]float64
	for line := range strings.Lines(string(lines)) {
		row := []float64{math.NaN(), math.NaN()}
		for _, cell := range strings.Fields(line)[1:] {
			var i int
			var v float64
			_, err := fmt.Sscanf(cell, "%d:%g", &i, &v)
			require.NoError(t, err)
			row[i] = v
		}
		rows = append(rows, row)
	}
	text, err := os.ReadFile("testdata/toy_categorical.predictions")
	require.NoError(t, err)
	var want []float64
	for _, f := range strings.Fields(string(text)) {
		v, err := strconv.ParseFloat(f, 64)
		require.NoError(t, err)
		want = append(want, v)
	}
	require.Len(t, want, 20)
	// The expected predictions have only seven digits.
	got := allPredictions(m, rows)
	for i := range want {
		require.InDelta(t, want[i], got[i], 2e-6*max(1, math.Abs(want[i])), "row %d", i)
	}
}

// TestCategoriesOfDataFrames requires that the categories of a data frame have their names, in
// the order of their codes.
func TestCategoriesOfDataFrames(t *testing.T) {
	m, err := Load("testdata/frame.json")
	require.NoError(t, err)
	e := m.Ensemble
	require.Equal(t, [][]string{{"red", "green", "blue", "no colour"}, nil, {"40", "10", "30"}}, e.Categories)
	var want struct {
		Colour     []*string
		Weight     []float64
		Size       []string
		Prediction []float64
	}
	data, err := os.ReadFile("testdata/frame.expected.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	var rows [][]float64
	for i := range want.Prediction {
		colour := math.NaN()
		if want.Colour[i] != nil {
			colour = float64(slices.Index(e.Categories[0], *want.Colour[i]))
		}
		rows = append(rows, []float64{colour, want.Weight[i], float64(slices.Index(e.Categories[2], want.Size[i]))})
	}
	require.Len(t, rows, 20)
	trial.RequireNear(t, 1e-6, want.Prediction, allPredictions(m, rows), "predictions")
	// The names are not written, but the sets of codes are.
	file, err := m.Encode()
	require.NoError(t, err)
	back, err := Decode(file)
	require.NoError(t, err)
	require.Equal(t, []string{"c", "float", "c"}, back.Types)
	trial.RequireNear(t, 1e-6, want.Prediction, allPredictions(back, rows), "predictions")

	for wrong, change := range map[string][2]string{
		"enc: it has 2 columns: there are 3":                {`{"offsets":[],"values":[]},`, ``},
		"enc[0]: offset 2 is below the one before":          {`"offsets":[0,3,8`, `"offsets":[0,8,3`},
		"enc[0].offsets[4]: it is 99: want":                 {`12,21]`, `12,99]`},
		"enc[0].values[0]: it is 999: want an integer":      {`"values":[114`, `"values":[999`},
		"enc[2].values: it is text: want an array of numbe": {`"values":[40,10,30]`, `"values":"x"`},
	} {
		text, err := os.ReadFile("testdata/frame.json")
		require.NoError(t, err)
		changed := strings.Replace(string(text), change[0], change[1], 1)
		require.NotEqual(t, string(text), changed)
		_, err = Decode([]byte(changed))
		require.ErrorContains(t, err, wrong)
	}
}

// TestScorer requires that a Scorer gives the same results as walking from node to node.
func TestScorer(t *testing.T) {
	_, rows := readAll(t)
	eachModel(t, func(version, name, path string) {
		if !strings.HasSuffix(path, ".json") {
			return
		}
		m, err := Load(path)
		require.NoError(t, err)
		s := m.Ensemble.Scorer()
		for _, row := range rows[version] {
			got := make([]float64, m.Ensemble.Outputs)
			s.Scores(row, got)
			trial.RequireNear(t, 1e-6, trial.Margins(m.Ensemble, row), got, describe(version, path))
		}
	})
}

// TestWeights requires that the weights of trees are read, beside the member model or, since
// 3.5, inside it.
func TestWeights(t *testing.T) {
	m := small()
	m.Ensemble.Trees[0].Weight = 0.25
	data, err := m.Encode()
	require.NoError(t, err)
	text := string(data)
	require.Contains(t, text, `"name":"dart","weight_drop":[2.5E-1]`)
	within := strings.Replace(text, `"gradient_booster":{"gbtree":`, `"gradient_booster":`, 1)
	within = strings.Replace(within, `,"name":"dart","weight_drop":[2.5E-1]}`, ``, 1)
	within = strings.Replace(within, `"trees":[`, `"weight_drop":[2.5E-1],"trees":[`, 1)
	for _, text := range []string{text, within} {
		back, err := Decode([]byte(text))
		require.NoError(t, err)
		trial.SameTrees(t, m.Ensemble, back.Ensemble)
	}
	_, err = Decode([]byte(strings.Replace(text, "[2.5E-1]", "[2.5E-1,1E0]", 1)))
	require.ErrorContains(t, err, "there are 2 weights of 1 trees")
}

// TestSave requires that a file that replaces another one keeps its permissions.
func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.UBJ")
	require.NoError(t, small().Save(path))
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, small().Save(path))
	about, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, about.Mode().Perm())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := small().EncodeUBJSON()
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, data))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// BenchmarkDecode decodes and encodes a model of 200 trees with 255 nodes each.
func BenchmarkDecode(b *testing.B) {
	m := small()
	nodes := make([]tree.Node, 255)
	for i := range nodes {
		if nodes[i].Value = float64(i) / 77; i < 127 {
			nodes[i].Left, nodes[i].Right, nodes[i].Threshold = int32(2*i+1), int32(2*i+2), float64(float32(i)/33)
		}
	}
	m.Ensemble.Trees = slices.Repeat([]tree.Tree{{Weight: 1, Nodes: nodes}}, 200)
	for format, encode := range encodings(m) {
		data, err := encode()
		require.NoError(b, err)
		b.Run("read "+format, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("write "+format, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
