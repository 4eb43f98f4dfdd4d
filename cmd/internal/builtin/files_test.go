//go:build !race

// This file is left out under the race detector, which makes the start of each of the many
// processes slow. Other tests run the same code under the race detector.

package builtin_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMissingValues requires that train returns an error for rows with missing values, or
// leaves these rows out with --missing skip. A model that was trained with --missing skip must
// make no prediction for such rows.
func TestMissingValues(t *testing.T) {
	w := newTestDir(t)
	const train = "train logistic --input titanic.csv --label survived --features age,fare,sex --encode --model m.json "
	w.fails(1, train, `column "age"`)
	require.Regexp(t, `(?m)^  rows +714$`, w.ok(train+"--missing skip --sparse"))
	require.Regexp(t, `(?m)^  rows +714$`, w.ok("train logistic --input titanic.csv --label survived --features age,fare --missing skip --model n.json"))
	w.ok("predict --model n.json --input titanic.csv --output n.csv --keep age")
	rows := w.table("n.csv")
	require.Len(t, rows, 891)
	require.Equal(t, map[string]string{"age": "", "prediction": "", "probability_0": "", "probability_1": ""}, rows[5], "a row with a missing value must have no prediction")
}

// TestEveryAlgorithm requires that each algorithm gives the expected measures on the iris data.
// The expected values are published results or results of scikit-learn.
func TestEveryAlgorithm(t *testing.T) {
	w := newTestDir(t)
	for _, x := range []struct{ flags, want, plot string }{
		{"kmeans --k 3", `(?m)^  inertia +78\.9408$`, "clusters"},
		{"kmeans --k 3", `(?m)^purity +0\.893333$`, "loss"},
		{"gmm --k 3 --covariance full", `(?m)^ari +0\.9038`, "clusters"},
		{"linear --label 'Petal width' --features 'Sepal length,Petal length'", `(?m)^  Petal length +0\.44993 +0\.0194\d* +23\.157\d* +6\.68\d*e-51$`, "coefficients"},
		{"linear --label 'Petal width' --features 'Sepal length,Petal length' --l1 0.5", `(?m)^  Sepal length +0$`, "loss"},
		{"logistic --l2 0.01", `(?m)^accuracy +0\.96`, "coefficients"},
		{"svc --l2 0.01", `(?m)^  relative duality gap  \d\.?\d*e-0[789]$`, "coefficients"},
		{"svr --label 'Petal width' --features 'Petal length' --epsilon 0.1", `(?m)^rmse +0\.205`, "loss"},
		{"glm --family gamma --link log --label 'Petal width' --features 'Petal length'", `(?m)^  Petal length +0\.\d+ +0\.\d+ +\d+\.\d+ +\S+$`, "coefficients"},
		{"fm --task regression --label 'Petal width' --features 'Petal length,Sepal length'", `(?m)^rmse +0\.20`, "loss"},
		{"mlp --task classification --hidden 8 --l2 0.001 --max-iter 50", `(?m)^accuracy +(1|0\.9[5-9]\d*)$`, "auto"},
		{"gbdt --objective softmax --rounds 20 --max-depth 3", `(?m)^accuracy +0\.97333\d*$`, "importance"},
		{"gbdt --objective squared --label 'Petal width' --rounds 50 --learning-rate 0.2", `(?m)^r2 +0\.99`, "importance"},
		{"forest --task classification --trees 20", `(?m)^accuracy +(1|0\.99\d*)$`, "importance"},
		{"forest --task regression --label 'Petal width' --trees 20", `(?m)^r2 +0\.9`, "importance"},
		{"naivebayes", `(?m)^accuracy +0\.96$`, "auto"},
	} {
		line := "train " + x.flags + " --input iris.csv --test iris.csv --model m.json --if-exists replace"
		if !strings.Contains(x.flags, "--label") {
			line += " --label Species"
		}
		if x.plot != "" {
			line += " --plot plot.png --plot-of " + x.plot
		}
		require.Regexp(t, x.want, w.ok(line), line)
		if x.plot != "" {
			w.picture("plot.png")
		}
		w.ok("predict --model m.json --input iris.csv --output p.csv --if-exists replace")
		require.Len(t, w.table("p.csv"), 150)
		var about struct{ Kind string }
		w.json("inspect -o json m.json", &about)
		require.NotEmpty(t, about.Kind)
		evaluate := "evaluate --model m.json --input iris.csv --label Species"
		if strings.Contains(x.flags, "--label") {
			evaluate = "evaluate --model m.json --input iris.csv --label 'Petal width'"
		}
		require.NotEmpty(t, w.ok(evaluate))
	}
	w.ok("train naivebayes --input iris.csv --label Species --model nb.json")
	w.ok("evaluate --model nb.json --input iris.csv --label Species --plot c.png")
	w.picture("c.png")
	// The silhouette is a double loop's over all pairs of rows, with squared distances.
	require.Regexp(t, `(?m)^silhouette +0\.778844$`, w.ok("evaluate --input p.csv --kind clustering --prediction Species --features 'Petal length,Petal width' --label Species"))
}

