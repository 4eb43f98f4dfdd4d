package kmeans_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestNarrowTypes requires that vectors of float32 and weights of any number type give the same
// model as the same values in float64.
func TestNarrowTypes(t *testing.T) {
	type wide struct {
		Features []float64 `column:"features,dim=2"`
		Weight   float64
	}
	type narrow struct {
		Features []float32 `column:"features,dim=2"`
		Weight   float32
	}
	type open struct {
		Features []float32
		Weight   uint8
	}
	values := mixture(21, 40, 2, 3, 1)
	var wides []wide
	var narrows []narrow
	var opens []open
	for i := range values.n {
		x, w := []float32{float32(values.row(i)[0]), float32(values.row(i)[1])}, i%3
		wides = append(wides, wide{[]float64{float64(x[0]), float64(x[1])}, float64(w)})
		narrows = append(narrows, narrow{x, float32(w)})
		opens = append(opens, open{x, uint8(w)})
	}
	want := trained(t, wides)
	require.Equal(t, want, trained(t, narrows))
	require.Equal(t, want, trained(t, opens))
	type signed struct {
		Features []float64 `column:"features,dim=2"`
		Weight   int64
	}
	var signeds []signed
	for _, r := range wides {
		signeds = append(signeds, signed{r.Features, int64(r.Weight)})
	}
	require.Equal(t, want, trained(t, signeds))
	signeds[3].Weight = -1
	_, err := tryTrained(t, signeds, kmeans.Params{VectorCol: "features", WeightCol: "weight", K: 3})
	require.ErrorContains(t, err, `column "weight": the weight is -1`)
}

// trained returns the encoded model of three clusters and the clusters of the rows, as text.
func trained[T any](t *testing.T, rows []T) string {
	t.Helper()
	got, err := tryTrained(t, rows, kmeans.Params{VectorCol: "features", WeightCol: "weight", K: 3})
	require.NoError(t, err)
	return got
}

func tryTrained[T any](t *testing.T, rows []T, p kmeans.Params) (string, error) {
	t.Helper()
	job := engine.Define("types", func(b *engine.Builder, _ struct{}) error {
		points := operators.FromSlice(b, rows)
		model := kmeans.Train(points, p)
		engine.Collect(model, "model")
		engine.Collect(kmeans.Predict(points, model, kmeans.PredictOptions{}), "predictions")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{}, checked(t), engine.Shards(8), engine.BatchRows(3))
	if err != nil {
		return "", err
	}
	defer r.Release()
	m, err := kmeans.ModelOf(r, "model")
	require.NoError(t, err)
	m.VectorType = "" // it is the type of the column, which differs
	text, err := m.Encode()
	require.NoError(t, err)
	return string(text), nil
}

// TestNullVectors requires that a null vector is refused or left out in training, and gets no
// cluster in predictions.
func TestNullVectors(t *testing.T) {
	type row struct {
		Features *[]float64 `column:"features,dim=1"`
		Weight   *float64
	}
	one, vector := 1.0, func(v float64) *[]float64 { return &[]float64{v} }
	rows := []row{{vector(1), &one}, {nil, &one}, {vector(3), &one}}
	p := kmeans.Params{VectorCol: "features", WeightCol: "weight", K: 1}
	_, err := tryTrained(t, rows, p)
	require.ErrorContains(t, err, `row 0 of the shard: column "features" is null; set NonFinite to Skip to train without such rows`)
	p.NonFinite = kmeans.Skip
	text, err := tryTrained(t, rows, p)
	require.NoError(t, err)
	require.Contains(t, text, `"centers":[[2]]`)
	rows[2].Weight = nil
	_, err = tryTrained(t, rows, p)
	require.ErrorContains(t, err, `row 0 of the shard: column "weight": the weight is null`)

	job := engine.Define("nulls", func(b *engine.Builder, _ struct{}) error {
		m := &kmeans.Model{Centers: [][]float64{{2}}, Sizes: []float64{1}, Dim: 1}
		engine.Collect(kmeans.Predict(operators.FromSlice(b, rows), m.Dataset(b), kmeans.PredictOptions{}), "predictions")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{}, checked(t), engine.Shards(1))
	require.NoError(t, err)
	defer r.Release()
	type prediction struct{ Cluster *int64 }
	got, err := engine.Rows[prediction](r, "predictions")
	require.NoError(t, err)
	require.Zero(t, *got[0].Cluster)
	require.Nil(t, got[1].Cluster)
}
