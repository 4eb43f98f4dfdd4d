package operators

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// TestErrorsTellThePlaceOfRows requires that an error about a row names the row's file and line
// if all earlier operators keep the rows of the shard. Otherwise the line is unknown, and the
// error must have the row's index within the shard.
func TestErrorsTellThePlaceOfRows(t *testing.T) {
	files := fstest.MapFS{"d/a.csv": {Data: []byte("x,y\n1,2\n3,4\n")}, "d/b.csv": {Data: []byte("x,y\n\n5,6\n,8\n")}}
	read := func(b *engine.Builder) *engine.Dataset { return ReadCSV(b, "d", CSVOptions{Header: true, FS: files}) }
	for _, shards := range []int{1, 8} {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return Vectorize(Select(Rename(read(b), "x", "z"), "z", "y"), "v", "y", "z")
		}, engine.Shards(shards))
		require.ErrorContains(t, err, `: d/b.csv:4: column "z" is null`)
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return Vectorize(Filter(read(b), func(r struct{ Y int64 }) bool { return r.Y > 2 }), "v", "x")
		}, engine.Shards(shards))
		require.ErrorContains(t, err, `of the shard: column "x" is null`)
		require.NotContains(t, err.Error(), ".csv")
		err = runError(t, func(b *engine.Builder) *engine.Dataset { return Vectorize(Rebalance(read(b)), "v", "x") }, engine.Shards(shards))
		require.NotContains(t, err.Error(), ".csv")
	}

	// The advice that a program passes to Advise must replace the advice of this package.
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		b.Advise(func(e *engine.RowError) string {
			require.Equal(t, engine.FillOrLeaveOut, e.Cure)
			return "try --fill"
		})
		return Vectorize(read(b), "v", "x")
	})
	require.ErrorContains(t, err, `d/b.csv:4: column "x" is null, which no component of a vector can be; try --fill`)

	// For file formats without lines, the error must have the row's number in the file.
	path := filepath.Join(t.TempDir(), "x.arrow")
	job := engine.Anonymous(func(b *engine.Builder) error {
		WriteArrow(read(b), path, ArrowWriteOptions{})
		return nil
	})
	_, err = engine.Run(t.Context(), job, struct{}{})
	require.NoError(t, err)
	err = runError(t, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(ReadArrow(b, path, ArrowOptions{}), "v", "x")
	})
	require.ErrorContains(t, err, path+`, row 4: column "x" is null`)
}
