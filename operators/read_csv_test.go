package operators

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// writeFiles writes files into a new directory and returns its path. Files whose names end in
// .gz or .zst are compressed.
func writeFiles(t testing.TB, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, pack(t, name, text), 0o600))
	}
	return dir
}

func pack(t testing.TB, name, text string) []byte {
	switch filepath.Ext(name) {
	case ".gz":
		path := filepath.Join(t.TempDir(), "packed")
		f, err := os.Create(path)
		require.NoError(t, err)
		z := gzip.NewWriter(f)
		_, err = z.Write([]byte(text))
		require.NoError(t, errors.Join(err, z.Close(), f.Close()))
		packed, err := os.ReadFile(path)
		require.NoError(t, err)
		return packed
	case ".zst":
		z, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return z.EncodeAll([]byte(text), nil)
	}
	return []byte(text)
}

// csvOf returns a function that adds a ReadCSV of path to a job.
func csvOf(path string, o CSVOptions) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset { return ReadCSV(b, path, o) }
}

func TestReadCSV(t *testing.T) {
	// There are 48 bytes after the header, so each of the 8 shards has 6 bytes.
	dir := writeFiles(t, map[string]string{"a.csv": "name,size,on\n" +
		"iris,1.5,true\n" + // bytes 0 to 14
		"\"a\nb\",2,false\n" + // 14 to 28
		",-1e3,true\n" + // 28 to 39
		"d,,false\n"}) // 39 to 48
	requireRows(t, "name utf8 null | size float64 null | on bool", []string{
		"0 | iris | 1.5 | true", "2 | a\nb | 2 | false", "4 | null | -1000 | true", "6 | d | null | false",
	}, csvOf(filepath.Join(dir, "a.csv"), CSVOptions{Header: true}))
}

func TestReadCSVOptions(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.csv": "# about\n 1 ;'x;y'; NA\n2;'';7.5\nbad;z;1\n"})
	o := CSVOptions{
		Columns:   []Column{{Name: "id", Type: "int32"}, {Name: "text", Type: "utf8", Nullable: true}, {Name: "v", Type: "float32", Nullable: true}},
		Select:    []string{"v", "id"},
		Delimiter: ';', Quote: '\'', Comment: '#', TrimSpace: true, Nulls: []string{"NA"}, OnError: Skip,
	}
	want := []string{"shard int64 | v float32 null | id int32", "0 | null | 1", "4 | 7.5 | 2"}
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		got := outcome(t, csvOf(filepath.Join(dir, "a.csv"), o), opts...)
		require.Equal(t, len(want), len(got))
		require.Equal(t, want[0], got[0])
		require.Contains(t, got[1], want[1][1:])
		require.Contains(t, got[2], want[2][1:])
	})
}

func TestReadCSVManyFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"d/b.csv": "n\n3\n4\n", "d/a.csv.gz": "n\n1\n2\n", "d/c.csv.zst": "n\n5\n", "d/_SUCCESS": "", "d/.x.csv": "m\n9\n", "e.txt": "n\n9\n",
	})
	for _, path := range []string{"d", "d/*.csv*", "*/[abc]*"} {
		got := sameEverywhere(t, csvOf(filepath.Join(dir, path), CSVOptions{Header: true}))
		require.Equal(t, "shard int64 | n int64", got[0])
		var values []string
		for _, line := range got[1:] {
			values = append(values, line[len("0 | "):])
		}
		require.Equal(t, []string{"1", "2", "3", "4", "5"}, values, path)
	}
}

//go:embed read_csv_test.go
var embedded embed.FS

// opaque is a file system whose files do not support random access.
type opaque struct{ fs.FS }

func (o opaque) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if info, e := fs.Stat(o.FS, name); e == nil && info.IsDir() {
		return f, err
	}
	return struct{ fs.File }{f}, err
}

