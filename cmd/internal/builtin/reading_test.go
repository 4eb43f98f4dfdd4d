//go:build !race

package builtin_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// TestHowFilesAreWritten requires that files with comments, with lines before the header, in
// other encodings, or with indices that count from 0 give the same models as plain files.
func TestHowFilesAreWritten(t *testing.T) {
	w := newTestDir(t)
	rows := "größe,y\n" + strings.Repeat("1,0\n2,1\n3,0\n2.5,1\n7,1\n", 40)
	w.write("plain.csv", rows)
	const train = "train logistic --label y --model m.json --shards 1 --if-exists replace --input "
	w.ok(train + "plain.csv")
	want := w.read("m.json")
	same := func(line string) {
		t.Helper()
		w.ok(line)
		require.Equal(t, want, w.read("m.json"), line)
	}
	w.write("bom.csv", "\ufeff"+rows)
	same(train + "bom.csv")
	w.write("commented.csv", "# from the \"laboratory\nTable 1,,\n"+strings.ReplaceAll(rows, "7,1\n", "7,1\n# seven \"\n"))
	same(train + "commented.csv --skip-lines 2 --comment '#'")
	w.fails(1, train+"commented.csv --skip-lines 1 --comment '#'", "the header has no name for column 2")

	latin := strings.ReplaceAll(rows, "ö", "\xf6")
	latin = strings.ReplaceAll(latin, "ß", "\xdf")
	w.write("latin1.csv", latin)
	same(train + "latin1.csv --encoding latin1")
	same(train + "latin1.csv --encoding windows-1252")
	const mistaken = "the byte 0xf6 at offset 2 is not UTF-8: if the text is in another encoding, such as latin1, set --encoding"
	w.fails(1, train+"latin1.csv", "latin1.csv: the header cannot be read: "+mistaken)
	w.write("cells.csv", "a,y\nx,0\nGr\xf6\xdfe,1\n")
	w.fails(1, train+"cells.csv --encode", `cells.csv:3: column "a": cannot read "Gr\xf6\xdfe": the byte 0xf6 at offset 10 is not UTF-8`)
	for name, order := range map[string]binary.AppendByteOrder{"little.csv": binary.LittleEndian, "big.csv": binary.BigEndian} {
		var text []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + rows)) {
			text = order.AppendUint16(text, u)
		}
		w.write(name, string(text))
		same(train + name + " --encoding utf-16")
		w.fails(1, train+name, "it begins with the byte order mark of UTF-16")
		w.write(name, string(text[2:]))
		w.fails(1, train+name, "the header cannot be read: the byte ")
		w.write(name, string(text[:len(text)-1]))
		w.fails(1, train+name+" --encoding utf-16 --infer-rows 10", "is cut off")
	}
	w.fails(2, train+"plain.csv --encoding utf-7", "--encoding")
	w.fails(2, train+"plain.csv --comment ab", "--comment is")
	w.fails(2, train+"plain.csv --skip-lines=-1", "--skip-lines is -1")
	w.fails(1, train+"plain.csv --zero-based", "--zero-based is for LibSVM files, and plain.csv is read as csv")

	// Line numbers in errors count all lines of the file, including skipped lines and comments.
	w.write("bad.csv", "one\ntwo\n# three\na,y\n1,0\n# six\n2,1\n3\n")
	w.fails(1, train+"bad.csv --skip-lines 2 --comment '#'", "bad.csv:8: row has 1 field, the header has 2")

	w.write("one.libsvm", strings.Repeat("1 1:2 3:1\n0 1:1 2:1\n1 2:5\n0 3:1\n", 9))
	w.write("zero.libsvm", strings.Repeat("1 0:2 2:1\n0 0:1 1:1\n1 1:5\n0 2:1\n", 9))
	const svm = "train logistic --l2 1 --model m.json --shards 1 --if-exists replace --input "
	w.ok(svm + "one.libsvm")
	want = w.read("m.json")
	w.ok(svm + "zero.libsvm --zero-based")
	made, _, _ := strings.Cut(w.read("m.json"), `,"reading":`)
	require.True(t, strings.HasPrefix(want, made))
	w.fails(1, svm+"zero.libsvm", "zero.libsvm:1: index 0 in data whose indices count from 1: if they count from 0, set --zero-based")
	w.fails(1, svm+"one.libsvm --skip-lines 1", "--skip-lines is for CSV, and one.libsvm is read as libsvm")
	w.ok("predict --model m.json --zero-based --input zero.libsvm --output p.csv")
	w.ok("evaluate --model m.json --zero-based --input zero.libsvm")
}

