package operators

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

func svmOf(path string, o LibSVMOptions) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset { return ReadLibSVM(b, path, o) }
}

func TestReadLibSVM(t *testing.T) {
	// The text has 32 bytes, 4 per shard. The lines begin at bytes 0, 17, 24, 26 and 29.
	text := "1 1:0.5 3:-2 # a\n-1 2:1\n0\n+1\n#b\n"
	require.Len(t, text, 32)
	dir := writeFiles(t, map[string]string{"a.txt": text})
	requireRows(t, "label float64 | features sparse[3]", []string{
		"0 | 1 | [0:0.5 2:-2]", "4 | -1 | [1:1]", "6 | 0 | []", "6 | 1 | []",
	}, svmOf(dir, LibSVMOptions{}))
	requireRows(t, "label float64 | features sparse[10]", []string{
		"0 | 1 | [1:0.5 3:-2]", "4 | -1 | [2:1]", "6 | 0 | []", "6 | 1 | []",
	}, svmOf(dir, LibSVMOptions{ZeroBased: true, Size: 10}))
}

func TestReadLibSVMQueries(t *testing.T) {
	fsys := fstest.MapFS{"q.gz": {Data: pack(t, "q.gz", "1 qid:7 1:2\n3 qid:8 2:4\n")}}
	got := outcome(t, func(b *engine.Builder) *engine.Dataset {
		d := ReadLibSVM(b, "q.gz", LibSVMOptions{FS: fsys})
		require.Equal(t, 2, VectorSize(d, "features"))
		require.Zero(t, VectorSize(d, "label"))
		require.Zero(t, VectorSize(d, "none"))
		return d
	})
	require.Equal(t, "shard int64 | label float64 | qid int64 | features sparse[2]", got[0])
	require.Contains(t, got[1], "| 1 | 7 | [0:2]")
	require.Zero(t, VectorSize(nil, "features"))
}

func TestReadLibSVMBadLines(t *testing.T) {
	for text, words := range map[string]string{
		"1 1:1\n2 0:1\n":     "x.txt:2: index 0 in data whose indices count from 1",
		"1 1:1\n2 1:1 1:2\n": "x.txt:2: index 1 occurs twice",
		"1 1:1\n2 2:1 1:2\n": "x.txt:2: index 1 after 2",
		"1 1:1\n2 1\n":       `x.txt:2: "1" is not index:value`,
		"1 1:1\nx 1:1\n":     `x.txt:2: cannot read "x" as the label`,
		"1 1:1\n2 1:y\n":     `x.txt:2: cannot read "1:y" as index:value`,
		"":                   "x.txt is empty: it has no records",
	} {
		dir := writeFiles(t, map[string]string{"x.txt": text})
		// Without a size, the whole file is read while the job is built.
		requireMisuse(t, svmOf(dir, LibSVMOptions{}), "ReadLibSVM: ", words)
		if text == "" {
			continue
		}
		err := runError(t, svmOf(dir, LibSVMOptions{Size: 5}), engine.Parallelism(3))
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "operator ReadLibSVM (read_libsvm_test.go:")
		got := outcome(t, svmOf(dir, LibSVMOptions{OnError: Skip}))
		require.Len(t, got, 2)
	}
	dir := writeFiles(t, map[string]string{"x.txt": "1 1:1\n2 9:1\n"})
	require.ErrorContains(t, runError(t, svmOf(dir, LibSVMOptions{Size: 5})), "x.txt:2: index 9 is beyond the size 5")
	requireMisuse(t, svmOf(filepath.Join(dir, "x.tx"), LibSVMOptions{}), "there is x.txt")
	requireMisuse(t, svmOf(dir, LibSVMOptions{Size: -1}), "size -1")
}
