package lightgbm

import (
	"compress/gzip"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// TestModelsOfLightGBM requires that models of three versions of LightGBM give the same raw
// scores, predictions and leaves in this package as in these versions.
func TestModelsOfLightGBM(t *testing.T) {
	all := map[string]expected{}
	rows := map[string][][]float64{}
	for _, v := range versions {
		all[v], rows[v] = readExpected(t, v)
	}
	eachModel(t, func(version, name, path string) {
		what := version + " " + name
		want, ok := all[version].Cases[name]
		require.True(t, ok, what)
		m, err := Load(path)
		require.NoError(t, err, what)
		e := m.Ensemble
		require.Len(t, e.Trees, want.Trees, what)
		raw := trial.AllMargins(e, rows[version])
		if e.Average {
			for i := range raw {
				raw[i] *= float64(want.Trees / e.Outputs)
			}
		}
		trial.RequireNear(t, 1e-12, want.Raw, raw, what+" raw")
		trial.RequireNear(t, 1e-12, want.Prediction, allPredictions(m, rows[version]), what+" predictions")
		for i, row := range rows[version] {
			for k := range e.Trees {
				leaf := e.Trees[k].Leaf(row, false) - int32(len(e.Trees[k].Nodes)/2)
				require.Equal(t, want.Leaf[i][k], leaf, "%s row %d tree %d", what, i, k)
			}
		}
	})
}

// TestRoundTrip requires that a decoded model is the same after it was encoded and decoded
// again.
func TestRoundTrip(t *testing.T) {
	eachModel(t, func(version, name, path string) {
		what := version + " " + name
		m, err := Load(path)
		require.NoError(t, err, what)
		data, err := m.Encode()
		require.NoError(t, err, what)
		back, err := Decode(data)
		require.NoError(t, err, what)
		trial.SameTrees(t, m.Ensemble, back.Ensemble, what)
		back.Version = m.Version
		require.Equal(t, m.Ranges, back.Ranges, what)
		require.Equal(t, m.Monotone, back.Monotone, what)
		again, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, string(data), string(again), what)
	})
}

// TestMulticlassOfVersion2 compares the predictions of a model of version 2 with five classes
// with the predictions of LightGBM for 500 rows; see testdata/README.md.
func TestMulticlassOfVersion2(t *testing.T) {
	m, err := Load("testdata/lgmulticlass.model")
	require.NoError(t, err)
	require.Equal(t, "v2", m.Version)
	f, err := os.Open("testdata/multiclass_test.tsv.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	rows := readTable(t, string(text))
	for i := range rows {
		rows[i] = rows[i][1:] // drop the label
	}
	want, err := os.ReadFile("testdata/lgmulticlass_true_predictions.txt")
	require.NoError(t, err)
	var flat []float64
	for _, row := range readTable(t, string(want)) {
		flat = append(flat, row...)
	}
	trial.RequireNear(t, 1e-12, flat, allPredictions(m, rows), "predictions")
}

// TestLeavesOfVersion3 compares the leaves that 57 rows reach in a model file of version v3
// with the leaves that LightGBM gives.
func TestLeavesOfVersion3(t *testing.T) {
	m, err := Load("testdata/lg_breast_cancer.txt")
	require.NoError(t, err)
	data, err := os.ReadFile("testdata/lg_breast_cancer_data.txt")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/lg_breast_cancer_data_pred_leaves.txt")
	require.NoError(t, err)
	leaves := readTable(t, string(want))
	rows := readTable(t, string(data))
	require.Len(t, rows, 57)
	for i, row := range rows {
		require.Len(t, leaves[i], len(m.Ensemble.Trees))
		for k := range m.Ensemble.Trees {
			tr := &m.Ensemble.Trees[k]
			require.EqualValues(t, leaves[i][k], tr.Leaf(row, false)-int32(len(tr.Nodes)/2), "row %d tree %d", i, k)
		}
	}
}