// TestOtherFiles requires that train and predict give the expected results for TSV files
// without a header, and for LibSVM, Arrow and Parquet files.
func TestOtherFiles(t *testing.T) {
	w := newTestDir(t)
	// scikit-learn's LogisticRegression(C=1/(n·L2)) has AUC 0.7020285 and 0.9294444 on features
	// divided by their standard deviations.
	out := w.ok("train logistic --input higgs.tsv --no-header --label c0 --l2 0.1 --model h.json --test higgs.tsv")
	require.Regexp(t, `(?m)^auc +0\.702029$`, out)
	out = w.ok("train logistic --input heart_scale.libsvm --l2 0.01 --model s.json --test heart_scale.libsvm")
	require.Regexp(t, `(?m)^auc +0\.929444$`, out)
	w.ok("predict --model s.json --input heart_scale.libsvm --output s.csv")
	row := w.table("s.csv")[0]
	require.Len(t, row, 4, "predict must leave out columns of vectors")
	require.Equal(t, "1", row["label"])
	require.Regexp(t, `(?m)^auc +0\.929444$`, w.ok("evaluate --model s.json --input heart_scale.libsvm"))
	w.ok("train kmeans --k 2 --input heart_scale.libsvm --model k.json --plot k.svg")
	w.picture("k.svg")

	// A file may have fewer features than the model, but not more.
	w.write("few.libsvm", "1 1:0.5 3:1\n")
	w.ok("predict --model s.json --input few.libsvm --output few.csv")
	w.write("many.libsvm", "1 1:0.5 30:1\n")
	w.fails(1, "predict --model s.json --input many.libsvm --output many.csv", "30")

	// Predict can write Arrow files, and evaluate can read them.
	w.ok("predict --model h.json --input higgs.tsv --no-header --output h.arrow --keep c0")
	require.Regexp(t, `(?m)^auc +0\.702029$`, w.ok("evaluate --input h.arrow --kind binary --label c0 --score probability_1"))

	// Predict can write Parquet files, and evaluate and train can read them.
	w.ok("predict --model h.json --input higgs.tsv --no-header --output h.parquet")
	require.Regexp(t, `(?m)^auc +0\.702029$`, w.ok("evaluate --input h.parquet --kind binary --label c0 --score probability_1"))
	require.Regexp(t, `(?m)^auc +0\.702029$`, w.ok("train logistic --input h.parquet --features "+strings.Join(higgsFeatures(), ",")+" --label c0 --l2 0.1 --model p.json --test h.parquet"))
}

