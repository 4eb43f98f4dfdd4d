package textfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"
)

// TestPlaces requires that Place returns the line of every row of every shard, in text with a
// byte order mark, a header, comments, empty lines, both line ends, and newlines in quotes.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")}
	var want []string // by row
	for k, path := range paths {
		text, line := "\xef\xbb\xbfname,number\r\n", 2
		for i := range 40 {
			switch i % 4 {
			case 1:
				text, line = text+"# a comment\n\n", line+2
			case 2:
				want = append(want, fmt.Sprintf("%s:%d", path, line))
				text, line = text+fmt.Sprintf("\"two\nlines\",%d\r\n", i), line+2
				continue
			}
			want = append(want, fmt.Sprintf("%s:%d", path, line))
			text, line = text+fmt.Sprintf("x%d,%d\n", k, i), line+1
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	ctx := context.Background()
	files, err := Resolve(dir)
	require.NoError(t, err)
	d := Dialect{Header: true, Comment: '#'}
	layout, err := InferCSV(ctx, files, d, InferOptions{})
	require.NoError(t, err)
	for _, shards := range []int{1, 3, 16} {
		r, err := OpenCSV(ctx, files, d, layout, Config{Shards: shards})
		require.NoError(t, err)
		require.Equal(t, want, placesOf(t, shards, r.ReadShard, r.Place))
		_, err = r.Place(ctx, 0, 1000)
		require.ErrorContains(t, err, "shard 0 has")
		require.NoError(t, r.Close())
	}
}

// TestPlacesOfLibSVM requires that lines without a row are counted as lines, but not as rows.
func TestPlacesOfLibSVM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.libsvm")
	require.NoError(t, os.WriteFile(path, []byte("1 1:2\n\n # nothing\n0 2:3\r\n-1\n"), 0o600))
	files, err := Resolve(path)
	require.NoError(t, err)
	r, err := OpenLibSVM(context.Background(), files, LibSVMLayout{Size: 2}, Config{Shards: 2})
	require.NoError(t, err)
	require.Equal(t, []string{path + ":1", path + ":4", path + ":5"}, placesOf(t, 2, r.ReadShard, r.Place))
	require.NoError(t, r.Close())
}

// placesOf returns the positions of all rows, and requires that place returns an error for the
// row after the last.
func placesOf(t *testing.T, shards int, read func(context.Context, int, int, func(arrow.Record) error) error, place func(context.Context, int, int64) (string, error)) []string {
	t.Helper()
	var places []string
	for shard := range shards {
		rows := int64(0)
		require.NoError(t, read(context.Background(), shard, 5, func(rec arrow.Record) error {
			rows += rec.NumRows()
			return nil
		}))
		for i := range rows {
			p, err := place(context.Background(), shard, i)
			require.NoError(t, err)
			places = append(places, strings.TrimSpace(p))
		}
		_, err := place(context.Background(), shard, rows)
		require.ErrorContains(t, err, fmt.Sprintf("shard %d has %d rows", shard, rows))
	}
	return places
}
