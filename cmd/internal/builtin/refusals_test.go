//go:build !race

package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagsThatSayNothing requires a usage error with a correct message for a flag that would
// otherwise be ignored or misread.
func TestFlagsThatSayNothing(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "x,z,y,q\n1,2,1,a\n2,1,3,b\n3,3,5,a\n4,4,4,b\n")
	w.ok("train linear --input t.csv --features x --label y --model m.json")
	for line, want := range map[string][]string{
		"train linear --input t.csv --label y --model n.json --features ''":              {"--features is empty"},
		"train linear --input t.csv --label y --model n.json --features ,":               {"--features has an empty element beside a comma"},
		"train linear --input t.csv --label y --model n.json --features x,x":             {`--features has "x" twice`},
		"train linear --input t.csv --label y --model n.json --prediction-column ''":     {"--prediction-column is empty"},
		"predict --model m.json --input t.csv --output p.csv --keep x,x":                 {`--keep has "x" twice`},
		"evaluate --kind regression --input t.csv --label y --prediction x --positive 1": {"--positive does not go with --kind regression: it is for binary"},
		"evaluate --kind regression --input t.csv --label y --prediction x --margins --score z --features x": {
			"--margins does not go", "--score does not go with --kind regression: it is for binary, ranking", "--features does not go with --kind regression: it is for clustering"},
		"evaluate --kind binary --input t.csv --label y --prediction x --score z": {"--prediction does not go with --kind binary"},
	} {
		told := w.fails(2, line, want[0])
		for _, more := range want {
			require.Contains(t, told, more, line)
		}
		for _, false_ := range []string{"which is the label", "named both", "Select"} {
			require.NotContains(t, told, false_, line)
		}
	}
	for line, want := range map[string]string{
		"train linear --input t.csv --label y --model n.json --input u.csv":              "--input is given twice\n",
		"train linear --input - --label y --model n.json --input -":                      "--input is given twice\n",
		"train linear --input t.csv --label y --model n.json --label z --l2 1 --l2 0":    "--label is given twice\n--l2 is given twice\n",
		"train linear --input t.csv --label y --model n.json --model -":                  "--model is given twice\n",
		"predict --model m.json --input t.csv --output p.csv --model n.json":             "--model is given twice\n",
		"predict --model m.json --input t.csv --output - --output -":                     "--output is given twice\n",
		"run kmeans --k 2 --input t.csv --k 3":                                           "--k is given twice\n",
		`train linear --input t.csv --label y --model n.json --types "x=utf8;x=int64"`:   `--types: "x" occurs twice`,
		"train linear --input t.csv --label y --model n.json --types x=utf8 --types x=a": `--types: "x" occurs twice`,
		"train linear --input t.csv --label y --model n.json --types x":                  `--types: want a name, = and a type, but got "x"`,
	} {
		w.fails(2, line, want)
	}
	w.ok("train linear --input t.csv --features x --features z --label y --types x=float64 --types z=float64 --model two.json")
	require.Contains(t, w.ok("inspect two.json --output json"), `"z"`)
	w.fails(1, "evaluate --model m.json --input t.csv --label y --at 5", "--group, --at, --relevant and --flat are for --kind ranking, and the model is measured as regression")
	w.fails(1, "evaluate --model m.json --input t.csv --label y --group q", "are for --kind ranking, and the model is measured as regression")
	w.fails(1, "evaluate --model m.json --input t.csv --label y --plot p.png", "--plot is for binary and multiclass, and the model is measured as regression")
}

// TestWordsAboutRows requires that errors and warnings of training and evaluation name the row
// or the column, do not repeat themselves, and state only what is certain.
func TestWordsAboutRows(t *testing.T) {
	w := newTestDir(t)
	w.write("bad.csv", "y,s,q\n0,0.5,a\n1,0.25,a\n7,0.75,a\n")
	w.fails(1, "evaluate --kind binary --input bad.csv --label y --score s --parallelism 1", `bad.csv:4: column "y"`)
	w.write("rank.csv", "y,s,q\n0,0.5,a\n-1,0.25,a\n")
	w.fails(1, "evaluate --kind ranking --input rank.csv --label y --score s --group q", `rank.csv:3: column "y" is -1: want a relevance`)

	w.write("g.csv", "x,y\n1,0\n2,1\n3,1\n4,0\n")
	w.write("gt.csv", "x,y\n1,0\n2,3\n")
	told := w.fails(1, "train gbdt --objective logistic --input g.csv --test gt.csv --label y --model m.json", `evaluation set "test": column "y" has the class "3"`)
	require.Equal(t, 1, strings.Count(told, "evaluation set"), told)

	// Labels of a single class are an error in every classification algorithm.
	w.write("one.csv", "x,y\n1,1\n2,1\n3,1\n")
	for _, what := range []string{"glm --family binomial", "logistic", "svc", "gbdt --objective logistic", "forest --task classification"} {
		w.fails(1, "train "+what+" --input one.csv --label y --model m.json", `every label in column "y" is "1": a classifier needs two classes or more`)
	}

	// Classes whose rows all have weight 0 are an error, too.
	w.write("zero.csv", "x,y,v\n1,0,0\n2,1,1\n3,1,1\n4,0,0\n5,1,2\n")
	for _, what := range []string{"logistic", "svc", "naivebayes", "gbdt --objective logistic", "gbdt --objective softmax", "forest --task classification", "fm --task classification", "mlp --task classification"} {
		w.fails(1, "train "+what+" --input zero.csv --label y --weight v --model m.json --if-exists replace", `every row of class "0" weighs 0: leave such rows out, or give some a weight`)
	}
	for _, what := range []string{"forest --task classification", "gbdt --objective logistic", "svc"} {
		w.fails(2, "train "+what+" --input zero.csv --label y --model m.json --class-weights 0=0", `--class-weights of "0" is 0: want a number above 0`)
	}

	// All rows of category c have label 1, and so do some rows of category b
	// (quasi-separation).
	w.write("quasi.csv", "c,x,y\n"+strings.Repeat("a,1,0\na,2,1\nb,2,0\nb,1,1\nc,1,1\n", 8))
	code, _, errOut := w.run("train logistic --encode --input quasi.csv --label y --model q.json")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "features separate the labels of all rows, or of some rows, perfectly")
	w.write("less.csv", "c,x\n,1\na,2\nd,1\n")
	code, _, errOut = w.run("predict --model q.json --input less.csv --output p.csv")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, `1 row has no value in column "c": it is without a prediction`)
	require.Contains(t, errOut, `1 row has a value in column "c" that training has not seen, such as "d": it counts as the average`)
}
