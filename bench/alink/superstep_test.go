//go:build !race

// This file is not built with the race detector, which would find nothing here: all training
// runs in processes of the command superstep, which is built without the race detector.

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOurs trains all problems on few rows with the command superstep, which it builds from the
// source tree. It requires useful models, and the same quality with one thread as with two.
func TestOurs(t *testing.T) {
	o := options{Problems: []string{"kmeans", "logistic", "gbdt"}, Rows: 2000, Rounds: 1, Threads: []int{1, 2}, Seed: 1, Dir: t.TempDir(), JSON: true}
	var out bytes.Buffer
	require.NoError(t, compare(&o, &out, io.Discard))
	var tables []struct{ Lines []line }
	require.NoError(t, json.Unmarshal(out.Bytes(), &tables))
	require.Len(t, tables, 3)
	for i, table := range tables {
		require.Len(t, table.Lines, 2)
		one, two := table.Lines[0], table.Lines[1]
		require.Equal(t, one.Quality, two.Quality)
		require.Positive(t, one.Median.Wall)
		if i > 0 {
			require.Less(t, one.Quality[0], 0.67) // log-loss
			require.Greater(t, one.Quality[1], 0.65)
		}
	}
}
