package operators

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// linesOf divides text into lines by bufio.Scanner.
func linesOf(t require.TestingT, text string) (lines []string) {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	require.NoError(t, s.Err())
	return lines
}

// readLines runs ReadText and returns the lines.
func readLines(t testing.TB, path string, o TextOptions, opts ...engine.Option) []string {
	result, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(ReadText(b, path, o), "out")
		return nil
	}), struct{}{}, append([]engine.Option{engine.Allocator(batchtest.Allocator(t))}, opts...)...)
	require.NoError(t, err)
	defer result.Release()
	lines, err := engine.Rows[string](result, "out")
	require.NoError(t, err)
	return lines
}

func writeFile(t testing.TB, path string, content []byte) string {
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

// TestReadText compares the lines of two random files with those of bufio.Scanner, with random
// numbers of shards, subtasks and rows per batch.
func TestReadText(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		draw := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ü", "longer text, \"quoted", "\n", "\r\n", "\n\n", "\r", "#", " "}), 0, 40)
		var want []string
		for _, name := range []string{"a.txt", "b.txt"} {
			text := strings.Join(draw.Draw(rt, name), "")
			writeFile(t, filepath.Join(dir, name), []byte(text))
			want = append(want, linesOf(rt, text)...)
		}
		got := readLines(t, dir, TextOptions{}, engine.Shards(1<<rapid.IntRange(3, 6).Draw(rt, "shards")),
			engine.Parallelism(rapid.IntRange(1, 8).Draw(rt, "parallelism")), engine.BatchRows(rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "rows")))
		require.Equal(rt, fmt.Sprintf("%q", want), fmt.Sprintf("%q", got))
	})
}

// TestReadTextIsTheSameEverywhere reads plain and compressed files at every setting, with and
// without the column of file names.
func TestReadTextIsTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	plain := writeFile(t, filepath.Join(dir, "a.txt"), []byte("one\ntwo\r\n\nfour"))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("five\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	archive := writeFile(t, filepath.Join(dir, "b.txt.gz"), packed.Bytes())
	type row struct{ File, Value string }
	got := sameEverywhere(t, func(b *engine.Builder) *engine.Dataset {
		return Map(ReadText(b, dir, TextOptions{File: true}), func(r row) row { return row{filepath.Base(r.File), r.Value} })
	})
	require.Equal(t, []string{"file utf8 | value utf8", "a.txt | one", "a.txt | two", "a.txt | ", "a.txt | four", "b.txt.gz | five"}, withoutShards(got))
	got = sameEverywhere(t, func(b *engine.Builder) *engine.Dataset {
		return Map(ReadText(b, dir, TextOptions{}), func(line string) int64 { return int64(len(line)) })
	})
	require.Equal(t, []string{"value int64", "3", "3", "0", "4", "4"}, withoutShards(got))
	for path, want := range map[string][]string{plain: {"one", "two", "", "four"}, archive: {"five"}} {
		require.Equal(t, want, readLines(t, path, TextOptions{}))
	}
}

func TestReadTextOptions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.txt")
	writeFile(t, path, []byte("\xef\xbb\xbffirst\nsecond\n\nd\xe9j\xe0 vu\n"))
	require.Equal(t, []string{"second", "", "d\uFFFDj\uFFFD vu"}, readLines(t, path, TextOptions{SkipLines: 1, ReplaceInvalidUTF8: true}))
	require.Equal(t, []string{"first", "second", ""}, readLines(t, path, TextOptions{OnError: Skip}))
	writeFile(t, path, []byte("d\xe9j\xe0\nvu"))
	require.Equal(t, []string{"déjà", "vu"}, readLines(t, path, TextOptions{Encoding: "latin1"}))
	writeFile(t, path, []byte("h\x00i\x00\n\x00"))
	require.Equal(t, []string{"hi"}, readLines(t, path, TextOptions{Encoding: "utf-16"}))
	writeFile(t, path, nil)
	require.Empty(t, readLines(t, path, TextOptions{}))
	require.Equal(t, []string{"a", "b"}, readLines(t, "x.txt", TextOptions{FS: fstest.MapFS{"x.txt": {Data: []byte("a\nb\n")}}}))
	long := strings.Repeat("x", 3<<20)
	writeFile(t, path, []byte("a\n"+long+"\r\n"))
	require.Equal(t, []string{"a", long}, readLines(t, path, TextOptions{MaxLine: 3 << 20}))
}

func TestReadTextRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	refused := func(text string, o TextOptions, words ...string) {
		t.Helper()
		writeFile(t, path, []byte(text))
		for _, p := range []int{1, 3} {
			err := runError(t, func(b *engine.Builder) *engine.Dataset { return ReadText(b, path, o) }, engine.Parallelism(p))
			require.ErrorContains(t, err, "operator ReadText (read_text_test.go:")
			for _, word := range words {
				require.ErrorContains(t, err, word)
			}
		}
	}
	refused("a\n\nb\xffc\n", TextOptions{}, `x.txt:3: cannot read "b\xffc": the byte 0xff at offset 4 is not UTF-8`, "set ReplaceInvalidUTF8")
	refused("a\nb\x00c\n", TextOptions{}, "x.txt:2: the byte at offset 3 is 0, which no text has")
	for _, on := range []OnError{Fail, Skip} {
		refused("a\nabcd\nb", TextOptions{MaxLine: 3, OnError: on}, "x.txt:2: line is larger than 3 bytes")
		refused("a\nb\nabcd", TextOptions{MaxLine: 3, OnError: on}, "x.txt:3: line is larger than 3 bytes")
	}
	require.Equal(t, []string{"a", "abc"}, readLines(t, writeFile(t, path, []byte("a\nabc\r\n")), TextOptions{MaxLine: 3}))

	// An error of a later operator must have the file and line of the row.
	writeFile(t, path, []byte("1\n2\nthree\n"))
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return MapErr(ReadText(b, path, TextOptions{}), func(line string) (int64, error) {
			if line == "three" {
				return 0, errBoom
			}
			return 1, nil
		})
	})
	require.ErrorContains(t, err, "x.txt:3")

	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadText(b, path+"/none", TextOptions{}) }, "read_text_test.go:", "ReadText: ")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadText(b, path, TextOptions{Encoding: "utf-9"}) }, "ReadText: ", "utf-9")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadText(b, path, TextOptions{MaxLine: -1}) }, "ReadText: the largest line must be between 1 and 536870912 bytes")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadText(b, path, TextOptions{SkipLines: -1}) }, "ReadText: the number of lines to skip")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return ReadText(nil, path, TextOptions{}) }, "the builder is nil")
}