// TestTrees requires that tree algorithms accept text and missing values, stop early by the
// loss on rows that are not used for training, rank the rows of queries, and refuse invalid
// values of their flags.
func TestTrees(t *testing.T) {
	w := newTestDir(t)
	const flags = " --input titanic.csv --label survived --features age,fare,pclass,sex,embarked --model m.json --if-exists replace"
	out := w.ok("train forest --task classification --method single-tree --max-depth 2" + flags)
	require.Regexp(t, `(?m)^  sex +0\.\d+ +124\.426 +891 +1$`, out, "the gain and the rows of sex must be those of the first split of the tree")
	w.ok("predict --model m.json --input titanic.csv --output p.csv")
	require.Len(t, w.table("p.csv"), 891, "rows with missing values must be in the output too")
	inspected := w.ok("inspect m.json --plot i.png --plot-of importance")
	require.Contains(t, inspected, "single-tree")
	w.picture("i.png")

	out = w.ok("train gbdt --objective logistic --early-stopping 5 --learning-rate 0.5 --metrics logloss,auc --test titanic.csv --validation 0.25 --plot l.svg --plot-of loss" + flags)
	require.Regexp(t, `(?m)^  set +logloss +auc$`, out)
	require.Regexp(t, `(?m)^  validation +0\.\d+ +0\.8\d+$`, out)
	w.picture("l.svg")
	w.write("q.libsvm", strings.Repeat("2 qid:1 1:3 2:1\n1 qid:1 1:2\n0 qid:1 1:1\n0 qid:2 2:5\n1 qid:2 1:9\n", 4))
	out = w.ok("train gbdt --objective lambdamart --input q.libsvm --rounds 10 --min-child-weight 0 --metrics ndcg@2 --model m.json --if-exists replace")
	require.Regexp(t, `(?m)^  train +1$`, out)
	ranked := w.read("m.json")
	w.write("q.sizes", strings.Repeat("3\n2\n", 4))
	const sized = "train gbdt --objective lambdamart --rounds 10 --min-child-weight 0 --metrics ndcg@2 --model m.json --if-exists replace --input "
	// With a column of query ids, all rows with the same id form one query, so lists with the
	// same id are merged. With --group-sizes, each list is one query.
	out = w.ok(sized + "q.libsvm --group-sizes q.sizes --test q.libsvm --test-group-sizes q.sizes")
	require.Regexp(t, `(?m)^  train +1$`, out)
	require.Regexp(t, `(?m)^  test +1$`, out)
	require.NotEqual(t, ranked, w.read("m.json"))
	w.write("q.csv", "label,a,b\n"+strings.Repeat("2,3,1\n1,2,\n0,1,\n0,,5\n1,,9\n", 4))
	w.write("named.csv", "label,a,b,query\n"+manyQueries())
	w.ok(sized + "q.csv --label label --group-sizes q.sizes")
	bySize := w.read("m.json")
	w.ok(sized + "named.csv --label label --group query")
	require.Equal(t, w.read("m.json"), bySize)
	w.fails(1, sized+"q.csv --label label --group-sizes q.csv", "the first row of q.csv has 3 fields, but 1 name")
	w.write("few.sizes", "3\n2\n")
	w.fails(1, sized+"q.csv --label label --group-sizes few.sizes", "the sizes of 2 queries sum to 5 rows, and there are 20")
	w.fails(1, sized+"q.csv --label label --group-sizes q.sizes --test q.csv --test-group-sizes few.sizes", "sum to 5 rows")
	w.fails(2, sized+"q.csv --label label --group-sizes q.sizes --group a", "both --group and --group-sizes")
	w.fails(2, sized+"q.csv --label label --group-sizes q.sizes --test q.csv", "needs --test-group-sizes")
	w.fails(2, "train gbdt --objective logistic --group-sizes q.sizes"+flags, "--group-sizes applies only with --objective lambdamart")
	w.write("header.csv", "age,fare\n")
	w.fails(1, "train gbdt --objective squared --input header.csv --label fare --model x.json", "input header.csv has a header and no rows")
	w.fails(2, "train gbdt --objective logistic --early-stopping 5"+flags, "needs rows that are not trained on")
	w.fails(2, "train gbdt --objective logisic"+flags, "logisic")
	w.ok("train gbdt --objective logistic --rounds 3 --lambda 0 --min-child-weight 0" + flags)
	free := w.read("m.json")
	w.ok("train gbdt --objective logistic --rounds 3" + flags)
	require.NotEqual(t, free, w.read("m.json"), "the value 0 of --lambda and --min-child-weight must not be replaced with the default")
	for _, wrong := range []string{"--rounds 0", "--learning-rate 0", "--max-depth 0", "--subsample 0", "--columns 2", "--lambda -1", "--min-child-rows 0"} {
		w.fails(2, "train gbdt --objective logistic "+wrong+flags, wrong[:strings.Index(wrong, " ")])
	}
	for _, wrong := range []string{"--trees 0", "--max-depth 0", "--sample-share 0", "--min-child-rows -3"} {
		w.fails(2, "train forest --task classification "+wrong+flags, wrong[:strings.Index(wrong, " ")])
	}
	w.fails(2, "train gbdt --objective logistic --plot x.png --plot-of coefficients"+flags, "the model has none")
	w.fails(2, "train forest --task classification --plot x.png --plot-of loss"+flags, "no iterations")
	w.fails(2, "train linear --plot x.png --plot-of importance"+flags, "is for trees")
	w.fails(1, "train gbdt --objective lambdamart --group query"+flags, `no column "query"`)

	// --categories makes integers categories. In these rows, the label of each of 300 codes is
	// whether the code is odd.
	rows := "code,odd\n"
	for i := range 600 {
		rows += fmt.Sprintf("%d,%d\n", i%300*7, i%300%2)
	}
	w.write("codes.csv", rows)
	for _, algorithm := range []string{"gbdt --objective squared --rounds 30", "forest --task regression --trees 10"} {
		w.ok("train " + algorithm + " --categories code --input codes.csv --test codes.csv --label odd --model m.json --if-exists replace")
		w.ok("predict --model m.json --input codes.csv --output p.csv --if-exists replace")
		for i, row := range w.table("p.csv") {
			predicted, err := strconv.ParseFloat(row["prediction"], 64)
			require.NoError(t, err)
			require.Equal(t, i%300%2 == 1, predicted > 0.5, algorithm)
		}
	}
	w.fails(1, "train forest --task regression --categories cod --input codes.csv --label odd --model n.json", "cod")
	w.fails(1, "train gbdt --objective poisson --label fare --monotone fair=1 --input titanic.csv --features age --model x.json", "fair")

	// Names that occur twice, and values that are not numbers, are usage errors (exit code 2).
	tree := "train gbdt --objective softmax --input codes.csv --label odd --model n.json "
	w.fails(2, tree+"--monotone code=1;code=-1", `"code" occurs twice`)
	w.fails(2, tree+"--monotone code=1 --monotone code=1", `"code" occurs twice`)
	w.fails(2, tree+"--monotone code=up", `"code": want a whole number, but got "up"`)
	w.fails(2, tree+"--monotone code", `want a name, = and a number, but got "code"`)
	w.fails(2, tree+"--class-weights 0=1;0=2", `"0" occurs twice`)
	w.fails(2, tree+"--class-weights 0=much", `"0": want a number, but got "much"`)
	w.fails(1, tree+"--monotone a=b=1", `there is no feature "a=b"`)
	w.ok("train gbdt --objective squared --rounds 3 --input codes.csv --label odd --model n.json --monotone code=1")
	w.ok("train gbdt --objective logistic --rounds 3 --input codes.csv --label odd --model n.json --if-exists replace --class-weights 0=2 --class-weights 1=3")
}

