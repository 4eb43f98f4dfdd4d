package builtin

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelsThatWorkersRead requires that a worker reads the file of a model that is too large
// for the arguments of a job, and that it refuses a file that differs from the file that the
// command has read.
func TestModelsThatWorkersRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.json")
	small, err := os.ReadFile("../../../algorithms/kmeans/testdata/model_v2.json")
	require.NoError(t, err)
	large := append(small, bytes.Repeat([]byte(" "), maxCarried)...)
	require.NoError(t, os.WriteFile(path, large, 0o600))
	m := readModel(path)
	require.Empty(t, m.Problem)
	require.Nil(t, m.File)
	made, err := m.model()
	require.NoError(t, err)
	require.Equal(t, "kmeans", made.Kind())

	require.NoError(t, os.WriteFile(path, append(large, '\n'), 0o600))
	_, err = m.model()
	require.ErrorContains(t, err, "another file than where the command runs")
	require.NoError(t, os.Remove(path))
	_, err = m.model()
	require.ErrorContains(t, err, "every worker reads it")
	require.NotEmpty(t, readModel(path).Problem)

	require.NoError(t, os.WriteFile(path, small, 0o600))
	m = readModel(path)
	require.NoError(t, os.Remove(path))
	_, err = m.model()
	require.NoError(t, err, "the arguments must have the content of a small model, so that no file is needed")
}
