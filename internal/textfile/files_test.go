package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

func names(files []File) []string {
	var out []string
	for _, f := range files {
		out = append(out, filepath.Base(f.Path))
	}
	return out
}

func TestResolve(t *testing.T) {
	dir := write(t, map[string]string{"b.csv": "x", "a.csv": "yy", "B.csv": "", ".hidden.csv": "z", "_SUCCESS": "", "c.txt": "", "odd[1].csv": "o"})
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub.csv"), 0o700))
	for pattern, want := range map[string][]string{
		"":           {"B.csv", "a.csv", "b.csv", "c.txt", "odd[1].csv"},
		"*.csv":      {"B.csv", "a.csv", "b.csv", "odd[1].csv"},
		"[ab].csv":   {"a.csv", "b.csv"},
		"b.csv":      {"b.csv"},
		"odd[1].csv": {"odd[1].csv"},
		".*.csv":     {".hidden.csv"},
	} {
		files, err := Resolve(filepath.Join(dir, pattern))
		require.NoError(t, err, pattern)
		require.Equal(t, want, names(files), pattern)
	}
	f := resolve(t, filepath.Join(dir, "a.csv"))[0]
	require.EqualValues(t, 2, f.Size)
	require.Len(t, f.Hash, 16)

	for pattern, message := range map[string]string{
		"a.cvs":   "does not exist; in " + dir + " there is a.csv",
		"q":       "nor does a similar name",
		"no/q":    "be listed",
		"*.xml":   "matches no file",
		"sub.csv": "has no input files (0 hidden names and 0 subdirectories are not read)",
		"[":       "syntax error in pattern",
	} {
		_, err := Resolve(filepath.Join(dir, pattern))
		require.ErrorContains(t, err, message, pattern)
	}
	_, err := Resolve("")
	require.ErrorContains(t, err, "path is empty")
	_, err = Resolve(os.DevNull)
	require.ErrorContains(t, err, "is not a regular file")
}

func TestVerify(t *testing.T) {
	dir := write(t, map[string]string{"a.csv": "a,b\n1,2\n"})
	path := filepath.Join(dir, "a.csv")
	files := resolve(t, path)
	require.NoError(t, VerifyIn(nil, files))

	// A small file with the same content and another modification time is unchanged.
	later := time.Unix(2_000_000_000, 5)
	require.NoError(t, os.Chtimes(path, later, later))
	require.NoError(t, VerifyIn(nil, files))
	large := files[0]
	large.Hash = ""
	err := VerifyIn(nil, []File{large})
	require.ErrorIs(t, err, ErrChanged)
	require.ErrorContains(t, err, "now it has 8 bytes of 2033-05-18T03:33:20.000000005Z")
	large.ModTime = later.UnixNano()
	require.NoError(t, VerifyIn(nil, []File{large}))
	large.Size--
	require.ErrorIs(t, VerifyIn(nil, []File{large}), ErrChanged, "a file with another size and the same modification time must count as changed")

	// A file with other content, but the same size and modification time, has changed.
	require.NoError(t, os.WriteFile(path, []byte("a,b\n1,3\n"), 0o600))
	require.NoError(t, os.Chtimes(path, time.Unix(0, files[0].ModTime), time.Unix(0, files[0].ModTime)))
	require.ErrorIs(t, VerifyIn(nil, files), ErrChanged)

	require.NoError(t, os.WriteFile(path, []byte("a,b\n"), 0o600))
	err = VerifyIn(nil, files)
	require.ErrorContains(t, err, "a.csv changed between building and reading: it had 8 bytes of ")
	require.ErrorContains(t, err, "now it has 4 bytes of ")
	_, err = OpenCSV(t.Context(), files, Dialect{}, textLayout(2), Config{Shards: 1})
	require.ErrorIs(t, err, ErrChanged)

	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, VerifyIn(nil, files), "does not exist any more")
}

func TestChangeAfterOpeningIsNoticed(t *testing.T) {
	dir := write(t, map[string]string{"a.csv": "1,2\n3,4\n"})
	path := filepath.Join(dir, "a.csv")
	c := opened(t, resolve(t, path), Dialect{}, textLayout(2), Config{Shards: 2})
	require.NoError(t, os.WriteFile(path, []byte("1,2\n"), 0o600))
	_, err := rows(t.Context(), c, 0, 1)
	require.ErrorIs(t, err, ErrChanged)
	require.ErrorContains(t, err, "it had 8 bytes")
}

