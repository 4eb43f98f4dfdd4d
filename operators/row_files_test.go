package operators

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
)

// numbersFile is a RowFile in which each row has its index as its value.
type numbersFile struct {
	t     *testing.T
	n, at int64
}

func (f *numbersFile) Schema() engine.Schema {
	schema, err := columnar.NewSchema(engine.Column{Name: "i", Type: "int64"})
	require.NoError(f.t, err)
	return schema
}

func (f *numbersFile) NumRows() int64 { return f.n }

func (f *numbersFile) Rows(row int64, _ []int, _ columnar.Allocator) (RowCursor, error) {
	return &numbersFile{f.t, f.n, row}, nil
}

func (f *numbersFile) Next(int) (engine.Batch, error) {
	if f.at == f.n {
		return engine.Batch{}, io.EOF
	}
	f.at++
	return columnar.NewBatch(nil, f.Schema(), []int64{1})
}

func (f *numbersFile) Close() error { return nil }

// TestRowFilesOfOtherRows requires that the run fails before any row is read if the number of
// rows of a file has changed since the job was built.
func TestRowFilesOfOtherRows(t *testing.T) {
	path := filepath.Join(writeFiles(t, map[string]string{"x.rows": "x"}), "x.rows")
	for _, now := range []int64{4, 6} {
		opened := 0
		format := RowFormat{Op: "ReadNumbers", Open: func(io.ReaderAt, int64) (RowFile, error) {
			if opened++; opened > 1 {
				return &numbersFile{t, now, 0}, nil
			}
			return &numbersFile{t, 5, 0}, nil
		}}
		read := 0
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return Map(ReadRowFiles(b, nil, path, format), func(i struct{ I int64 }) int64 {
				read++
				return i.I
			})
		}, engine.Parallelism(1))
		require.ErrorContains(t, err, "x.rows had 5 rows when the job was built, and has "+fmt.Sprint(now)+" now")
		require.Zero(t, read)
	}
}
