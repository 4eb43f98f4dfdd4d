//go:build !race

package builtin_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// Files with comments, with lines before the header, in other encodings, and with indices that
// count from 0, give the models of plain ones.
func TestHowFilesAreWritten(t *testing.T) {
	w := newWorkplace(t)
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
	const mistaken = "the byte 0xf6 at offset 2 is not UTF-8: if the text is in another encoding, such as latin1, name it (Encoding, --encoding)"
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

	// Lines are those of the file, whatever is passed over.
	w.write("bad.csv", "one\ntwo\n# three\na,y\n1,0\n# six\n2,1\n3\n")
	w.fails(1, train+"bad.csv --skip-lines 2 --comment '#'", "bad.csv:8: row has 1 field, the header has 2")

	w.write("one.libsvm", strings.Repeat("1 1:2 3:1\n0 1:1 2:1\n1 2:5\n0 3:1\n", 9))
	w.write("zero.libsvm", strings.Repeat("1 0:2 2:1\n0 0:1 1:1\n1 1:5\n0 2:1\n", 9))
	const svm = "train logistic --l2 1 --model m.json --shards 1 --if-exists replace --input "
	w.ok(svm + "one.libsvm")
	want = w.read("m.json")
	same(svm + "zero.libsvm --zero-based")
	w.fails(1, svm+"zero.libsvm", "zero.libsvm:1: index 0 in data whose indices count from 1: if they count from 0, tell so (ZeroBased, --zero-based)")
	w.fails(1, svm+"one.libsvm --skip-lines 1", "--skip-lines is for CSV, and one.libsvm is read as libsvm")
	w.ok("predict --model m.json --zero-based --input zero.libsvm --output p.csv")
	w.ok("evaluate --model m.json --zero-based --input zero.libsvm")
}
