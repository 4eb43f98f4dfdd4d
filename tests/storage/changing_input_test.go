package storage

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
)

// spoolHook is a file system that calls the function then when a temporary file is created.
type spoolHook struct {
	disk.FS
	then func()
}

func (s spoolHook) CreateTemp(dir, pattern string) (disk.File, error) {
	s.then()
	return s.FS.CreateTemp(dir, pattern)
}

// TestChangingInput makes an input file shorter after its hash was verified and before it is
// read. The inputs are compressed, or are converted to UTF-8. The run must end with an error,
// even if the shorter input is valid.
func TestChangingInput(t *testing.T) {
	lines := strings.Repeat("1 1:2\n", 1000)
	member := func() []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write([]byte(lines))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}()
	packed := append(bytes.Clone(member), member...)
	csv := func(o operators.CSVOptions) func(b *engine.Builder, path string) *engine.Dataset {
		return func(b *engine.Builder, path string) *engine.Dataset { return operators.ReadCSV(b, path, o) }
	}
	for name, c := range map[string]struct {
		data      []byte
		rows, cut int
		read      func(b *engine.Builder, path string) *engine.Dataset
	}{
		"rows.csv.gz": {packed, 2000, len(member), csv(operators.CSVOptions{})},
		"latin1.csv":  {[]byte(lines), 1000, 600, csv(operators.CSVOptions{Encoding: "latin1"})},
		"rows.libsvm.gz": {packed, 2000, len(member), func(b *engine.Builder, path string) *engine.Dataset {
			return operators.ReadLibSVM(b, path, operators.LibSVMOptions{Size: 1})
		}},
	} {
		path := filepath.Join(t.TempDir(), name)
		run := func(then func()) (rows int64, err error) {
			require.NoError(t, os.WriteFile(path, c.data, 0o600))
			result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
				engine.Collect(operators.Count(c.read(b, path)), "n")
				return nil
			}), struct{}{}, engine.Shards(4), engine.Disk(spoolHook{disk.OS(), then}))
			if err != nil {
				return 0, err
			}
			defer result.Release()
			counts, err := engine.Rows[struct{ Count int64 }](result, "n")
			require.NoError(t, err)
			return counts[0].Count, nil
		}
		rows, err := run(func() {})
		require.NoError(t, err, name)
		require.EqualValues(t, c.rows, rows, name)
		_, err = run(func() { require.NoError(t, os.Truncate(path, int64(c.cut))) })
		require.ErrorContains(t, err, name+" changed between building and reading", name)
	}
}
