//go:build !race

package builtin_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotes requires that warnings are printed on standard error, and that errors about rows
// name the line of the row and the flags that help.
func TestNotes(t *testing.T) {
	w := newTestDir(t)
	warned := func(line, want string) string {
		code, out, errOut := w.run(line)
		require.Zero(t, code, errOut)
		require.Regexp(t, `(?m)^superstep \w+( \w+)?: warning: `+want+`$`, errOut)
		return out
	}
	const titanic = "--input titanic.csv --label survived --if-exists replace --features "
	warned("train logistic --missing skip --model m.json "+titanic+"age,fare", "177 rows with missing values left out of training")
	warned("train logistic --max-iter 2 --model n.json "+titanic+"pclass,fare", "training did not converge: 2 iterations were too few; --max-iter allows more")
	warned("train logistic --method sgd --max-iter 1 --model n.json "+titanic+"pclass,fare", "training did not converge: 1 pass over the rows was too few; --max-iter allows more")
	warned("train logistic --method sgd --rate 1e6 --model n.json "+titanic+"pclass,fare", "training did not converge: it ended with a larger loss than it began with, .* lower --rate, .*")
	warned("train kmeans --k 3 --missing skip --model k.json "+titanic+"age,fare", "177 rows with missing values left out of training")
	w.write("apart.csv", "a,b,y\n1,2,0\n2,3,0\n3,1,1\n4,5,1\n")
	warned("train logistic --input apart.csv --label y --model n.json --if-exists replace", "training did not converge: the coefficients grow without end, .* give a penalty, such as --l2 0.01")
	w.write("same.csv", "a,b,y\n1,2,0\n2,2,5\n3,2,1\n4,2,1\n")
	warned("train linear --input same.csv --label y --model n.json --if-exists replace", "1 feature is constant, or determined by others: without standard errors, as are those others")
	code, _, errOut := w.run("train linear --l2 1 --input apart.csv --label y --model n.json --if-exists replace")
	require.Zero(t, code)
	require.NotContains(t, errOut, "warning")

	// For a row without a prediction, evaluate must not use the prediction of the previous row.
	require.Regexp(t, `(?m)^weight +714$`, warned("evaluate --model m.json --input titanic.csv --label survived", "177 rows without a prediction left out of the evaluation"))

	const refused = `titanic.csv:7: column "age" is null, which no component of a vector can be; --missing fill puts a value in its place, --missing skip leaves such rows out`
	// With --parallelism 1, the first bad row is reported. With several subtasks, any bad row
	// may be reported.
	w.fails(1, "train linear --parallelism 1 --model x.json "+titanic+"age,fare", refused)
	w.fails(1, "train kmeans --parallelism 1 --k 2 --model x.json "+titanic+"age,fare", `titanic.csv:7: column "age": it is null; --missing fill puts a value in its place`)
	// Factorization machines do not standardise features, so plain SGD diverges on ages and
	// fares.
	const stochastic = "train fm --task classification --method sgd --max-iter 30 --missing fill --model f.json " + titanic + "age,fare"
	w.fails(1, stochastic, "steps with the learning rate ")
	require.Contains(t, w.fails(1, stochastic+" --update plain", "lower the rate"), "standardise the features")
	warned(stochastic+" --update adam", "training did not converge: 30 passes over the rows were too few; --max-iter allows more")
	w.write("few.csv", "a,y\n1,2\n2,-3\n")
	w.fails(1, "train gbdt --objective poisson --input few.csv --label y --model x.json", `few.csv:3: column "y": the label is -3`)
	// Rows of --test without a label are left out before the check, but errors still name the
	// right line.
	w.fails(1, "train gbdt --objective poisson --input same.csv --test few.csv --features a --label y --model x.json", `few.csv:3: column "y": the label is -3`)
	w.fails(1, "train glm --family poisson --input few.csv --label y --model x.json", `few.csv:3: the label -3`)
	w.write("many.libsvm", "1 1:1\n\n0 1:nan\n")
	w.fails(1, "train svc --input many.libsvm --model x.json", `many.libsvm:3: column "features": component 0 is NaN; --missing skip leaves such rows out`)
	w.write("weights.csv", "a,w,y\n1,2,0\n2,-1,1\n")
	w.fails(1, "train logistic --weight w --input weights.csv --label y --model x.json", `weights.csv:3: column "w": the weight is -1`)
	w.ok("train linear --missing fill --model p.json " + titanic + "age,fare")
	warned("evaluate --parallelism 1 --kind regression --prediction age --input titanic.csv --label fare", "177 rows without a prediction left out of the evaluation")

	// Predict accepts a file that has only a header, and writes such a file.
	w.write("header.csv", "age,fare\n")
	code, out, errOut := w.run("predict --model m.json --input header.csv --output none.csv")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "done: 0 rows")
	require.Equal(t, "predictions of 0 rows written to none.csv\n", out)
	require.Equal(t, "age,fare,prediction,probability_0,probability_1", strings.TrimSpace(w.read("none.csv")))

	w.fails(1, "evaluate --model m.json --input header.csv --label fare", "no row of header.csv has a label, a prediction and a weight above 0")

	// Errors name the line of the file even after an operator has assembled columns into
	// vectors, unless that operator may leave rows out.
	w.write("nan.csv", "a,b,y\n1,2,0\n2,3,1\n3,4,0\n5,6,1\nNaN,3,1\n4,4,0\n")
	for _, what := range []string{"kmeans", "gmm"} {
		w.fails(1, "train "+what+" --k 2 --input nan.csv --features a,b --parallelism 1 --model x.json", `nan.csv:6: column "a": it is null; --missing fill puts a value in its place`)
	}

	// --types or --infer-rows helps if the first value that shows the type of a column is late
	// in the file.
	w.write("late.csv", "a,y\n"+strings.Repeat("1,2\n3,4\n", 6000)+"3.5,5\n")
	late := "train linear --input late.csv --label y --model late.json"
	w.fails(1, late, `late.csv:12002: column "a": cannot read "3.5" as int64`)
	w.ok(late + " --types a=float64")
	w.ok(late + "2 --infer-rows 13000")
	w.fails(2, late+"3 --types a=float", `column "a" is to be "float": want bool, int64, float64 or utf8`)
	w.fails(2, late+"3 --infer-rows -1", "--infer-rows is -1")

	// A model of 100,000 features can be read even if its trees use none of the features.
	w.write("wide.libsvm", "1 100000:2\n0 1:1\n1 2:3\n0 3:3\n")
	w.ok("train gbdt --objective logistic --rounds 2 --input wide.libsvm --model wide.json")
	w.ok("predict --model wide.json --input wide.libsvm --output wide.csv")

	// A warning reports that no row has the label that --positive names.
	w.write("scores.csv", "y,s\n0,0.2\n1,0.7\n")
	code, _, errOut = w.run("evaluate --kind binary --label y --score s --positive yes --input scores.csv")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, `no row has the label "yes", which --positive names`)

	// A command refuses to overwrite one of its input files.
	w.fails(2, "train linear --input few.csv --label y --model few.csv --if-exists replace", "--model and --input are the same file, few.csv: it would be lost")
	w.fails(2, "predict --model m.json --input few.csv --output m.json --if-exists replace", "--output and --model are the same file")
	w.fails(2, "export m.json --to pmml --output m.json --if-exists replace", "the same file")

	// Predict refuses an output that the directory or glob in --input includes, because the
	// next run would read it.
	require.NoError(t, os.Mkdir(w.path("rows"), 0o700))
	w.write("rows/few.csv", "a,y\n1,2\n2,3\n3,5\n")
	w.ok("train linear --input few.csv --label y --model few.json")
	w.fails(2, "predict --model few.json --input rows/*.csv --output rows/predicted.csv", "--output rows/predicted.csv is one of the files that --input rows/*.csv stands for")
	w.fails(2, "predict --model few.json --input rows --output ./rows/predicted.csv", "--output ./rows/predicted.csv is one of the files that --input rows stands for")
	w.ok("predict --model few.json --input rows/*.csv --output predicted.csv")
	w.ok("predict --model few.json --input rows/f*.csv --output rows/predicted.csv")

	// The column of --offset is not a feature.
	w.write("offset.csv", "a,o,y\n1,1,3\n2,5,9\n3,2,8\n4,0,8.5\n")
	w.ok("train linear --offset o --input offset.csv --test offset.csv --label y --model o.json")
	require.NotContains(t, w.ok("inspect o.json"), "  o ")
	w.ok("predict --model o.json --input offset.csv --output o.csv")
}