// TestStandardInputAndOutput requires that the path - means standard input or standard output,
// and that no temporary file is left.
func TestStandardInputAndOutput(t *testing.T) {
	w := newTestDir(t)
	temporary := t.TempDir()
	w.env = []string{"TMPDIR=" + temporary}
	w.ok("train logistic --input titanic.csv --label survived --features fare,pclass --model m.json --shards 4")
	want := w.read("m.json")
	w.in = w.read("titanic.csv")
	code, out, errOut := w.run("train logistic --input - --label survived --features fare,pclass --model=- --shards 4")
	require.Zero(t, code, errOut)
	require.Equal(t, want, out)
	require.Contains(t, errOut, "model written to standard output\n")

	w.ok("predict --model m.json --input titanic.csv --output p.csv")
	code, out, errOut = w.run("predict --model m.json --input=- --output -")
	require.Zero(t, code, errOut)
	require.Equal(t, w.read("p.csv"), out)
	require.Contains(t, errOut, "predictions of 891 rows written to standard output\n")
	require.Equal(t, w.ok("evaluate --model m.json --input titanic.csv --label survived"), w.ok("evaluate --model m.json --input - --label survived"))
	w.ok("train logistic --input titanic.csv --test - --label survived --features fare,pclass --model n.json --plot-of loss --plot l.svg")
	w.in = want
	require.Equal(t, w.read("p.csv"), w.ok("predict --model - --input titanic.csv --output -"))

	// The format of standard input is detected from the first bytes, or is set with --format.
	w.ok("predict --model m.json --input titanic.csv --output p.arrow --keep fare,pclass,survived")
	w.ok("predict --model m.json --input titanic.csv --output p.parquet --keep fare,pclass,survived")
	for _, name := range []string{"p.arrow", "p.parquet"} {
		w.in = w.read(name)
		require.Contains(t, w.ok("evaluate --kind multiclass --label survived --prediction prediction --input -"), "accuracy")
	}
	w.in = w.read("heart_scale.libsvm")
	require.Contains(t, w.ok("train logistic --l2 0.01 --format libsvm --input - --test heart_scale.libsvm --model s.json"), "0.929444")

	w.in = ""
	w.fails(1, "train logistic --input - --label y --model x.json", "is empty")
	w.fails(2, "train logistic --input - --test - --label y --model x.json", "--input and --test cannot both be standard input")
	w.fails(2, "predict --input - --model - --output p2.csv", "--input and --model cannot both be standard input")
	w.fails(2, "predict --input - --model m.json --output p2.csv --cluster localhost:1", "--input - does not go with --cluster")
	w.fails(2, "predict --input - --model m.json --output p2.csv --checkpoint-dir c", "--input - does not go with --checkpoint-dir")
	w.env = append(w.env, "SUPERSTEP_CLUSTER=localhost:1")
	w.fails(2, "evaluate --input=- --model m.json", "--input - does not go with --cluster")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestMessyFiles requires that unusual but valid files give the same model as a plain file, and
// that other files give a warning, or an error that names the position and a remedy.
func TestMessyFiles(t *testing.T) {
	w := newTestDir(t)
	rows := func(format string) string {
		var text strings.Builder
		for i := range 20 {
			fmt.Fprintf(&text, format, i, i*i%7, i%2)
		}
		return text.String()
	}
	plain := rows("%d,%d,%d\n")
	w.write("plain.csv", "a,b,y\n"+plain)
	const train = "train logistic --l2 0.1 --label y --shards 1 --parallelism 1 --model m.json --if-exists replace --input "
	w.ok(train + "plain.csv")
	want := w.read("m.json")
	for what, content := range map[string]string{
		"quotes": `"a","b","y"` + "\n" + rows("\"%d\",\"%d\",\"%d\"\n"), "CR LF": strings.ReplaceAll("a,b,y\n"+plain, "\n", "\r\n"),
		"blank lines": "\n\na,b,y\n" + strings.Replace(plain, "3,2,1\n", "3,2,1\n\n  \n", 1), "blanks": strings.ReplaceAll("a,b,y\n"+plain, ",", " ,  "),
		"no end": strings.TrimSuffix("a,b,y\n"+plain, "\n"), "signs": "a,b,y\n" + rows("+%d,%d,%d\n"), "zeros": "a,b,y\n" + rows("00%d,%d,%d\n"),
	} {
		w.write("f.csv", content)
		w.ok(train + "f.csv")
		require.Equal(t, strings.ReplaceAll(want, "int64", "float64"), strings.ReplaceAll(w.read("m.json"), "int64", "float64"), what)
	}
	for content, message := range map[string]string{
		"a,b,y\n" + plain + "5,1\n":      "f.csv:22: row has 2 fields, the header has 3",
		"a,b,y\n" + plain + "5,1,0,7\n":  "f.csv:22: row has 4 fields, the header has 3",
		"a,b,y,\n" + rows("%d,%d,%d,\n"): "f.csv: the header has no name for column 4",
		"a,b,y\n" + rows("%d,%d,%d,\n"):  "the first row of f.csv: row has 4 fields, the header has 3",
		"a,a,y\n" + plain:                `f.csv: the header names columns 1 and 2 both "a"`,
		"a,b,y\n":                        "f.csv has a header and no rows",
		"":                               "f.csv is empty",
		strings.ReplaceAll("a,b,y\n"+plain, "\n", "\r"):                    "the header has a CR outside quotes",
		"a,b,y\n" + plain + "1e400,1,1\n":                                  `column "a" is text as 1 of 21 values is no number, the first at f.csv:22: "1e400"`,
		"a,b,y\n" + plain + "0x10,1,1\n":                                   `the first at f.csv:22: "0x10"`,
		"a,b,y\n" + plain + "1_000,1,1\n":                                  `the first at f.csv:22: "1_000"`,
		"a,b,y\n" + plain + "\"1,000\",1,1\n":                              `the first at f.csv:22: "1,000"`,
		"a,b,y\n" + plain + "\x005,1,1\n":                                  `f.csv:22: column "a": the byte at offset 136 is 0, which no text has`,
		"a,b,y\n" + plain + "−5,1,1\n":                                     `the first at f.csv:22: "−5"`,
		"a,b,y\n" + plain + "\"" + strings.Repeat("x", 1<<17) + "\",1,1\n": "(131072 bytes)",
		"a,b,y\n" + plain + "inf,1,1\n":                                    `f.csv:22: column "a" is +Inf`,
		"a,b,y\n" + plain + "nan,1,1\n":                                    `f.csv:22: column "a" is null`,
		"a,b,y\n" + plain + "\"1,1,1\n" + plain:                            "f.csv:22: field 1: the quote opened here is never closed",
		"a,b,y\n" + plain + "\"1\"x,1,1\n":                                 "f.csv:22: field 1: text follows the closing quote",
		"a,b,y\n" + plain + "1,2,\n":                                       `f.csv:22: column "y": the label is null`,
		"a,b,y\n" + plain + "1,2,?\n":                                      `f.csv:22: column "y": the label is null`,
		"a;b;y\n" + strings.ReplaceAll(plain, ",", ";"):                    `it has "a;b;y": --delimiter says what separates cells`,
	} {
		w.write("f.csv", content)
		w.fails(1, train+"f.csv", message)
	}

	// A warning must report a text column in which hardly any value is repeated, and a header
	// that may be a row.
	const trees = "train gbdt --objective squared --rounds 2 --label y --model m.json --if-exists replace --input "
	for what, content := range map[string]string{
		"thousands": "a,b,y\n" + rows("\"%d,000\",%d,%d\n"), "decimal commas": "a,b,y\n" + rows("\"%d,5\",%d,%d\n"), "dates": "a,b,y\n" + rows("2024-01-%02d,%d,%d\n"),
		"percent": "a,b,y\n" + rows("%d%%,%d,%d\n"),
	} {
		w.write("f.csv", content)
		for _, line := range []string{trees, strings.Replace(train, "logistic", "logistic --encode", 1)} {
			code, _, errOut := w.run(line + "f.csv")
			require.Zero(t, code, errOut)
			require.Contains(t, errOut, `warning: column "a" is text with 20 different values in 20 rows, each of which is a category`, what)
		}
	}
	w.write("f.csv", "5,7,0\n"+plain)
	code, _, errOut := w.run("train kmeans --k 2 --model m.json --if-exists replace --input f.csv")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "warning: the header of f.csv has numbers alone, as a row has: 5, 7, 0; if it is one, --no-header says so")
	code, _, errOut = w.run("train kmeans --k 2 --model m.json --if-exists replace --input f.csv --no-header")
	require.Zero(t, code, errOut)
	require.NotContains(t, errOut, "warning")
}
