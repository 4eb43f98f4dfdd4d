package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/parquet"
)

// shrinkingFS is a file system whose files end early once size is set. Sequential reads, which
// are used to compute the hash of a file, still get the whole file. So only the reading of rows
// can detect that a file is shorter.
type shrinkingFS struct {
	fs.FS
	size atomic.Int64 // size of files as other reads see it; 0 means the real size
}

func (s *shrinkingFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &shrinkingFile{f, s}, nil
}

type shrinkingFile struct {
	fs.File
	of *shrinkingFS
}

func (f *shrinkingFile) ReadAt(b []byte, offset int64) (int, error) {
	size := f.of.size.Load()
	if size == 0 || offset+int64(len(b)) <= size {
		return f.File.(io.ReaderAt).ReadAt(b, offset)
	}
	n, err := f.File.(io.ReaderAt).ReadAt(b[:max(0, size-offset)], offset)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// TestShrinkingInput makes a file shorter while it is read. The run must either give all rows,
// if all were read before the file became shorter, or end with an error that names the file.
func TestShrinkingInput(t *testing.T) {
	dir := t.TempDir()
	const rows = 20_000
	type row struct {
		K int64   `column:"k"`
		X float64 `column:"x"`
	}
	_, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		all := make([]row, rows)
		for i := range all {
			all[i] = row{int64(i), float64(i) / 3}
		}
		d := operators.FromSlice(b, all)
		operators.WriteCSV(d, filepath.Join(dir, "rows.csv"), operators.CSVWriteOptions{})
		parquet.Write(d, filepath.Join(dir, "rows.parquet"), parquet.WriteOptions{})
		return nil
	}), struct{}{}, engine.BatchRows(128))
	require.NoError(t, err)
	codec, err := batch.NewCodec[row]()
	require.NoError(t, err)
	var many bytes.Buffer
	w := batch.NewStreamWriter(&many, codec.Schema(), memory.DefaultAllocator)
	for i := range rows / 500 {
		rec, err := codec.Record(memory.DefaultAllocator, make([]row, 500))
		require.NoError(t, err, i)
		require.NoError(t, w.Write(rec))
		rec.Release()
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.arrow"), many.Bytes(), 0o600))
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "%d 1:%d 3:2.5\n", i%2, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.libsvm"), []byte(text.String()), 0o600))

	for name, read := range map[string]func(b *engine.Builder, fsys fs.FS) *engine.Dataset{
		"rows.csv": func(b *engine.Builder, fsys fs.FS) *engine.Dataset {
			return operators.ReadCSV(b, "rows.csv", operators.CSVOptions{FS: fsys})
		},
		"rows.libsvm": func(b *engine.Builder, fsys fs.FS) *engine.Dataset {
			return operators.ReadLibSVM(b, "rows.libsvm", operators.LibSVMOptions{FS: fsys, Size: 4})
		},
		"rows.arrow": func(b *engine.Builder, fsys fs.FS) *engine.Dataset {
			return operators.ReadArrow(b, "rows.arrow", operators.ArrowOptions{FS: fsys})
		},
		"rows.parquet": func(b *engine.Builder, fsys fs.FS) *engine.Dataset {
			return parquet.Read(b, "rows.parquet", parquet.ReadOptions{FS: fsys})
		},
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		failed := 0
		for tenth := int64(1); tenth < 10; tenth += 2 {
			fsys := &shrinkingFS{FS: os.DirFS(dir)}
			var got atomic.Int64
			_, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
				d := read(b, fsys)
				engine.Collect(operators.Count(operators.MapBatch(d, d.Schema(), func(_ *engine.Context, in engine.Batch) (engine.Batch, error) {
					rows := arrowrows.Record(in)
					fsys.size.Store(info.Size() * tenth / 10)
					got.Add(rows.NumRows())
					rows.Retain()
					return arrowrows.Batch(rows), nil
				})), "n")
				return nil
			}), struct{}{}, engine.Shards(4), engine.Parallelism(1), engine.BatchRows(16))
			if err != nil {
				require.ErrorContains(t, err, name)
				failed++
				continue
			}
			require.EqualValues(t, rows, got.Load(), "%s, cut at %d tenths: a run without an error must give all rows", name, tenth)
		}
		if name != "rows.parquet" { // a Parquet column of this size is read in one piece, so it can be complete before the file is cut
			require.Positive(t, failed, "%s must have been cut while it was read, or the test proves nothing", name)
		}
	}
}
