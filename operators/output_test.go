package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/filelock"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// runSink runs a job that has only sinks, and returns its error.
func runSink(t *testing.T, build func(b *engine.Builder), opts ...engine.Option) error {
	t.Helper()
	opts = append([]engine.Option{engine.Shards(testShards), engine.Allocator(batchtest.Allocator(t)), engine.SpillDir(t.TempDir())}, opts...)
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		build(b)
		return nil
	}), struct{}{}, opts...)
	result.Release()
	return err
}

// sameFiles runs a job that writes to a path, at every setting. It requires that the job always
// writes the same bytes, and returns the files by name.
func sameFiles(t *testing.T, name string, build func(b *engine.Builder, path string)) map[string]string {
	t.Helper()
	var first map[string]string
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		dir := t.TempDir()
		require.NoError(t, runSink(t, func(b *engine.Builder) { build(b, filepath.Join(dir, name)) }, opts...))
		got := tree(t, dir)
		if first == nil {
			first = got
		}
		require.Equal(t, first, got)
	})
	return first
}

// tree returns the content of all files below a directory, including hidden files.
func tree(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if e.IsDir() {
			files[name+"/"] = ""
			return nil
		}
		content, err := os.ReadFile(path)
		files[name] = string(content)
		return err
	}))
	return files
}

// lineRow is a row of the tests of sinks.
type lineRow struct {
	N    int64
	Text string
}

func lineRows(n int) []lineRow {
	rows := make([]lineRow, n)
	for i := range rows {
		rows[i] = lineRow{int64(i), fmt.Sprintf("row %d", i)}
	}
	return rows
}

func linesCSV(rows []lineRow) string {
	var b strings.Builder
	b.WriteString("n,text\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "%d,%s\n", r.N, r.Text)
	}
	return b.String()
}

func TestOutputOfOneFile(t *testing.T) {
	for _, n := range []int{0, 5, 100} {
		got := sameFiles(t, "out.csv", func(b *engine.Builder, path string) {
			WriteCSV(FromSlice(b, lineRows(n)), path, CSVWriteOptions{})
		})
		require.Equal(t, map[string]string{"out.csv": linesCSV(lineRows(n))}, got)
	}
}

func TestOutputPerShard(t *testing.T) {
	rows := lineRows(21)
	want := map[string]string{"out/": ""}
	for s := range testShards {
		var here []lineRow
		for i, r := range rows {
			if place(i, len(rows)) == s {
				here = append(here, r)
			}
		}
		want[fmt.Sprintf("out/part-%05d.csv", s)] = linesCSV(here)
	}
	got := sameFiles(t, "out", func(b *engine.Builder, path string) {
		WriteCSV(FromSlice(b, rows), path, CSVWriteOptions{PerShard: true})
	})
	require.Equal(t, want, got)
	got = sameFiles(t, "out", func(b *engine.Builder, path string) {
		WriteCSV(FromSlice(b, lineRows(0)), path, CSVWriteOptions{PerShard: true})
	})
	require.Len(t, got, testShards+1)
	require.Equal(t, "n,text\n", got["out/part-00007.csv"])
}

// writeLines writes n rows to a path.
func writeLines(n int, path string, o CSVWriteOptions) func(b *engine.Builder) {
	return func(b *engine.Builder) { WriteCSV(FromSlice(b, lineRows(n)), path, o) }
}

