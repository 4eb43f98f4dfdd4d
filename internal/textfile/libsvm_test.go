package textfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// svmRows scans the files and returns all rows. A row has the label, the qid if there is one,
// and the features, as text.
func svmRows(t require.TestingT, files []File, opt LibSVMOptions, cfg Config) ([][]string, LibSVMLayout, error) {
	l, err := ScanLibSVM(context.Background(), files, opt, cfg)
	if err != nil {
		return nil, l, err
	}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	cfg.Allocator = mem
	s, err := OpenLibSVM(context.Background(), files, l, cfg)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, s.Close())
		require.Zero(t, mem.CurrentAlloc())
	}()
	var out [][]string
	for shard := range cfg.Shards {
		part, err := rows(context.Background(), s, shard, 3)
		if err != nil {
			return nil, l, err
		}
		out = append(out, part...)
	}
	return out, l, nil
}

func TestLibSVM(t *testing.T) {
	text := "\ufeff# header comment\n+1 1:0.5 3:-2 # tail\r\n\n-1\n 2.5\t2:1e3  4:7 \n0 4:-0"
	dir := write(t, map[string]string{"a.svm": text})
	for _, shards := range []int{1, 2, 8, 64} {
		got, l, err := svmRows(t, resolve(t, dir), LibSVMOptions{}, Config{Shards: shards})
		require.NoError(t, err)
		require.Equal(t, LibSVMLayout{Size: 4}, l)
		require.Equal(t, [][]string{
			{"1", `[0:0.5 2:-2]`}, {"-1", `[]`}, {"2.5", `[1:1000 3:7]`}, {"0", `[3:-0]`},
		}, got)
	}
}

func TestLibSVMZeroBasedWithQueries(t *testing.T) {
	dir := write(t, map[string]string{"a.svm": "2 qid:10 0:1 7:2\n0 qid:-3\n", "b.svm": "", "c.svm": "1 qid:5 1:1"})
	got, l, err := svmRows(t, resolve(t, dir), LibSVMOptions{ZeroBased: true}, Config{Shards: 2})
	require.NoError(t, err)
	require.Equal(t, LibSVMLayout{ZeroBased: true, Size: 8, Query: true}, l)
	require.Equal(t, [][]string{{"2", "10", "[0:1 7:2]"}, {"0", "-3", "[]"}, {"1", "5", "[1:1]"}}, got)
	_, l, err = svmRows(t, resolve(t, dir), LibSVMOptions{ZeroBased: true, Size: 100}, Config{Shards: 2})
	require.NoError(t, err)
	require.Equal(t, 100, l.Size)
}

