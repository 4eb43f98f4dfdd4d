package parquet

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// FuzzFiles changes real files. Reading them must never panic, and must give the same rows, or
// an error, with one subtask and with eight.
func FuzzFiles(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.parquet"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(listsOf1000(f, "vector", false))
	f.Fuzz(func(t *testing.T, data []byte) {
		if meta, err := openedAs(data); err == nil && meta.NumRows() > 1<<16 {
			return
		}
		whole, failed := rowsAs(t, data, 1, 1)
		parts, err := rowsAs(t, data, 8, 128)
		require.Equal(t, failed == nil, err == nil, "%v, %v", failed, err)
		require.Equal(t, whole, parts)
	})
}

// rowsAs reads the supported columns of a file at the given parallelism and returns the rows.
func rowsAs(t *testing.T, data []byte, parallelism, shards int) (rows []string, err error) {
	result, err := run(t, memory.NewGoAllocator(), func(b *engine.Builder) {
		files := fstest.MapFS{"x.parquet": {Data: data}}
		engine.Collect(Read(b, "x.parquet", ReadOptions{FS: files, LeaveOut: func(string, string) {}}), "rows")
	}, engine.Parallelism(parallelism), engine.Shards(shards))
	if err != nil {
		require.NotContains(t, err.Error(), "runtime error")
		return nil, err
	}
	defer result.Release()
	recs, err := arrowbridge.Records(result, "rows")
	require.NoError(t, err)
	for _, rec := range recs {
		rows = append(rows, batchtest.Rows(rec)...)
	}
	return rows, nil
}