// manyQueries returns the rows of q.csv, each with the id of its query in the last column.
func manyQueries() string {
	var rows strings.Builder
	for i := range 4 {
		fmt.Fprintf(&rows, "2,3,1,%[1]d\n1,2,,%[1]d\n0,1,,%[1]d\n0,,5,%[2]d\n1,,9,%[2]d\n", 2*i, 2*i+1)
	}
	return rows.String()
}

// higgsFeatures returns the names of the columns of higgs.tsv that the model reads.
func higgsFeatures() []string {
	var all []string
	for i := range 28 {
		all = append(all, fmt.Sprintf("c%d", i+1))
	}
	return all
}

// TestLogLossOfThreeClasses requires that, for three classes, train and evaluate report the
// log-loss of the probabilities that predict writes.
func TestLogLossOfThreeClasses(t *testing.T) {
	w := newTestDir(t)
	trained := w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model m.json --test iris.csv")
	w.ok("predict --model m.json --input iris.csv --output p.csv")
	sum, rows := 0.0, w.table("p.csv")
	for _, r := range rows {
		p, err := strconv.ParseFloat(r["probability_"+r["Species"]], 64)
		require.NoError(t, err)
		sum -= math.Log(p)
	}
	want := fmt.Sprintf(`(?m)^log_loss +%.5g`, sum/float64(len(rows)))
	require.Regexp(t, want, trained)
	require.NotContains(t, trained, "auc")
	require.Regexp(t, want, w.ok("evaluate --model m.json --input iris.csv --label Species"))
}

