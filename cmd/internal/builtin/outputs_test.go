package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Files may have columns of the names of what models add, such as those that predict wrote.
func TestColumnsOfTheNamesOfOutputs(t *testing.T) {
	w := newWorkplace(t)
	w.write("rows.csv", "x,y\n-2,0\n-1,0\n-1,1\n0,0\n0,1\n1,0\n1,1\n2,1\n")
	w.ok("train logistic --input rows.csv --label y --model m.json --l2 0.1")
	w.ok("predict --model m.json --input rows.csv --output p.csv")
	first := w.table("p.csv")

	// Prediction steps aside, says so, and loses no column of the file.
	code, _, told := w.run("predict --model m.json --input p.csv --output p2.csv")
	require.Zero(t, code, told)
	require.Contains(t, told, `"prediction_1" in place of "prediction", "probability_1_0" in place of "probability_0"`)
	for i, r := range w.table("p2.csv") {
		require.Equal(t, first[i]["prediction"], r["prediction"])
		require.Equal(t, r["prediction"], r["prediction_1"])
		require.Equal(t, r["probability_0"], r["probability_1_0"])
		require.Equal(t, r["probability_1"], r["probability_1_1"])
		require.Len(t, r, 8)
	}
	w.ok("predict --model m.json --input p2.csv --output p3.csv")
	require.Contains(t, w.table("p3.csv")[0], "prediction_2")

	// Flags name them; of a file that is kept in part, nothing is in the way.
	code, _, told = w.run("predict --model m.json --input p.csv --output p4.csv --prediction-column guess --probability-column p")
	require.Zero(t, code, told)
	require.NotContains(t, told, "in place of")
	require.Equal(t, first[0]["probability_1"], w.table("p4.csv")[0]["p_1"])
	require.Equal(t, first[0]["prediction"], w.table("p4.csv")[0]["guess"])
	w.ok("predict --model m.json --input p.csv --output p5.csv --keep x")
	require.Equal(t, map[string]string{"x": "-2", "prediction": first[0]["prediction"], "probability_0": first[0]["probability_0"], "probability_1": first[0]["probability_1"]}, w.table("p5.csv")[0])
	w.fails(1, "predict --model m.json --input p.csv --output p6.csv --prediction-column x", `--prediction-column is "x", a column of p.csv`)
	w.ok("evaluate --model m.json --input p.csv --label prediction")
	require.Contains(t, w.ok("evaluate --input p2.csv --kind multiclass --label y --prediction prediction_1"), "accuracy")

	// Training on such columns names the outputs of the model otherwise, for good.
	code, _, told = w.run("train logistic --input p.csv --label y --model again.json --l2 0.1 --test p.csv")
	require.Zero(t, code, told)
	require.Contains(t, told, `the model calls its predictions "prediction_1", not "prediction"`)
	w.ok("predict --model again.json --input p.csv --output q.csv")
	require.Contains(t, w.table("q.csv")[0], "prediction_1")
	w.ok("evaluate --model again.json --input p.csv --label y")
	w.ok("train forest --task classification --trees 3 --input p.csv --features x --label prediction --model named.json --prediction-column guess --probability-column p --test p.csv")
	w.ok("predict --model named.json --input rows.csv --output r.csv")
	require.Contains(t, w.table("r.csv")[0], "guess")
	require.Contains(t, w.table("r.csv")[0], "p_1")
	w.fails(2, "train linear --input p.csv --label y --model z.json --probability-column p", "--probability-column is for algorithms that predict classes")

	// Of clusters.
	w.ok("train kmeans --k 2 --input rows.csv --features x --model k.json")
	w.ok("predict --model k.json --input rows.csv --output k.csv")
	w.ok("predict --model k.json --input k.csv --output k2.csv")
	require.Equal(t, w.table("k.csv")[0]["cluster"], w.table("k2.csv")[0]["cluster_1"])
	w.ok("train kmeans --k 2 --input k.csv --features x --label cluster --model k3.json")
	w.fails(1, "train kmeans --k 2 --input k.csv --model k4.json", `column "cluster" of k.csv has the name of one that the model adds`)
}
