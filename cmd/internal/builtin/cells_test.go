//go:build !race

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCellsStayAsTheyAre requires that predict copies cells of columns that the model does not
// read unchanged to its output, and that no such cell makes the job fail.
func TestCellsStayAsTheyAre(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "n,y\n"+strings.Repeat("1,0\n2,1\n1,1\n2,0\n3,1\n", 4))
	w.ok("train logistic --l2 1 --input t.csv --label y --model m.json")
	rows := []string{"zip,id,price,flag,sci,n", "00501,12345678901234567890,1.10,True,1E5,1", "007,12345678901234567891,,NA,1e-400,2",
		"90210,9223372036854775808,3.000000000000000000001,FALSE,?,3", "x,y,z,u,v,2"}
	w.write("p.csv", strings.Join(rows, "\n")+"\n")
	for _, flags := range []string{"", " --infer-rows 3"} {
		w.ok("predict --model m.json --input p.csv --output out.csv --if-exists replace" + flags)
		for i, line := range strings.Split(strings.TrimSpace(w.read("out.csv")), "\n") {
			require.True(t, strings.HasPrefix(line, rows[i]+","), line)
		}
	}
}

// TestLongIdentifiers requires that a column with integers beyond int64 is text, and that a
// warning reports integers that are rounded because they are read as float64.
func TestLongIdentifiers(t *testing.T) {
	w := newTestDir(t)
	var ids, labels, wide strings.Builder
	for i := range 40 {
		fmt.Fprintf(&ids, "1234567890123456789%d,%d,%d\n", i%2, i%5, i%3%2)
		fmt.Fprintf(&labels, "1234567890123456789%d,%d\n", i%2, i%2+i%3)
		fmt.Fprintf(&wide, "900719925474099%d,%d\n", i%2*2+1, i%2)
	}
	w.write("ids.csv", "id,n,y\n"+ids.String())
	const why = `column "id" is text as 40 of 40 values are whole numbers that float64 would change, some beyond int64, the first at ids.csv:2: "12345678901234567890"`
	w.fails(1, "train logistic --l2 1 --input ids.csv --label y --model m.json", why+": name the columns of numbers with --features, or have it read as numbers, which are rounded, with --types id=float64")
	code, _, errOut := w.run("train logistic --l2 1 --types id=float64 --input ids.csv --label y --model m.json")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, `warning: column "id" has 40 whole numbers beyond 2^53 that are rounded as numbers, the first at ids.csv:2: "12345678901234567890"`)
	code, _, errOut = w.run("predict --input ids.csv --model m.json --output p.csv")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, `warning: column "id" has 40 whole numbers beyond 2^53`)

	// Integers that come after the rows from which types are inferred are reported too, once
	// per column.
	w.write("late.csv", "x,y\n"+strings.Repeat("1,2\n2,3\n3,5\n", 30)+"9007199254740993,1\n9007199254740995,1\n")
	for _, p := range []string{"1", "3"} {
		code, _, errOut = w.run("train linear --infer-rows 10 --input late.csv --label y --model late.json --if-exists replace --parallelism " + p)
		require.Zero(t, code, errOut)
		require.Equal(t, 1, strings.Count(errOut, `column "x" has 2 whole numbers beyond 2^53 that are rounded as numbers, the first at late.csv:92: "9007199254740993"`), errOut)
	}

	// Class labels and query ids stay distinct even if float64 rounds them to the same number.
	w.write("labels.csv", "c,n\n"+labels.String())
	w.ok("train logistic --l2 1 --input labels.csv --label c --model c.json")
	require.Contains(t, w.read("c.json"), `"12345678901234567890","12345678901234567891"`)
	w.write("wide.csv", "c,n\n"+wide.String())
	w.ok("train logistic --l2 1 --input wide.csv --label c --model w.json")
	require.Contains(t, w.read("w.json"), `"9007199254740991","9007199254740993"`)
	out := w.ok("evaluate --kind ranking --input ids.csv --label y --score n --group id")
	require.Regexp(t, `(?m)queries +2$`, out)
}

// TestQuotedNulls requires that quoted cells are missing values if --null lists their text, in
// columns of text and in columns of numbers.
func TestQuotedNulls(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "\"c\",\"n\",\"y\"\n"+strings.Repeat("\"NA\",\"1\",\"1\"\n\"x\",\"NA\",\"0\"\n\"z\",\"2\",\"0\"\n\"x\",\"1\",\"1\"\n", 10))
	w.ok("train logistic --l2 1 --encode --missing fill --null NA --input t.csv --label y --model m.json")
	require.Contains(t, w.read("m.json"), `[["x","z"]]`)
}

// TestNaNIsMissing requires that predict treats NaN in the same way as other spellings of
// missing values.
func TestNaNIsMissing(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "n,y\n"+strings.Repeat("1,0\n2,1\n1,1\n2,0\n3,1\n", 4))
	w.ok("train logistic --l2 1 --missing fill --input t.csv --label y --model m.json")
	w.write("p.csv", "n\n1\nnan\nNA\n-nan\n")
	code, _, errOut := w.run("predict --model m.json --input p.csv --output out.csv")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, `cells read as missing values: 1 of "-nan" in column "n", 1 of "NA" in column "n", 1 of "NaN" in column "n"`)
	require.Contains(t, errOut, `3 rows have no value in column "n"`)
	rows := w.table("out.csv")
	require.Equal(t, rows[1]["probability_1"], rows[2]["probability_1"])
}

// TestOutputsByName requires that predict refuses an output file whose extension belongs to a
// format that cannot be written. It must not write the file in another format.
func TestOutputsByName(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "n,y\n"+strings.Repeat("1,0\n2,1\n1,1\n2,0\n3,1\n", 4))
	w.ok("train logistic --l2 1 --input t.csv --label y --model m.json")
	const line = "predict --model m.json --input t.csv --output "
	for _, name := range []string{"p.csv.gz", "p.csv.zst", "client:p.csv.GZ"} {
		w.fails(2, line+name, "--output is "+name+", which names a compressed file")
	}
	for _, name := range []string{"p.arrows", "p.xlsx", "client:p.libsvm"} {
		w.fails(2, line+name, "--output is "+name+", and "+name[strings.LastIndex(name, "."):]+" files are not written: name a .csv")
	}
	w.fails(2, line+"client:-", "--output is client:-: write - alone, without client:, for standard output")
	w.ok(line + "p.TSV")
	require.Contains(t, w.read("p.TSV"), "n\ty\tprediction")
}

// TestFlagsOfCSV requires that flags for CSV files are refused if the input has another format.
func TestFlagsOfCSV(t *testing.T) {
	w := newTestDir(t)
	w.write("t.libsvm", strings.Repeat("0 1:1\n1 1:2\n", 4))
	for _, flag := range []string{"--types a=utf8", "--delimiter ;", "--no-header", "--infer-rows 5"} {
		w.fails(1, "train logistic --input t.libsvm --model m.json "+flag, strings.Fields(flag)[0]+" is for CSV, and t.libsvm is read as libsvm")
	}
}