func TestOutputRefused(t *testing.T) {
	dir := writeFiles(t, map[string]string{"old.csv": "old", "full/part-00000.csv": "old", "other/part-1": "x", "other/mine.txt": "precious"})
	require.NoError(t, os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "dangling")))
	before := tree(t, filepath.Join(dir, "full"))
	replace := engine.IfExists(engine.Replace)
	shards := CSVWriteOptions{PerShard: true}
	for _, c := range []struct {
		path  string
		o     CSVWriteOptions
		opt   engine.Option
		words string
	}{
		{"old.csv", CSVWriteOptions{}, nil, "old.csv exists: choose another path, or replace it with --if-exists replace"},
		{"no/such/x.csv", CSVWriteOptions{}, nil, "the directory " + filepath.Join(dir, "no/such") + " does not exist; make it first"},
		{"old.csv/x.csv", CSVWriteOptions{}, replace, "old.csv is not a directory"},
		{"old.csv/x/y.csv", CSVWriteOptions{}, replace, "not a directory"},
		{"full", CSVWriteOptions{}, nil, "full is a directory; give the path of a file"},
		{"full", CSVWriteOptions{}, replace, "full is a directory; give the path of a file"},
		{"full", shards, nil, "full exists: choose another path"},
		{"old.csv", shards, replace, "old.csv is a file, and one file per shard needs a directory"},
		{"other", shards, replace, "it holds more than the files of an output, such as mine.txt"},
		{"dangling", CSVWriteOptions{}, replace, "is a link that leads nowhere"},
	} {
		ran := false
		err := runSink(t, func(b *engine.Builder) {
			rows := Map(FromSlice(b, lineRows(3)), func(r lineRow) lineRow { ran = true; return r })
			WriteCSV(rows, filepath.Join(dir, c.path), c.o)
		}, c.opt)
		require.ErrorContains(t, err, c.words)
		require.ErrorContains(t, err, "operator WriteCSV (output_test.go:")
		require.False(t, ran, "no row may be processed for an output that cannot be written")
	}
	err := runSink(t, writeLines(3, os.DevNull, CSVWriteOptions{}), replace)
	require.Error(t, err) // the text of the error depends on which call fails first in /dev
	require.Equal(t, before, tree(t, filepath.Join(dir, "full")))
	require.Equal(t, map[string]string{
		"old.csv": "old", "full/": "", "full/part-00000.csv": "old", "other/": "", "other/part-1": "x", "other/mine.txt": "precious",
	}, without(tree2(t, dir), "dangling"))
}

// tree2 removes the link named dangling and then returns the same as tree.
func tree2(t *testing.T, dir string) map[string]string {
	require.NoError(t, os.Remove(filepath.Join(dir, "dangling")))
	return tree(t, dir)
}

func without(files map[string]string, name string) map[string]string {
	delete(files, name)
	return files
}

func TestOutputMisuse(t *testing.T) {
	dir := t.TempDir()
	sink := func(f func(b *engine.Builder, d *engine.Dataset)) func(*engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			f(b, FromSlice(b, lineRows(3)))
			return nil
		}
	}
	requireMisuse(t, sink(func(b *engine.Builder, d *engine.Dataset) {
		WriteCSV(d, filepath.Join(dir, "a.csv"), CSVWriteOptions{})
		WriteCSV(d, filepath.Join(dir, "b", "..", "a.csv"), CSVWriteOptions{NoHeader: true})
	}), "output_test.go:", "WriteCSV: the output path "+filepath.Join(dir, "a.csv")+" is taken by the sink added at output_test.go:")
	requireMisuse(t, sink(func(b *engine.Builder, d *engine.Dataset) { WriteCSV(d, "", CSVWriteOptions{}) }), "the output path is empty")
	requireMisuse(t, sink(func(b *engine.Builder, d *engine.Dataset) { WriteCSV(nil, "x.csv", CSVWriteOptions{}) }), "dataset is nil")
	requireMisuse(t, sink(func(b *engine.Builder, d *engine.Dataset) { WriteCSV(d, "x.csv", CSVWriteOptions{Delimiter: '"'}) }), "cannot be the delimiter")
	requireMisuse(t, sink(func(b *engine.Builder, d *engine.Dataset) { WriteCSV(d, "x.csv", CSVWriteOptions{Null: "a,b"}) }), "spelling")
	requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset {
		WriteCSV(d, "x.csv", CSVWriteOptions{})
		return nil
	})
	require.Empty(t, tree(t, dir))

	// If two sinks have the same path with different spellings, this must be found when the job
	// begins.
	err := runSink(t, func(b *engine.Builder) {
		d := FromSlice(b, lineRows(3))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "real"), 0o700))
		_ = os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link"))
		WriteCSV(d, filepath.Join(dir, "real", "a.csv"), CSVWriteOptions{})
		WriteCSV(d, filepath.Join(dir, "link", "a.csv"), CSVWriteOptions{})
	})
	require.ErrorContains(t, err, "another run, or another sink of this job, is writing it just now")
	require.Empty(t, tree(t, filepath.Join(dir, "real")))
}

