//go:build !race

package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEndingsOfExports requires that export refuses an output file whose extension belongs to
// another format than --to, because import would infer that other format from the extension.
func TestEndingsOfExports(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "x,y\n1,0\n2,1\n3,1\n4,0\n5,1\n")
	w.ok("train gbdt --objective logistic --rounds 2 --min-child-weight 0 --input t.csv --label y --model trees.json")
	w.ok("train logistic --l2 1 --input t.csv --label y --model terms.json")
	for line, want := range map[string]string{
		"export trees.json --to xgboost --output m.ubj":      "--to xgboost does not go with --output m.ubj: .ubj is the ending of xgboost-ubj; choose another ending, such as .json, or --to xgboost-ubj",
		"export trees.json --to xgboost-ubj --output m.json": "--to xgboost-ubj does not go with --output m.json: .json is the ending of xgboost; choose another ending, such as .ubj, or --to xgboost",
		"export trees.json --to lightgbm --output m.UBJ":     "--to lightgbm does not go with --output m.UBJ: .ubj is the ending of xgboost-ubj",
		"export trees.json --to onnx --output m.txt":         "--to onnx does not go with --output m.txt: .txt is the ending of lightgbm",
		"export terms.json --to pmml --output m.onnx":        "--to pmml does not go with --output m.onnx: .onnx is the ending of onnx",
		"export terms.json --to onnx --output m.json":        "--to onnx does not go with --output m.json",
	} {
		w.fails(2, line, want)
	}
	for _, line := range []string{
		"export trees.json --to xgboost --output m.json", "export trees.json --to xgboost-ubj --output m.ubj", "export trees.json --to lightgbm --output m.txt",
		"export trees.json --to lightgbm --output m.model", "export trees.json --to xgboost --output model", "export terms.json --to pmml --output m.xml",
	} {
		w.ok(line)
	}
	require.Contains(t, w.ok("export --help"), "A .json file needs --to or --from")
}

// TestWordsOfTheCommandLine requires that error messages name flags and values of the command
// line. They must not name Go options, or values that only Go programs can set.
func TestWordsOfTheCommandLine(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "x,y\n1,1\n2,0\n3,1\n4,0\n")
	w.write("latin.csv", "a,y\nM\xfcller,1\nb,2\n")
	told := w.fails(1, "train linear --input latin.csv --label y --encode --model m.json", `latin.csv:2: column "a": cannot read "M\xfcller": the byte 0xfc at offset 5 is not UTF-8: if the text is in another encoding, such as latin1, set --encoding`)
	require.NotContains(t, told, "ReplaceInvalidUTF8")

	told = w.fails(2, "train gbdt --objective custom --input t.csv --label y --model m.json", `--objective: unknown objective "custom": want one of squared, absolute`)
	require.NotContains(t, told, "CustomObjective")
	told = w.fails(2, "train gbdt --objective foo --input t.csv --label y --model m.json", `--objective: unknown objective "foo": want one of squared, absolute`)
	require.NotContains(t, told, "custom")
	for flags, want := range map[string]string{
		"glm --link foo":                          `--link: unknown link "foo": want one of auto, identity, log, logit, inverse`,
		"glm --family foo":                        `--family: unknown family "foo": want one of gaussian, binomial, poisson, gamma, tweedie`,
		"glm --family gamma --link logit":         "the family gamma has no link logit: want one of log, inverse, identity",
		"gbdt --objective aft --time foo":         "want one of normal, logistic, extreme",
		"naivebayes --family foo":                 "--family",
		"forest --task regression --sampling foo": "want one of auto, bootstrap, subset, whole",
	} {
		told = w.fails(2, "train "+flags+" --input t.csv --label y --model m.json", want)
		require.NotContains(t, told, "[")
	}

	w.write("sizes", "2\n3\n")
	const wrong = "the sizes of 2 queries sum to 5 rows, and there are 4: give the number of rows of each query, in the order of the rows"
	told = w.fails(1, "train gbdt --objective lambdamart --group-sizes sizes --input t.csv --label y --model m.json", "--group-sizes: "+wrong)
	require.NotContains(t, told, "WithGroups")
	w.write("fit", "2\n2\n")
	told = w.fails(1, "train gbdt --objective lambdamart --group-sizes fit --test t.csv --test-group-sizes sizes --input t.csv --label y --model m.json", "--test-group-sizes: "+wrong)
	require.NotContains(t, told, "WithGroups")
	w.write("bad", "2\n-2\n")
	w.fails(1, "train gbdt --objective lambdamart --group-sizes bad --input t.csv --label y --model m.json", "--group-sizes: ")
}

// TestColumnsWithCommas requires that lists of columns can have names with commas, either quoted
// as in CSV or escaped with a backslash.
func TestColumnsWithCommas(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "\"a,b\",c,\"d\"\"\",y\n1,2,1,1\n2,1,2,2\n3,4,1,3\n4,1,3,5\n5,2,2,4\n")
	columns := func(model string) []string {
		var file struct {
			Inputs []struct{ Column string }
		}
		w.json("inspect --output json "+model, &file)
		var names []string
		for _, in := range file.Inputs {
			names = append(names, in.Column)
		}
		return names
	}
	for features, want := range map[string][]string{
		`'"a,b",c'`: {"a,b", "c"}, `'c,"a,b"'`: {"c", "a,b"}, `'"a,b"' --features c`: {"a,b", "c"}, `'a\,b,c'`: {"a,b", "c"}, `'"d""",c'`: {`d"`, "c"}, `'d",c'`: {`d"`, "c"},
	} {
		w.ok("train linear --input t.csv --label y --model m.json --if-exists replace --features " + features)
		require.Equal(t, want, columns("m.json"), features)
	}
	w.ok(`predict --model m.json --input t.csv --output p.csv --keep '"a,b",y'`)
	require.Contains(t, w.read("p.csv"), "\"a,b\",y,prediction\n")
	w.ok(`train gbdt --objective squared --rounds 2 --min-child-weight 0 --input t.csv --label y --model g.json --features '"a,b",c' --categories '"a,b"' --interactions '"a,b";c'`)
	w.ok(`evaluate --kind clustering --input t.csv --prediction c --features '"a,b",y'`)
	w.ok(`run kmeans --k 2 --input t.csv --columns '"a,b",c'`)
	w.ok("export g.json --output g.txt")
	w.ok(`import g.txt --features '"a,b",c' --output back.json`)
	require.Equal(t, []string{"a,b", "c"}, columns("back.json"))
	w.fails(2, `train linear --input t.csv --label y --model m.json --features '"a,b'`, "--features: the quote that opens at \"a,b is never closed")
	w.fails(2, `train linear --input t.csv --label y --model m.json --features '"a"b,c'`, `--features: "b" follows a closing quote: want a comma`)
	w.fails(1, `train linear --input t.csv --label y --model m.json --features a,b`, `t.csv has no column "a"`)
}