func TestReadCSVOfFileSystems(t *testing.T) {
	files := fstest.MapFS{
		"data/a.csv": {Data: []byte("n\n1\n2\n")}, "data/b.csv.gz": {Data: pack(t, "b.gz", "n\n3\n")}, "data/n/c.csv": {Data: []byte("n\n7\n")},
	}
	for _, fsys := range []fs.FS{files, opaque{files}} {
		got := sameEverywhere(t, csvOf("./data", CSVOptions{Header: true, FS: fsys}))
		require.Len(t, got, 4)
		require.Contains(t, got[3], " | 3")
	}
	// Another file system has a file of the same name with different content.
	other := fstest.MapFS{"data/a.csv": {Data: []byte("n\nx\n")}}
	got := outcome(t, func(b *engine.Builder) *engine.Dataset {
		first := ReadCSV(b, "data/a.csv", CSVOptions{Header: true, FS: files})
		require.Equal(t, "int64", arrowrows.Arrow(first.Schema()).Field(0).Type.String())
		return ReadCSV(b, "data/a.csv", CSVOptions{Header: true, FS: other})
	})
	require.Contains(t, got[1], " | x")

	got = outcome(t, csvOf("read_csv_test.go", CSVOptions{Quote: NoQuote, Delimiter: '\x00' + 1, FS: embedded}))
	require.Contains(t, got[1], "package operators")
	requireMisuse(t, csvOf("data/aa.csv", CSVOptions{FS: files}), "read_csv_test.go:", "data/aa.csv does not exist", "there is a.csv")
}

func TestReadCSVRefusedWhenBuilding(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.csv": "sepal_length,petal\n1,2\n", "empty.csv": "", "dup.csv": "a,a\n", "mac.csv": "a,b\r1,2\r", "b/x.csv": "a\n1\n", "b/y.csv": "b\n1\n", "z.csv.gz": "x",
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "z.csv.gz"), []byte("plain"), 0o600))
	h := CSVOptions{Header: true}
	for _, c := range []struct {
		path  string
		o     CSVOptions
		words []string
	}{
		{"a.cvs", h, []string{"a.cvs does not exist", "there is a.csv"}},
		{"nowhere/*.csv", h, []string{"matches no file"}},
		{"", h, []string{"a directory"}},
		{"empty.csv", h, []string{"empty.csv is empty: it has no header"}},
		{"empty.csv", CSVOptions{}, []string{"empty.csv is empty: it has no records"}},
		{"dup.csv", h, []string{`names columns 1 and 2 both "a"`}},
		{"mac.csv", h, []string{"mac.csv: the header has a CR outside quotes", "old Macintosh files"}},
		{"b", h, []string{"x.csv and", "y.csv differ", `column 1 is "a" in the first and "b" in the second`}},
		{"z.csv.gz", h, []string{"is not gzip data"}},
		{"a.csv", CSVOptions{Header: true, Select: []string{"sepal_lenght"}}, []string{`there is no column "sepal_lenght"; did you mean "sepal_length"?`}},
		{"a.csv", CSVOptions{Header: true, Types: map[string]string{"petals": "int64"}}, []string{`"petals"`, `did you mean "petal"?`}},
		{"a.csv", CSVOptions{Header: true, Types: map[string]string{"petal": "flaot64"}}, []string{`unknown type "flaot64"; did you mean float64`}},
		{"a.csv", CSVOptions{Header: true, Columns: []Column{{Name: "petal"}}}, []string{`column "petal"`, "unknown type"}},
		{"a.csv", CSVOptions{Header: true, Names: []string{"x"}}, []string{"has 2 columns, but 1 name is given"}},
		{"a.csv", CSVOptions{Delimiter: '"'}, []string{"must differ"}},
		{"a.csv", CSVOptions{SampleRows: -1}, []string{"must not be negative"}},
	} {
		path := filepath.Join(dir, c.path)
		if c.path == "" {
			path = filepath.Join(dir, "none")
			require.NoError(t, os.Mkdir(path, 0o700))
			c.words = []string{"none has no input files"}
		}
		requireMisuse(t, csvOf(path, c.o), append(c.words, "ReadCSV: ")...)
	}
	requireMisuse(t, csvOf("", h), "the input path is empty")
	requireMisuse(t, func(*engine.Builder) *engine.Dataset { return ReadCSV(nil, "x", h) }, "the builder is nil")
}

