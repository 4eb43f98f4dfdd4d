package linearmodel_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// fileOf encodes a model and returns the decoded file.
func fileOf(t *testing.T, m *linearmodel.Model) *model.File {
	t.Helper()
	file, err := model.Encode("some", 1, m.Inputs(), m.Summary, m.Payload())
	require.NoError(t, err)
	f, err := model.Decode(file, "some", 1)
	require.NoError(t, err)
	return f
}

// sample returns a model that has coefficients for only a few of its features.
func sample() *linearmodel.Model {
	return &linearmodel.Model{
		Reads: []model.Input{{Column: "x", Type: "sparse[200]"}}, OffsetCol: "o", Dim: 200, Columns: []int32{0, 63, 64, 130, 199},
		Coefficients: [][]float64{{1, 2, 3, 4, 5}, {-1, 0.5, 0, 7, -5}}, Intercepts: []float64{10, 20},
	}
}

// TestMarginsOfFewColumns compares the margins of a model with few coefficients with a sum over
// all features.
func TestMarginsOfFewColumns(t *testing.T) {
	m := sample()
	full := make([][]float64, 2)
	for a := range full {
		full[a] = make([]float64, 200)
		for k, j := range m.Columns {
			full[a][j] = m.Coefficients[a][k]
		}
	}
	got, again := make([]float64, 2), make([]float64, 2)
	for j := range 200 {
		x := make([]float64, 200)
		x[j], x[(j*7+3)%200] = 2.5, -1.25
		require.True(t, m.MarginsTo(x, got))
		var indices []int32
		var values []float64
		for i, v := range x {
			if v != 0 {
				indices, values = append(indices, int32(i)), append(values, v)
			}
		}
		require.True(t, m.SparseMarginsTo(indices, values, again))
		require.Equal(t, got, again)
		for a := range got {
			want := m.Intercepts[a]
			for i, v := range x {
				want += v * full[a][i]
			}
			require.InDelta(t, want, got[a], 1e-12)
		}
		best := 0
		if got[1] > got[0] {
			best = 1
		}
		require.Equal(t, best, m.Largest(x))
		require.Equal(t, best, m.SparseLargest(indices, values))
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { m.SparseMarginsTo([]int32{63, 199}, []float64{1, 2}, got) }))
	require.False(t, m.MarginsTo(make([]float64, 200), got[:1]))
	require.Equal(t, -1, m.Largest(nil))
	require.True(t, math.IsNaN(m.Margin(make([]float64, 200))), "Margin must be NaN for a model of two margins")
	require.Equal(t, "x[130]", m.FeatureName(3))
}

func TestPayloadRoundTrip(t *testing.T) {
	m := sample()
	m.Summary.Note("finite", 3)
	m.Summary.Note("not finite", math.NaN())
	require.NoError(t, m.Check())
	f := fileOf(t, m)
	var p linearmodel.Payload
	require.NoError(t, model.Unmarshal(f.Payload, &p))
	var back linearmodel.Model
	require.NoError(t, back.Fill(f, p))
	require.Equal(t, m.Payload(), back.Payload())
	require.Equal(t, m.Inputs(), back.Inputs())
	require.Equal(t, m.Summary.Measures, back.Summary.Measures)
	_, ok := back.Summary.Measure("not finite")
	require.False(t, ok)
	none := &linearmodel.Model{Reads: []model.Input{{Column: "x", Type: "sparse[70000]"}}, Dim: 70000, Columns: []int32{}, Coefficients: [][]float64{{}}, Intercepts: []float64{1}}
	f = fileOf(t, none)
	p = linearmodel.Payload{}
	require.NoError(t, model.Unmarshal(f.Payload, &p))
	back = linearmodel.Model{}
	require.NoError(t, back.Fill(f, p))
	require.NotNil(t, back.Columns)
	require.EqualValues(t, 1, back.Margin(make([]float64, 70000)))
}

// TestFillRefuses requires that Fill or Check returns an error for invalid payloads.
func TestFillRefuses(t *testing.T) {
	good := sample()
	f := fileOf(t, good)
	for text, change := range map[string]func(p *linearmodel.Payload){
		"is not the last input":       func(p *linearmodel.Payload) { p.OffsetCol = "other" },
		"there are -1 features":       func(p *linearmodel.Payload) { p.Features = -1 },
		"below 100 is due":            func(p *linearmodel.Payload) { p.Features = 100 },
		"margin 1 has 4 coefficients": func(p *linearmodel.Payload) { p.Coefficients = [][]float64{{1, 2, 3, 4, 5}, {1, 2, 3, 4}} },
		"2 margins and 1 intercepts":  func(p *linearmodel.Payload) { p.Intercepts = p.Intercepts[:1] },
		"have 200 components":         func(p *linearmodel.Payload) { p.Features = 201 },
	} {
		p := good.Payload()
		change(&p)
		var m linearmodel.Model
		require.ErrorContains(t, errors.Join(m.Fill(f, p), m.Check()), text)
	}
	bad := *f
	for text, summary := range map[string]string{
		"-1 rows":                `{"rows":-1}`,
		`"lines"`:                `{"lines":1}`,
		"1 terms for 5 features": `{"inference":{"terms":[{"name":"a","p_value":2}]}}`,
	} {
		bad.Summary = json.RawMessage(summary)
		var m linearmodel.Model
		require.ErrorContains(t, errors.Join(m.Fill(&bad, good.Payload()), m.Check()), text)
	}
}
