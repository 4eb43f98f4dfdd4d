package logistic_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
)

func TestModelFileRoundTrip(t *testing.T) {
	for name, m := range map[string]*logistic.Model{
		"binary":  train(t, trial.Heart(t), logistic.Params{Inference: true, Threshold: 0.3, PredictionCol: "class"}),
		"softmax": train(t, trial.Iris(t), logistic.Params{L2: 0.01}),
		"offset":  train(t, trial.Table{N: 4, D: 1, X: []float64{1, 2, 3, 4}, Label: []float64{0, 1, 0, 1}, Offset: []float64{0, 1, 0, 2}}, logistic.Params{L2: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			back := trial.ModelFile(t, m, logistic.Load, logistic.Decode, `"threshold":0`, `"threshold":1`)
			require.Equal(t, m.Summary, back.Summary)
		})
	}
}

// TestModelOfVersion1 requires that a file written by version 1 can still be read.
func TestModelOfVersion1(t *testing.T) {
	m, err := logistic.Load("testdata/model_v1.json")
	require.NoError(t, err)
	require.Equal(t, []string{"Iris-setosa", "Iris-versicolor", "Iris-virginica"}, m.Classes.Values)
	table, right := trial.Iris(t), 0
	for i := range table.N {
		if m.Classes.Values[m.Predict(table.Row(i))] == table.Words[i] {
			right++
		}
	}
	require.Equal(t, 147, right)
	require.Equal(t, "Newton", m.Summary.Method)
	text, err := os.ReadFile("testdata/model_v1.json")
	require.NoError(t, err)
	again, err := m.Encode()
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(text)), string(again))
}

// TestModelsThatDoNotHoldTogether requires that Encode returns an error for models whose parts
// contradict each other.
func TestModelsThatDoNotHoldTogether(t *testing.T) {
	fresh := func() *logistic.Model {
		m := &logistic.Model{Threshold: 0.5}
		m.Take(&train(t, trial.Heart(t), logistic.Params{L2: 0.1}).Model)
		m.Classes.Type, m.Classes.Values = "int64", []string{"-1", "1"}
		return m
	}
	_, err := fresh().Encode()
	require.NoError(t, err)
	for what, break_ := range map[string]func(m *logistic.Model){
		"coefficient 2 of margin 0 is NaN": func(m *logistic.Model) { m.Coefficients[0][2] = math.NaN() },
		"intercept 0 is":                   func(m *logistic.Model) { m.Intercepts[0] = math.Inf(1) },
		"margin 0 has 12 coefficients":     func(m *logistic.Model) { m.Coefficients[0] = m.Coefficients[0][1:] },
		"1 margins and 2 intercepts":       func(m *logistic.Model) { m.Intercepts = []float64{1, 2} },
		"the threshold is 1":               func(m *logistic.Model) { m.Threshold = 1 },
		"there are 1 classes":              func(m *logistic.Model) { m.Classes.Values = []string{"1"} },
		"for 3 classes":                    func(m *logistic.Model) { m.Classes.Values = []string{"1", "2", "3"} },
		"occurs twice":                     func(m *logistic.Model) { m.Classes.Values = []string{"1", "1"} },
		`"x" is not a int64`:               func(m *logistic.Model) { m.Classes.Values = []string{"1", "x"} },
		"type of labels":                   func(m *logistic.Model) { m.Classes.Type = "int65" },
		"reads no columns":                 func(m *logistic.Model) { m.Reads = nil },
		"have 12 components":               func(m *logistic.Model) { m.Reads[0].Type = "vector[12]" },
		"the columns have 5":               func(m *logistic.Model) { m.Columns = []int32{5, 5} },
	} {
		m := fresh()
		break_(m)
		_, err := m.Encode()
		require.ErrorContains(t, err, what)
	}
}