func TestOutputReplaced(t *testing.T) {
	for _, o := range []CSVWriteOptions{{}, {PerShard: true}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		require.NoError(t, runSink(t, writeLines(3, path, o)))
		if !o.PerShard {
			require.NoError(t, os.Chmod(path, 0o640))
		}
		require.NoError(t, runSink(t, writeLines(30, path, o), engine.IfExists(engine.Replace)))
		fresh := t.TempDir()
		require.NoError(t, runSink(t, writeLines(30, filepath.Join(fresh, "out"), o)))
		require.Equal(t, tree(t, fresh), tree(t, dir))
		if info, err := os.Stat(path); !o.PerShard {
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
		}
	}
	// An empty directory must not count as an output, and symbolic links must be followed.
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	require.NoError(t, runSink(t, writeLines(3, filepath.Join(dir, "d"), CSVWriteOptions{PerShard: true})))
	require.NoError(t, os.Symlink(filepath.Join(dir, "d", "part-00000.csv"), filepath.Join(dir, "link")))
	require.NoError(t, runSink(t, writeLines(2, filepath.Join(dir, "link"), CSVWriteOptions{}), engine.IfExists(engine.Replace)))
	require.Equal(t, linesCSV(lineRows(2)), tree(t, dir)["d/part-00000.csv"])
}

func TestOutputOverItsOwnInput(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		dir := writeFiles(t, map[string]string{"x.csv": linesCSV(lineRows(50))})
		path := filepath.Join(dir, "x.csv")
		require.NoError(t, runSink(t, func(b *engine.Builder) {
			rows := Map(ReadCSV(b, path, CSVOptions{Header: true}), func(r lineRow) lineRow {
				r.N++
				return r
			})
			WriteCSV(rows, path, CSVWriteOptions{})
		}, append(opts, engine.IfExists(engine.Replace))...))
		want := lineRows(50)
		for i := range want {
			want[i].N++
		}
		require.Equal(t, map[string]string{"x.csv": linesCSV(want)}, tree(t, dir))
	})
}

// TestOutputOfAFailedJob requires that a failed job leaves no files, and that the old output
// stays.
func TestOutputOfAFailedJob(t *testing.T) {
	for _, o := range []CSVWriteOptions{{}, {PerShard: true}} {
		for _, s := range []setting{{1, 4, 0}, {3, 4, 0}, {3, 4, 2}} {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			job := func(bad int64) func(b *engine.Builder) {
				return func(b *engine.Builder) {
					rows := MapErr(FromSlice(b, lineRows(100)), func(r lineRow) (lineRow, error) {
						if r.N == bad {
							return r, errors.New("bad row")
						}
						return r, nil
					})
					WriteCSV(rows, path, o)
				}
			}
			require.ErrorContains(t, runSink(t, job(60), s.options()...), "bad row")
			require.Empty(t, tree(t, dir))
			require.NoError(t, runSink(t, job(-1), s.options()...))
			before := tree(t, dir)
			require.ErrorContains(t, runSink(t, job(99), append(s.options(), engine.IfExists(engine.Replace))...), "bad row")
			require.Equal(t, before, tree(t, dir))
		}
	}
}

// TestOutputOfACancelledJob requires the same as TestOutputOfAFailedJob if a function of the
// job cancels the run.
func TestOutputOfACancelledJob(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := engine.Run(ctx, engine.Anonymous(func(b *engine.Builder) error {
		WriteCSV(Map(FromSlice(b, lineRows(1000)), func(r lineRow) lineRow {
			if r.N == 500 {
				cancel()
			}
			return r
		}), filepath.Join(dir, "out.csv"), CSVWriteOptions{})
		return nil
	}), struct{}{}, engine.BatchRows(1))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, tree(t, dir))
}

// failing is a format whose writers fail at some point, as on a full disk.
type failing struct {
	close bool
}

var errNoSpace = errors.New("no space left on device")

func (f failing) Write(engine.Batch) error {
	if f.close {
		return nil
	}
	return errNoSpace
}

func (f failing) Close() error {
	if f.close {
		return errNoSpace
	}
	return nil
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	for name, f := range map[string]FileFormat{
		"rows":  {Rows: func(io.Writer) RowWriter { return failing{} }},
		"close": {Rows: func(io.Writer) RowWriter { return failing{close: true} }},
		"head": {Rows: func(w io.Writer) RowWriter { return recordWriter{textfile.NewWriter(w, textfile.Form{Delimiter: ','})} }, Head: func(io.Writer) error {
			return errNoSpace
		}},
		"file":      {File: func(io.Writer, engine.Schema, columnar.Allocator) (RowWriter, error) { return nil, errNoSpace }},
		"file rows": {File: func(io.Writer, engine.Schema, columnar.Allocator) (RowWriter, error) { return failing{}, nil }},
		"file close": {File: func(io.Writer, engine.Schema, columnar.Allocator) (RowWriter, error) {
			return failing{close: true}, nil
		}},
	} {
		for _, perShard := range []bool{false, true} {
			f.Op, f.Extension = "WriteTest", "x"
			dir := t.TempDir()
			err := runSink(t, func(b *engine.Builder) {
				WriteFiles(FromSlice(b, lineRows(20)), filepath.Join(dir, "out"), perShard, f)
			}, engine.Parallelism(3))
			require.ErrorIs(t, err, errNoSpace, name)
			require.ErrorContains(t, err, "cannot write output "+filepath.Join(dir, "out"))
			require.ErrorContains(t, err, "operator WriteTest (output_test.go:")
			require.Empty(t, tree(t, dir), name)
		}
	}
}