// TestPartsAreChecked requires an error when reading begins if the length or modification time
// of a file has changed, and an error when reading ends if the file has changed meanwhile.
func TestPartsAreChecked(t *testing.T) {
	const content = "1,2\n3,4\n"
	for name, change := range map[string]func(path string, was time.Time) error{
		"time": func(path string, was time.Time) error { return os.Chtimes(path, was, was.Add(time.Nanosecond)) },
		"shorter": func(path string, was time.Time) error {
			return errors.Join(os.WriteFile(path, []byte(content[:4]), 0o600), os.Chtimes(path, was, was))
		},
		"longer": func(path string, was time.Time) error {
			return errors.Join(os.WriteFile(path, []byte(content+"5,6\n"), 0o600), os.Chtimes(path, was, was))
		},
	} {
		path := filepath.Join(write(t, map[string]string{"a.csv": content}), "a.csv")
		info, err := os.Stat(path)
		require.NoError(t, err)
		p := part{path: path, size: info.Size(), mtime: info.ModTime().UnixNano()}
		h, err := p.open()
		require.NoError(t, err)
		require.NoError(t, h.close())
		h, err = p.open()
		require.NoError(t, err)
		require.NoError(t, change(path, info.ModTime()))
		require.ErrorIs(t, h.close(), ErrChanged, name)
		_, err = p.open()
		require.ErrorIs(t, err, ErrChanged, name)
	}
}

func gz(t *testing.T, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zst(t *testing.T, text string) []byte {
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll([]byte(text), nil)
}

func TestCompressedFilesAreUnpackedOnce(t *testing.T) {
	mark := "\ufeff"
	dir := write(t, map[string]string{
		"1.csv":     mark + "a,b\n1,2\n3,\"4\n\"",
		"2.csv.gz":  string(append(gz(t, mark+"a,b\r\n5,6\r\n"), gz(t, "7,8")...)), // two members
		"3.csv.zst": string(zst(t, "\n\na,b\n9,10\n")),
		"4.csv":     string(gz(t, "a,b\n11,12\n")), // compressed, but without the suffix of an archive
		"5.csv":     "",
	})
	files := resolve(t, dir)
	d := Dialect{Header: true}
	l, err := InferCSV(t.Context(), files, d, InferOptions{})
	require.NoError(t, err)
	for _, shards := range []int{1, 2, 7, 64} {
		for _, workers := range []int{1, 2, 5} {
			spool := t.TempDir()
			c := opened(t, files, d, l, Config{Shards: shards, Workers: workers, SpoolDir: spool})
			require.Equal(t, [][]string{{"1", "2"}, {"3", "4\n"}, {"5", "6"}, {"7", "8"}, {"9", "10"}, {"11", "12"}}, allRows(t, c, 2))
			left, err := os.ReadDir(spool)
			require.NoError(t, err)
			require.Empty(t, left, "the spool must be unlinked")
		}
	}
}

func TestBadArchives(t *testing.T) {
	whole := gz(t, "a,b\n1,2\n"+string(bytes.Repeat([]byte("xyzzy"), 1000)))
	corrupt := bytes.Clone(whole)
	corrupt[len(corrupt)-6] ^= 1
	zwhole := zst(t, string(bytes.Repeat([]byte("a,b\n1,2\n"), 1000)))
	for name, c := range map[string]struct {
		data    []byte
		message string
	}{
		"cut.csv.gz":    {whole[:len(whole)-9], "cut.csv.gz: gzip archive is truncated"},
		"head.csv.gz":   {whole[:5], "head.csv.gz: gzip archive is truncated"},
		"two.csv.gz":    {slices.Concat(whole, whole[:5]), "two.csv.gz: gzip archive is truncated"},
		"junk.csv.gz":   {slices.Concat(whole, []byte("abcde")), fmt.Sprintf("junk.csv.gz: bad gzip archive: it ends at byte %d, and what follows is no gzip data", len(whole))},
		"long.csv.gz":   {slices.Concat(whole, bytes.Repeat([]byte("abcde"), 50_000)), fmt.Sprintf("long.csv.gz: bad gzip archive: it ends at byte %d, and", len(whole))},
		"bad.csv.gz":    {corrupt, "bad.csv.gz: bad gzip archive"},
		"plain.csv.gz":  {[]byte("a,b\n"), "plain.csv.gz is not gzip data although its name says so"},
		"empty.csv.gz":  {nil, "empty.csv.gz is not gzip data although its name says so: it is empty"},
		"empty.csv.zst": {nil, "empty.csv.zst is not zstd data although its name says so: it is empty"},
		"cut.csv.zst":   {zwhole[:len(zwhole)-3], "cut.csv.zst: "},
		"plain.csv.zst": {[]byte("a,b\n"), "plain.csv.zst is not zstd data"},
	} {
		dir := write(t, map[string]string{name: string(c.data)})
		_, err := OpenCSV(t.Context(), resolve(t, dir), Dialect{}, textLayout(2), Config{Shards: 1})
		require.ErrorContains(t, err, c.message, name)
	}
}

func TestSpoolThatCannotBeMade(t *testing.T) {
	dir := write(t, map[string]string{"a.csv.gz": string(gz(t, "1,2\n"))})
	_, err := OpenCSV(t.Context(), resolve(t, dir), Dialect{}, textLayout(2), Config{Shards: 1, SpoolDir: filepath.Join(dir, "none")})
	require.ErrorContains(t, err, "cannot create a spool")
}
