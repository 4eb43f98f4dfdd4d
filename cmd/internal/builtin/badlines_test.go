package builtin_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadLinesAreToldInTheUsersWords requires that a command that fails on bad lines prints the
// cause only once, in terms of flags, columns and files. The message must not contain Go
// identifiers.
func TestBadLinesAreToldInTheUsersWords(t *testing.T) {
	w := newTestDir(t)
	w.write("small.csv", "a,b,t,y\n1,2,x,0\n2,1,y,1\n3,5,x,0\n4,4,z,1\n5,7,x,0\n6,5,y,1\n7,8,x,1\n8,9,z,0\n")
	w.write("one.csv", "a,b,y\n1,2,x\n2,3,x\n3,4,x\n")
	w.write("bad.json", "abc")
	w.write("signs.csv", "a,y\n1,-1\n2,1\n3,-1\n4,1\n")
	w.write("zero.csv", "a,b,y\n1,2,0\n2,1\x00,1\n3,5,2\n4,4,1\n")
	w.ok("train linear --input small.csv --label y --features a,b --model lin.json")
	goNames := regexp.MustCompile(`(?m)\b[A-Z]\w*(Col|Cols|At|Iter|Bins|Trees|Features|Weights|Share|Depth|Leaf)\b|\b[a-z]+\.[A-Z]\w+|\.go:|panic`)
	for _, x := range []struct {
		code       int
		line, want string
	}{
		{1, "train forest --task classification --input one.csv --label y", `every label in column "y" is "x": a classifier needs two classes or more`},
		{1, "train glm --family binomial --input signs.csv --label y", "the label -1 is no proportion: values of the family binomial are from 0 to 1"},
		{1, "train linear --input zero.csv --label y", `zero.csv:3: column "b": the byte at offset 15 is 0, which no text has: the file is damaged, or in another encoding, such as utf-16, for which set --encoding`},
		{1, "train naivebayes --input one.csv --label y", `every label in column "y" is "x": a classifier needs two classes or more`},
		{1, "train forest --task regression --max-features 99 --input small.csv --label y --features a,b", "--max-features is 99, and there are 2 features: want 1 to 2"},
		{1, "train gbdt --objective squared --subsample 1e-9 --input small.csv --label y --features a,b", "--subsample is 1e-09, which is not one of the 8 rows"},
		{1, "train gbdt --objective squared --validation 1e-9 --input small.csv --label y --features a,b", "--validation is 1e-09, which is not one of the 8 rows"},
		{1, "train forest --task classification --class-weights 9=1 --input small.csv --label y --features a,b", `--class-weights name "9", which is no class of column "y": there are ["0" "1"]`},
		{2, "train logistic --class-weights 1=0 --input small.csv --label y --features a", `--class-weights of "1" is 0: want a number above 0`},
		{1, "train logistic --threshold 0.3 --input small.csv --label t --features a", "--threshold is for two"},
		{1, "train gbdt --objective lambdamart --input small.csv --label y --features a", "--group is empty: lambdamart ranks the rows of each query"},
		{1, "train gbdt --objective squared --base 1,2 --input small.csv --label y --features a", "--base has 2 margins for 1 outputs"},
		{1, "train kmeans --k 99 --input small.csv --features a,b", "99 clusters are more than the 8 distinct points of positive weight: lower --k"},
		{1, "train linear --input small.csv --label y --features a,b --weight t", `column "t" of small.csv is text, and must be numbers`},
		{2, "train forest --task regression --trees -2 --max-bins 300 --input small.csv --label y", "--max-bins is 300: want 2 to 255\n--trees is -2: want 1 to 1048576"},
		{2, "train fm --task regression --factors -1 --input small.csv --label y", "--factors is -1: want 0 to 65536"},
		{2, "train mlp --task regression --hidden 3,-4 --input small.csv --label y", "--hidden, number 2, is -4: want 1 to 1048576"},
		{2, "train linear --rate 3 --input small.csv --label y", "--rate applies only with --method sgd"},
		{1, "evaluate --kind binary --label y --score t --input small.csv", `--score: column "t" of small.csv is text, and must be numbers`},
		{1, "predict --model lin.json --input small.csv --output small.csv", "small.csv exists: choose another path, or replace it with --if-exists replace"},
		{1, "predict --model bad.json --input small.csv --output o.csv", "bad.json"},
		{1, "export lin.json --output none/x.onnx", "cannot write output none/x.onnx: the directory none does not exist; make it first"},
		{1, "export lin.json --output lin.json/x.onnx", "cannot write output lin.json/x.onnx: lin.json is not a directory"},
		{1, "import bad.json --from xgboost --output none/m.json", "a model begins with a brace"},
	} {
		line := x.line
		if strings.HasPrefix(line, "train") {
			line += " --model m.json"
		}
		if !strings.HasPrefix(line, "export") && !strings.HasPrefix(line, "import") {
			line += " --progress off"
		}
		told := w.fails(x.code, line, x.want)
		require.NotRegexp(t, goNames, told, line)
		require.Equal(t, 1, strings.Count(told, x.want), "%s: %s", line, told)
		require.NoFileExists(t, w.path("m.json"), line)
	}
}