// TestExchangedModels requires that a model makes the same predictions after an export and an
// import.
func TestExchangedModels(t *testing.T) {
	w := newTestDir(t)
	w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model m.json")
	w.ok("predict --model m.json --input iris.csv --output p.csv")
	want, err := os.ReadFile(w.path("p.csv"))
	require.NoError(t, err)
	for _, format := range []string{"onnx", "pmml"} {
		require.Equal(t, format+" written to m."+format+"\n", w.ok("export m.json --output m."+format))
		w.fails(1, "export m.json --output m."+format, "exists")
		require.Contains(t, w.ok("import m."+format+" --output "+format+".json"), "kind logistic")
		w.ok("predict --model " + format + ".json --input iris.csv --output " + format + ".csv")
		got, err := os.ReadFile(w.path(format + ".csv"))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	w.ok("export m.json --output m.onnx --if-exists replace")
	w.fails(2, "export m.json --output m.bin", "--to is missing")
	w.fails(2, "export m.json --to onx --output m.bin", "want one of onnx")
	w.fails(2, "import m.json --output x.json", "--from is missing")
	w.fails(1, "import m.json --from pmml --output x.json", "m.json as pmml")
	w.fails(1, "export none.json --output none.onnx", "none.json")
	w.fails(1, "export iris.csv --output none.onnx", "iris.csv")
	w.fails(1, "export m.json --output none/m.onnx", "none")
	require.NoFileExists(t, w.path("x.json"))
	require.Contains(t, w.ok("export --help"), "pmml: PMML 4.4")
}

// TestExchangedTrees requires that tree models make the same predictions, up to rounding, after
// they were written to and read from files of XGBoost or LightGBM. It also requires that files
// that other programs have written can be read.
func TestExchangedTrees(t *testing.T) {
	w := newTestDir(t)
	const flags = " --input titanic.csv --label survived --features age,fare,sex,embarked --model m.json --if-exists replace"
	for _, train := range []string{"train gbdt --objective logistic --rounds 12 --max-depth 4", "train forest --task classification --trees 9 --max-depth 5"} {
		w.ok(train + flags)
		w.ok("predict --model m.json --input titanic.csv --output p.csv --if-exists replace")
		want := w.table("p.csv")
		for format, ending := range map[string]string{"xgboost": "json", "xgboost-ubj": "ubj", "lightgbm": "txt"} {
			file := "there." + ending
			to, from := "", ""
			if ending == "json" {
				w.fails(2, "export m.json --output x.json", "--to is missing")
				w.fails(2, "import m.json --output x.json", "--from is missing")
				to, from = " --to xgboost", " --from xgboost"
			}
			require.Equal(t, format+" written to "+file+"\n", w.ok("export m.json --if-exists replace --output "+file+to))
			require.Contains(t, w.ok("import "+file+from+" --if-exists replace --output back.json"), "kind "+strings.Fields(train)[1])
			w.ok("predict --model back.json --input titanic.csv --output back.csv --if-exists replace")
			for i, row := range w.table("back.csv") {
				require.Equal(t, want[i]["survived"], row["survived"])
				require.Equal(t, want[i]["prediction"], row["prediction"])
				a, err := strconv.ParseFloat(want[i]["probability_1"], 64)
				require.NoError(t, err)
				b, err := strconv.ParseFloat(row["probability_1"], 64)
				require.NoError(t, err)
				require.InDelta(t, a, b, 1e-6)
			}
		}
	}
	w.fails(1, "import there.txt --classes no,yes --output x.json", "--classes does not go with a forest")
	w.fails(1, "export m.json --output m.pmml", "m.json as pmml")
	w.fails(1, "import m.json --from lightgbm --output x.json", "m.json as lightgbm")
	w.fails(1, "import m.json --from xgboost --output x.json", "m.json as xgboost")
	w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model l.json")
	w.fails(1, "export l.json --output l.ubj", "kind logistic: the format holds gbdt and forest")
	w.ok("export l.json --output l.onnx")
	w.fails(2, "import l.onnx --features a --output x.json", "--features is for xgboost and lightgbm")
	w.fails(2, "import l.onnx --best-round --output x.json", "--best-round is for")
	w.fails(2, "import l.onnx --zero-if-missing --output x.json", "--zero-if-missing is for")

	// This is a LightGBM file as another program might write it. Its only tree predicts the
	// first class if feature 1 is at most 1.5. The file has no class names, no column names and
	// no best round.
	w.write("others.txt", "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\n"+
		"objective=binary sigmoid:1\nfeature_names=Column_0 Column_1\nfeature_infos=[0:3] [0:3]\ntree_sizes=1\n\n"+
		"Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=1\nsplit_gain=1\nthreshold=1.5\ndecision_type=8\nleft_child=-1\nright_child=-2\n"+
		"leaf_value=-1 2\nleaf_weight=1 1\nleaf_count=1 1\ninternal_value=0\ninternal_weight=2\ninternal_count=2\nshrinkage=1\n\n\nend of trees\n")
	w.write("rows.csv", "a,b\n7,1.5\n7,1.6\n")
	for classes, labels := range map[string][]string{"": {"0", "1"}, "--classes false,true": {"false", "true"}, "--classes 7,3": {"7", "3"}, "--classes no,1": {"no", "1"}} {
		w.ok("import others.txt --if-exists replace --features a,b --output o.json " + classes)
		w.ok("predict --model o.json --input rows.csv --output o.csv --if-exists replace")
		rows := w.table("o.csv")
		require.Equal(t, labels, []string{rows[0]["prediction"], rows[1]["prediction"]})
		require.Regexp(t, `^0\.88079\d+$`, rows[1]["probability_"+labels[1]], "the probability must be 1/(1+exp(-2))")
	}
	w.fails(1, "import others.txt --features a --output x.json", "1 inputs of 2 features")
	w.fails(1, "import others.txt --best-round --output x.json", "does not tell the best round")
	w.write("sparse.libsvm", "1 1:3\n1 2:2\n")
	w.ok("import others.txt --zero-if-missing --output z.json")
	w.ok("predict --model z.json --input sparse.libsvm --output z.csv")
	require.Equal(t, "0", w.table("z.csv")[0]["prediction"])
	require.Equal(t, "1", w.table("z.csv")[1]["prediction"])
	require.NoFileExists(t, w.path("x.json"))
}

func TestWrongTrainings(t *testing.T) {
	w := newTestDir(t)
	w.write("short.csv", "a,b,label\n")
	w.write("day.csv", "d,y\n2020-01-01T00:00:00Z,1\n")
	w.write("there.png", "")
	const model = " --model m.json"
	for _, x := range []struct {
		code       int
		line, want string
	}{
		{2, "train", `expected "<what> ..."`},
		{2, "train kmean --k 3", "did you mean kmeans?"},
		{2, "train woods", "want one of kmeans"},
		{2, "train kmeans --input iris.csv" + model, "--k"},
		{2, "train kmeans --input iris.csv --k 0" + model, "--k"},
		{2, "train logistic --input iris.csv" + model, "--label is missing"},
		{2, "train logistic --input iris.csv --label Species --l2 -1" + model, "--l2 is -1"},
		{2, "train linear --input iris.csv --label Species --l3 1" + model, "--l3"},
		{2, "train linear --input iris.csv --label y --plot x.gif" + model, ".png"},
		{2, "train linear --input iris.csv --label y --plot none/x.png" + model, "there is no directory none"},
		{2, "train linear --input iris.csv --label y --plot x.png --plot-of roc" + model, "--plot-of roc is for"},
		{2, "train naivebayes --input iris.csv --label y --plot x.png --plot-of loss" + model, "no iterations"},
		{2, "train kmeans --k 2 --input iris.csv --plot x.png --plot-of coefficients" + model, "the model has none"},
		{2, "train linear --input iris.csv --label y --plot-of loss" + model, "only with --plot"},
		{2, "train linear --input iris.csv --label y --features y,a" + model, "which is the label"},
		{2, "train linear --input iris.csv --label y --sparse" + model, "only with --encode"},
		{2, "train linear --input iris.csv --label y --delimiter ab" + model, "--delimiter"},
		{2, "train kmeans --input heart_scale.libsvm --k 2 --features x" + model, "does not go with LibSVM"},
		{1, "train logistic --input none.csv --label y" + model, "none.csv"},
		{1, "train logistic --input iris.csv --label Specis" + model, `did you mean "Species"?`},
		{1, "train logistic --input iris.csv --label Species --features 'Petal lenght'" + model, `did you mean "Petal length"?`},
		{1, "train linear --input iris.csv --label 'Petal width'" + model, `column "Species" of iris.csv is text`},
		{1, "train linear --input iris.csv --label Species" + model, "Species"},
		{1, "train logistic --input iris.csv --label Species --inference" + model, "3 classes"},
		{1, "train logistic --input short.csv --label label --features a,b" + model, ""},
		{1, "train linear --input titanic.csv --label fare --features pclass --test iris.csv" + model, `no column "pclass"`},
		{1, "train linear --input titanic.csv --label fare --features pclass --plot there.png" + model, "there.png exists"},
		{1, "train linear --input titanic.csv --label fare --features pclass --model none/m.json", "none"},
		{1, "train logistic --input titanic.csv --label pclass --features fare --plot x.png --plot-of roc" + model, "not two classes"},
	} {
		w.fails(x.code, x.line, x.want)
		if x.want != "not two classes" {
			require.NoFileExists(t, w.path("m.json"), x.line)
		}
	}
	w.fails(1, "train linear --input titanic.csv --label fare --features pclass"+model, "exists")
	for _, command := range []string{"train logistic", "predict", "evaluate", "inspect", "train"} {
		require.Contains(t, w.ok(command+" --help"), "Usage:", command)
	}
	require.Contains(t, w.ok("train --help"), "naivebayes: classes by naive Bayes")
}