func TestReadCSVHeaderOnly(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.csv": "a,b\n", "b.csv": "\ufeffa,b"})
	requireRows(t, "a utf8 | b utf8", nil, csvOf(dir, CSVOptions{Header: true}))
	requireRows(t, "a float64 null", nil, csvOf(dir, CSVOptions{Header: true, Types: map[string]string{"a": "float64"}, Select: []string{"a"}}))

	need := CSVOptions{Header: true, NeedRows: true}
	requireMisuse(t, csvOf(dir, need), "read_csv_test.go", dir+" has a header and no rows, so that the types of its columns are not known")
	for text, want := range map[string]string{
		"a,b\n\"1,2\n3,4\n": "x.csv: field 1: the quote opened here is never closed",
		"a,b\n1,\"2\"x\n":   "x.csv: field 2: text follows the closing quote; a quote inside quotes must be doubled",
		"a,b\n\n1\n1,2,3\n": "x.csv: row has 1 field, the header has 2",
	} {
		bad := writeFiles(t, map[string]string{"x.csv": text})
		requireMisuse(t, csvOf(bad, need), bad+" has no row that can be read, so that the types of its columns are not known; the first row of ", want)
	}
	need.Types = map[string]string{"a": "float64", "b": "utf8"}
	requireRows(t, "a float64 null | b utf8 null", nil, csvOf(dir, need))
}

func TestReadCSVBadRows(t *testing.T) {
	for text, words := range map[string][]string{
		"a,b\n1,2\n1\n3,4\n":           {"x.csv:3: row has 1 field, the header has 2"},
		"a,b\n1,2\n1,2,3\n":            {"x.csv:3: row has 3 fields, the header has 2"},
		"a,b\n1,2\n\"3\n\",4\n":        {"x.csv:3: ", `column "a": cannot read "3\n" as float64`},
		"a,b\n1,2\n1,two\n":            {`x.csv:3: column "b": cannot read "two" as float64`},
		"a,b\n1,2\n1,\"2\n3,4\n":       {"x.csv:3: field 2: the quote opened here is never closed"},
		"a,b\n1,2\n1,\"2\"x\n":         {"x.csv:3: field 2: text follows the closing quote"},
		"a,b\n1,2\n1,999999999999999e": {`x.csv:3: column "b": cannot read`},
	} {
		dir := writeFiles(t, map[string]string{"x.csv": text})
		o := CSVOptions{Header: true, Types: map[string]string{"a": "float64", "b": "float64"}}
		for _, s := range []setting{{1, 1, 0}, {3, 3, 0}, {8, 8, 0}, {3, 3, 2}} {
			err := runError(t, csvOf(dir, o), s.options()...)
			for _, word := range append(words, "operator ReadCSV (read_csv_test.go:", "subtask") {
				require.ErrorContains(t, err, word)
			}
		}
	}
}

func TestReadCSVSkipsBadRows(t *testing.T) {
	text := "a,b\n1,2\nx,y\n3\n4,5,6\n7,8\n9,\"0\"!\n10,11\n"
	dir := writeFiles(t, map[string]string{"x.csv": text})
	o := CSVOptions{Header: true, OnError: Skip, Types: map[string]string{"a": "int64", "b": "int64"}}
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(ReadCSV(b, dir, o), "rows")
			return nil
		}), struct{}{}, opts...)
		require.NoError(t, err)
		defer result.Release()
		var got []string
		recs, err := recordsOf(result, "rows")
		require.NoError(t, err)
		for _, rec := range recs {
			got = append(got, batchtest.Rows(rec)...)
		}
		require.Equal(t, []string{"1 | 2", "7 | 8", "10 | 11"}, got)
		require.EqualValues(t, 4, counterOf(result, "skipped rows"))
	})
}

// counterOf returns the sum of a counter over all operators.
func counterOf(r *engine.Result, name string) (n int64) {
	for _, v := range r.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					if c.Name == name {
						n += c.Value
					}
				}
			}
		}
	}
	return n
}

// TestReadCSVNoticesChanges requires an error if the file changes between the build, which
// reads the file to infer types, and the run.
func TestReadCSVNoticesChanges(t *testing.T) {
	for _, now := range []string{"n\n1\n2\n3\n", "n\n1\n9\n", ""} {
		dir := writeFiles(t, map[string]string{"x.csv": "n\n1\n2\n"})
		builds := 0
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			d := ReadCSV(b, filepath.Join(dir, "x.csv"), CSVOptions{Header: true})
			if builds++; builds == 2 {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "x.csv"), []byte(now), 0o600))
				if now == "" {
					require.NoError(t, os.Remove(filepath.Join(dir, "x.csv")))
				}
			}
			return d
		}, engine.Parallelism(3))
		require.ErrorContains(t, err, "x.csv changed between building and reading")
		require.ErrorContains(t, err, "operator ReadCSV")
	}
}
