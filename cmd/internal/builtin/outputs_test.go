package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColumnsOfTheNamesOfOutputs requires that commands accept input files that already have
// columns with the names of the columns that a model adds, such as the files that predict
// writes.
func TestColumnsOfTheNamesOfOutputs(t *testing.T) {
	w := newTestDir(t)
	w.write("rows.csv", "x,y\n-2,0\n-1,0\n-1,1\n0,0\n0,1\n1,0\n1,1\n2,1\n")
	w.ok("train logistic --input rows.csv --label y --model m.json --l2 0.1")
	w.ok("predict --model m.json --input rows.csv --output p.csv")
	first := w.table("p.csv")

	// Predict must give the added columns other names, report these names, and keep all columns
	// of the file.
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

	// Flags set the names of added columns. Columns that --keep leaves out cannot conflict.
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

	// A model trained on a file with such columns stores other names for its outputs, and
	// always uses these names.
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

	// Clustering models get other names for their outputs, too.
	w.ok("train kmeans --k 2 --input rows.csv --features x --model k.json")
	w.ok("predict --model k.json --input rows.csv --output k.csv")
	w.ok("predict --model k.json --input k.csv --output k2.csv")
	require.Equal(t, w.table("k.csv")[0]["cluster"], w.table("k2.csv")[0]["cluster_1"])
	code, _, told = w.run("train kmeans --k 2 --input k.csv --features x --label cluster --model k3.json --test k.csv --plot k3.png")
	require.Zero(t, code, told)
	require.Contains(t, told, `the model calls its predictions "cluster_1", not "cluster"`)
	require.NotContains(t, told, "distance")
}

// TestClustersOfColumnsOfTheNamesOfOutputs requires that clustering models can be trained on
// files that predict wrote, which have columns with the names of the outputs. The trained model
// must store other names for its outputs.
func TestClustersOfColumnsOfTheNamesOfOutputs(t *testing.T) {
	w := newTestDir(t)
	w.write("rows.csv", "x,y\n-2,0\n-1,0\n-1.5,1\n10,0\n10,1\n11,0\n12,1\n12.5,1\n")
	for kind, made := range map[string][]string{"kmeans": {"cluster", "distance"}, "gmm": {"component", "probabilities_0", "probabilities_1"}} {
		name := func(suffix string) string { return kind + suffix }
		w.ok("train " + kind + " --k 2 --input rows.csv --model " + name(".json"))
		w.ok("predict --model " + name(".json") + " --input rows.csv --output " + name(".csv"))
		first := w.table(name(".csv"))
		code, _, told := w.run("train " + kind + " --k 2 --input " + name(".csv") + " --test " + name(".csv") + " --model " + name("2.json") + " --plot " + name("2.png"))
		require.Zero(t, code, told)
		require.Contains(t, told, fmt.Sprintf(`the model calls its predictions "%s_1", not %q`, made[0], made[0]))
		w.picture(name("2.png"))
		// The model was trained on a file with these columns, so the names that it stores do not
		// conflict, and predict need not choose other names.
		code, _, told = w.run("predict --model " + name("2.json") + " --input " + name(".csv") + " --output " + name("2.csv"))
		require.Zero(t, code, told)
		require.NotContains(t, told, "in place of")
		second := w.table(name("2.csv"))
		for i, r := range second {
			require.Len(t, r, len(first[i])+len(made))
			require.Contains(t, r, made[0]+"_1")
			for _, column := range made {
				require.Equal(t, first[i][column], r[column])
			}
		}
		require.Contains(t, w.ok("evaluate --model "+name("2.json")+" --input "+name(".csv")+" --label "+made[0]), "purity")
		// A third model can be trained on the predictions of the second model.
		w.ok("train " + kind + " --k 2 --input " + name("2.csv") + " --model " + name("3.json"))
		w.ok("predict --model " + name("3.json") + " --input " + name("2.csv") + " --output " + name("3.csv"))
		require.Contains(t, w.table(name("3.csv"))[0], made[0]+"_2")
	}
	require.Contains(t, w.table("kmeans2.csv")[0], "distance_1")
	require.Contains(t, w.table("gmm2.csv")[0], "probabilities_2_0", "the outputs must not be named probabilities_1, which is a column of the file")
}