func TestLibSVMBadLines(t *testing.T) {
	for _, c := range []struct {
		text, message string
		opt           LibSVMOptions
	}{
		{"1 1:1\n1 0:1\n", `a.svm:2: index 0 in data whose indices count from 1: if they count from 0, set ZeroBased`, LibSVMOptions{}},
		{"1 1:1 1:2\n", `a.svm:1: index 1 occurs twice`, LibSVMOptions{}},
		{"\n#x\n1 3:1 2:2\n", `a.svm:3: index 2 after 3; indices must ascend`, LibSVMOptions{}},
		{"1 -1:1\n", `a.svm:1: index -1 is negative`, LibSVMOptions{ZeroBased: true}},
		{"1 5:1\n", `a.svm:1: index 5 is beyond the size 4 (indices count from 1)`, LibSVMOptions{Size: 4}},
		{"1 4:1\n", `a.svm:1: index 4 is beyond the size 4 (indices count from 0)`, LibSVMOptions{Size: 4, ZeroBased: true}},
		{"x 1:1\n", `a.svm:1: cannot read "x" as the label: it is not a decimal number`, LibSVMOptions{}},
		{"1,2 1:1\n", `a.svm:1: cannot read "1,2" as the label: it is not a decimal number`, LibSVMOptions{}},
		{"1 2\n", `a.svm:1: "2" is not index:value`, LibSVMOptions{}},
		{"1 a:2\n", `a.svm:1: cannot read "a:2" as index:value: the index: it is not a whole number`, LibSVMOptions{}},
		{"1 1:\n", `a.svm:1: cannot read "1:" as index:value: the value: it is empty`, LibSVMOptions{}},
		{"1 99999999999:1\n", `a.svm:1: index 99999999999 is beyond the size 2147483647 (indices count from 1)`, LibSVMOptions{}},
		{"1 qid:1 1:1\n1 1:1\n", `a.svm:2: this line has no query id, but the first line has one`, LibSVMOptions{}},
		{"1 1:1\n1 qid:1 1:1\n", `a.svm:2: this line has a query id ("qid:1"), but the first line has none`, LibSVMOptions{}},
		{"1 qid:x 1:1\n", `a.svm:1: cannot read "qid:x" as a query id: it is not a whole number`, LibSVMOptions{}},
		{"", "is empty", LibSVMOptions{}},
		{"# only\n\n", "is empty", LibSVMOptions{}},
	} {
		dir := write(t, map[string]string{"a.svm": c.text})
		_, _, err := svmRows(t, resolve(t, dir), c.opt, Config{Shards: 4})
		require.ErrorContains(t, err, c.message, c.text)
	}
	dir := write(t, map[string]string{"a.svm": "1 1:1\n1 0:1\n1 2:2 3:x\n1 2:2\n"})
	for _, shards := range []int{1, 3} {
		got, l, err := svmRows(t, resolve(t, dir), LibSVMOptions{}, Config{Shards: shards, OnError: Skip})
		require.NoError(t, err)
		require.Equal(t, 2, l.Size)
		require.Equal(t, [][]string{{"1", "[0:1]"}, {"1", "[1:2]"}}, got)
	}
	_, err := ScanLibSVM(t.Context(), resolve(t, dir), LibSVMOptions{Size: -1}, Config{Shards: 1})
	require.ErrorContains(t, err, "the size -1 is not between")
}

func TestLibSVMAgainstAPlainReader(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.svm")
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		want := [][]string{}
		size := 0
		for range rapid.IntRange(1, 20).Draw(rt, "rows") {
			label := rapid.Int64Range(-3, 3).Draw(rt, "label")
			fmt.Fprintf(&b, "%d", label)
			index := 0
			var pairs []string
			for range rapid.IntRange(0, 5).Draw(rt, "pairs") {
				index += rapid.IntRange(1, 9).Draw(rt, "step")
				v := strconv.FormatFloat(rapid.Float64Range(-10, 10).Draw(rt, "value"), 'f', 3, 64)
				fmt.Fprintf(&b, " %d:%s", index, v)
				f, _ := strconv.ParseFloat(v, 64)
				pairs = append(pairs, fmt.Sprintf("%d:%s", index-1, strconv.FormatFloat(f, 'f', -1, 64)))
			}
			size = max(size, index)
			b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", " # c\n", "\n\n", "\n#\n"}).Draw(rt, "end"))
			want = append(want, []string{fmt.Sprint(label), "[" + strings.Join(pairs, " ") + "]"})
		}
		require.NoError(rt, os.WriteFile(path, []byte(b.String()), 0o600))
		shards := rapid.SampledFrom([]int{1, 2, 8, 128}).Draw(rt, "shards")
		got, l, err := svmRows(rt, resolve(rt, path), LibSVMOptions{}, Config{Shards: shards, Workers: 2})
		require.NoError(rt, err)
		require.Equal(rt, size, l.Size)
		require.Equal(rt, want, got)
	})
}

func FuzzLibSVM(f *testing.F) {
	for _, seed := range []string{"+1 1:0.5 3:2\n", "1 qid:3 1:1\n", "\r", "1", "# c\n1 2:3 # d", "1 1:1 1:1", "1 0:1", "nan 1:inf", "1 :", "1 1:1:1"} {
		f.Add([]byte(seed), uint8(2))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, cuts uint8) {
		if len(text) == 0 || len(text) > 4096 {
			return
		}
		path := filepath.Join(dir, "f.svm")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		whole, l, err := svmRows(t, resolve(t, path), LibSVMOptions{}, Config{Shards: 1})
		cut, l2, err2 := svmRows(t, resolve(t, path), LibSVMOptions{}, Config{Shards: int(cuts)%9 + 1})
		require.Equal(t, err, err2)
		require.Equal(t, whole, cut)
		require.Equal(t, l, l2)
	})
}
