package lightgbm

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// TestFrame requires that the categories of a data frame have their names, in the order of
// their codes. Predictions for rows of codes must equal LightGBM's predictions for the frame,
// also after the file was written again. See testdata/frames.py.
func TestFrame(t *testing.T) {
	m, err := Load("testdata/frame.txt")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"Jena", "Ulm, Neu-", "Köln", "Sankt \"B\""}, nil, {"4", "1", "3"}}, m.Ensemble.Categories)
	require.Equal(t, []bool{false, false, true}, m.Bare)
	var want struct {
		Town             []*string
		Area, Prediction []float64
		Rooms            []string
	}
	data, err := os.ReadFile("testdata/frame.expected.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	for i, town := range want.Town {
		row := []float64{math.NaN(), want.Area[i], float64(slices.Index(m.Ensemble.Categories[2], want.Rooms[i]))}
		if town != nil {
			row[0] = float64(slices.Index(m.Ensemble.Categories[0], *town))
		}
		require.InDelta(t, want.Prediction[i], trial.Margins(m.Ensemble, row)[0], 1e-12)
	}
	text, err := os.ReadFile("testdata/frame.txt")
	require.NoError(t, err)
	again, err := m.Encode()
	require.NoError(t, err)
	require.JSONEq(t, pandasOf(string(text)), pandasOf(string(again)))
	back, err := Decode(again)
	require.NoError(t, err)
	trial.SameTrees(t, m.Ensemble, back.Ensemble)
	require.Equal(t, m.Bare, back.Bare)
}

func pandasOf(file string) string {
	_, text, _ := strings.Cut(file, "\npandas_categorical:")
	return strings.TrimSpace(text)
}

// TestNamesOfCategories requires that names are written if all categorical features have names,
// including features without a split.
func TestNamesOfCategories(t *testing.T) {
	names := func(change func(m *Model)) string {
		m := small()
		m.Ensemble.Trees[0] = missingInSetTree(2) // its splits are on feature 1
		m.Ensemble.Categories = [][]string{nil, {"a", "<b>", "3"}}
		change(m)
		data, err := m.Encode()
		require.NoError(t, err)
		back, err := Decode(data)
		require.NoError(t, err)
		if pandasOf(string(data)) != "" {
			require.Equal(t, m.Ensemble.Categories, back.Ensemble.Categories)
		}
		return pandasOf(string(data))
	}
	require.JSONEq(t, `[["a","<b>","3"]]`, names(func(*Model) {}))
	require.JSONEq(t, `[["a","<b>",3]]`, names(func(m *Model) { m.Bare = []bool{false, true} }))
	require.JSONEq(t, `[["x"],["a","<b>","3"]]`, names(func(m *Model) { m.Ensemble.Categories[0] = []string{"x"} }))
	require.Empty(t, names(func(m *Model) { m.Ensemble.Categories = nil }))
	m := small()
	m.Ensemble.Categories = [][]string{nil, {"\xff"}}
	_, err := m.Encode()
	require.ErrorContains(t, err, "is not UTF-8")
	m.Ensemble.Categories, m.Bare = nil, []bool{true}
	_, err = m.Encode()
	require.ErrorContains(t, err, "there are 1 elements of Bare")
}
