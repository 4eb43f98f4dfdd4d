//go:build !race

package builtin_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormsOfDirectories requires that the files of a directory or a glob are read in the
// format that their names indicate, and that it is an error if the names indicate several
// formats. It also requires that a model trained on several files equals the model trained on
// the same rows in one file.
func TestFormsOfDirectories(t *testing.T) {
	w := newTestDir(t)
	for _, dir := range []string{"parquets", "arrows", "feathers", "svms", "plain", "mixed", "read.me", "old.parquet", "tabs", "packed", "seps"} {
		require.NoError(t, os.Mkdir(w.path(dir), 0o700))
	}
	header, halves, svms := "a,b,y\n", [2]string{}, [2]string{}
	for i := range 12 {
		a, b, y := i%5, (i*7)%11, (i*i)%13
		halves[i/6] += fmt.Sprintf("%d,%d,%d\n", a, b, y)
		svms[i/6] += fmt.Sprintf("%d 1:%d 2:%d\n", y, a, b)
	}
	w.write("all.csv", header+halves[0]+halves[1])
	w.write("all.svm", svms[0]+svms[1])
	w.ok("train kmeans --k 1 --input all.csv --features a --model any.json")
	for i, half := range halves {
		w.write(fmt.Sprintf("half%d.csv", i), header+half)
		w.write(fmt.Sprintf("plain/part-%d", i), header+half)
		w.write(fmt.Sprintf("svms/%d.LIBSVM", i), svms[i])
		for _, to := range []string{"parquets/%d.parquet", "arrows/%d.arrow", "feathers/%d.feather", "old.parquet/%d.data.parquet"} {
			w.ok(fmt.Sprintf("predict --model any.json --input half%d.csv --keep a,b,y --output "+to, i, i))
		}
	}
	for i, half := range halves {
		w.write(fmt.Sprintf("tabs/%d.tsv", i), strings.ReplaceAll(header+half, ",", "\t"))
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write([]byte(strings.ReplaceAll(header+half, ",", "\t")))
		require.NoError(t, errors.Join(err, z.Close()))
		w.write(fmt.Sprintf("packed/%d.tsv.gz", i), packed.String())
	}
	w.write("parquets/_SUCCESS", "")
	w.write("mixed/a.csv", header+halves[0])
	w.write("read.me/README", "rows\n")
	for to, from := range map[string]string{"mixed/b.parquet": "parquets/0.parquet", "read.me/b.parquet": "parquets/0.parquet"} {
		require.NoError(t, os.Rename(w.path(from), w.path(to)))
		require.NoError(t, os.Link(w.path(to), w.path(from)))
	}
	train := func(input, flags string) string {
		w.ok("train linear --input " + input + " --shards 1 --if-exists replace --model m.json " + flags)
		return trainedPart(t, w.read("m.json"))
	}
	csv, svm := train("all.csv", "--features a,b --label y"), train("all.svm", "")
	for _, input := range []string{"parquets", "parquets/", "'parquets/*'", "arrows", "'arr*/*'", "feathers", "plain", "tabs", "'tabs/*'", "packed", "old.parquet", "'mixed/b*'"} {
		want := csv
		if strings.HasPrefix(input, "'mixed") {
			want = train("half0.csv", "--features a,b --label y")
		}
		require.Equal(t, want, train(input, "--features a,b --label y"), input)
	}
	require.Equal(t, svm, train("svms", ""), "a directory of LibSVM files must need no --label")
	require.Equal(t, csv, train("parquets", "--features a,b --label y --test arrows"))
	w.ok("predict --model m.json --input parquets --output p.csv")
	require.Len(t, w.table("p.csv"), 12)
	w.ok("evaluate --model m.json --label y --input arrows")

	const flags = " --features a,b --label y --model m.json --if-exists replace"
	w.fails(1, "train linear --input mixed"+flags, "mixed names files in several forms: by its name a.csv is csv, and b.parquet is parquet; "+
		"name those of one form, such as "+filepath.Join("mixed", "*.csv")+", or say with --format how all are written")
	w.fails(1, "predict --model m.json --output p.csv --if-exists replace --input read.me", "read.me names files in several forms: by its name README is csv, and b.parquet is parquet; "+
		"name those of one form, such as "+filepath.Join("read.me", "*.parquet"))
	w.fails(1, "evaluate --model m.json --label y --input mixed", "mixed names files in several forms")
	w.write("seps/a.csv", header+halves[0])
	w.write("seps/b.tsv", header+halves[1])
	w.fails(1, "train linear --input seps"+flags, "name those of one form, such as "+filepath.Join("seps", "*.csv")+"\n")
	w.write("read.me/README.md", "rows\n")
	require.NoError(t, os.Remove(w.path("read.me/README")))
	w.fails(1, "evaluate --model m.json --label y --input read.me", "such as "+filepath.Join("read.me", "*.parquet"))
	w.write("p.parquet.gz", "")
	w.fails(1, "train linear --input p.parquet.gz"+flags, "p.parquet.gz is packed, and parquet files are read as they are: unpack it")
	w.fails(1, "train linear --format csv --input mixed"+flags, filepath.Join("mixed", "b.parquet"))
}

// trainedPart returns the part of the content of a model file that has the coefficients.
func trainedPart(t *testing.T, file string) string {
	_, rest, found := strings.Cut(file, `"coefficients"`)
	require.True(t, found, file)
	coefficients, _, _ := strings.Cut(rest, "]")
	return coefficients
}