func TestFormatsThatMakeNothing(t *testing.T) {
	for want, f := range map[string]FileFormat{
		"FileFormat.Rows returned nil": {Rows: func(io.Writer) RowWriter { return nil }},
		"FileFormat.File returned nil": {File: func(io.Writer, engine.Schema, columnar.Allocator) (RowWriter, error) { return nil, nil }},
	} {
		f.Op, f.Extension = "WriteTest", "x"
		path := filepath.Join(t.TempDir(), "out")
		err := runSink(t, func(b *engine.Builder) { WriteFiles(FromSlice(b, lineRows(20)), path, true, f) })
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "panic")
	}
}

func TestOutputMadeByAnotherMeanwhile(t *testing.T) {
	for _, perShard := range []bool{false, true} {
		dir := t.TempDir()
		path, theirs := filepath.Join(dir, "out"), filepath.Join(dir, "out")
		if perShard {
			theirs = filepath.Join(path, "theirs")
		}
		err := runSink(t, func(b *engine.Builder) {
			WriteCSV(Map(FromSlice(b, lineRows(1)), func(r lineRow) lineRow {
				require.NoError(t, os.MkdirAll(filepath.Dir(theirs), 0o700))
				require.NoError(t, os.WriteFile(theirs, []byte("theirs"), 0o600))
				return r
			}), path, CSVWriteOptions{PerShard: perShard})
		})
		require.ErrorContains(t, err, "while the job ran")
		left := tree(t, dir)
		delete(left, "out/")
		require.Len(t, left, 1)
		require.Equal(t, "theirs", left[theirs[len(dir)+1:]])
	}
}

// TestOutputAfterAKilledRun creates the files that a killed run leaves: its staging directory
// and its lock file, which is no longer locked. It requires that the next run removes them.
func TestOutputAfterAKilledRun(t *testing.T) {
	left := map[string]string{".superstep.lock-out": "", ".superstep-out/parts/0": "half", ".superstep-out/whole": "half"}
	dir := writeFiles(t, left)
	require.NoError(t, runSink(t, writeLines(3, filepath.Join(dir, "out"), CSVWriteOptions{})))
	require.Equal(t, map[string]string{"out": linesCSV(lineRows(3))}, tree(t, dir))

	// The run was killed after it had moved the old directory away and before it moved the new
	// directory to the target. The old directory must be moved back, and must count as an
	// existing output.
	dir = writeFiles(t, map[string]string{".superstep-out/old/part-00000.csv": "old", ".superstep-out/parts/part-00000.csv": "new"})
	err := runSink(t, writeLines(3, filepath.Join(dir, "out"), CSVWriteOptions{PerShard: true}))
	require.ErrorContains(t, err, "exists")
	require.Equal(t, map[string]string{"out/": "", "out/part-00000.csv": "old"}, tree(t, dir))

	// The files of a run that is still running must not be touched.
	lock, err := lockStaging(filepath.Join(dir, ".superstep-busy"), filelock.Owner{}, false)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".superstep-busy"), 0o700))
	err = runSink(t, writeLines(3, filepath.Join(dir, "busy"), CSVWriteOptions{}))
	require.ErrorContains(t, err, "is writing it just now")
	require.DirExists(t, filepath.Join(dir, ".superstep-busy"))
	require.NoError(t, lock.Release(os.Remove))
}

func TestOutputWithALongName(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("x", 250)
	require.NoError(t, runSink(t, writeLines(1, filepath.Join(dir, name), CSVWriteOptions{})))
	require.Len(t, tree(t, dir), 1)
	err := runSink(t, writeLines(1, filepath.Join(dir, name+"yyyyyyyyyyyyy"), CSVWriteOptions{}))
	require.ErrorContains(t, err, "file name too long")
	require.Len(t, tree(t, dir), 1)
}

func TestRenameFree(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a": "new", "old/a": "old"})
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, renameFree(in("a"), in("b")))
	require.ErrorIs(t, renameFree(in("b"), in("old/a")), os.ErrExist)
}