// TestFlagsNameTheOutputsOfClusters requires that flags set the names of the outputs of
// clustering models, and that a name that is also the name of a column that the command reads
// is an error.
func TestFlagsNameTheOutputsOfClusters(t *testing.T) {
	w := newTestDir(t)
	w.write("rows.csv", "x,y\n-2,0\n-1,0\n-1.5,1\n10,0\n10,1\n11,0\n12,1\n12.5,1\n")
	code, _, told := w.run("train kmeans --k 2 --input rows.csv --model k.json --prediction-column group --distance-column features --test rows.csv --plot k.png")
	require.Zero(t, code, told)
	require.NotContains(t, told, "the model calls")
	w.ok("predict --model k.json --input rows.csv --output k.csv")
	require.Equal(t, "x,y,group,features", w.head("k.csv"))
	w.ok("predict --model k.json --input rows.csv --output k2.csv --prediction-column a --distance-column b")
	require.Equal(t, "x,y,a,b", w.head("k2.csv"))
	code, _, told = w.run("predict --model k.json --input k2.csv --output k3.csv --distance-column c")
	require.Zero(t, code, told)
	require.NotContains(t, told, "in place of")
	require.Equal(t, "x,y,a,b,group,c", w.head("k3.csv"))
	w.ok("train gmm --k 2 --input rows.csv --model g.json --prediction-column part --probability-column p")
	w.ok("predict --model g.json --input rows.csv --output g.csv")
	require.Equal(t, "x,y,part,p_0,p_1", w.head("g.csv"))

	w.fails(2, "train kmeans --k 2 --input rows.csv --model n.json --probability-column p", "--probability-column is for algorithms that predict classes, and for gmm")
	w.fails(2, "train gmm --k 2 --input rows.csv --model n.json --distance-column d", "--distance-column is for kmeans")
	w.fails(2, "train kmeans --k 2 --input rows.csv --model n.json --distance-column d --prediction-column d", `--prediction-column and --distance-column are both "d"`)
	w.fails(2, "train kmeans --k 2 --input rows.csv --features x,y --model n.json --distance-column y", `"y" is a column that is read and one that the model is to add`)
	w.fails(1, "train kmeans --k 2 --input rows.csv --model n.json --distance-column y", `--distance-column is "y", a column of rows.csv that is read`)
	w.fails(1, "train kmeans --k 2 --input rows.csv --model n.json --prediction-column y", `--prediction-column is "y", a column of rows.csv that is read`)
	w.fails(1, "train gmm --k 2 --input rows.csv --model n.json --probability-column y", `--probability-column is "y", a column of rows.csv that is read`)
	w.fails(1, "train logistic --input rows.csv --label y --model n.json --prediction-column x", `--prediction-column is "x", a column of rows.csv that is read`)
	w.fails(1, "predict --model k.json --input rows.csv --output n.csv --distance-column x", `--distance-column is "x", a column of rows.csv`)
	w.fails(1, "predict --model g.json --input rows.csv --output n.csv --distance-column x", "--distance-column does not go with a model of kind gmm, which gives no distances")
	require.NoFileExists(t, w.path("n.json"))

	// An output gets a new name if a flag gives its default name to another output.
	code, _, told = w.run("train kmeans --k 2 --input rows.csv --model d.json --prediction-column distance")
	require.Zero(t, code, told)
	require.Contains(t, told, `the model calls its distances "distance_1", not "distance"`)
	w.ok("predict --model d.json --input rows.csv --output d.csv")
	require.Equal(t, "x,y,distance,distance_1", w.head("d.csv"))
}

// head returns the first line of a file.
func (w *testDir) head(name string) string {
	w.t.Helper()
	line, _, _ := strings.Cut(w.read(name), "\n")
	return line
}
