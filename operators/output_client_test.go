package operators_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestWriteAtTheClient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	job := engine.Define("writes", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, []struct{ N int64 }{{1}, {2}, {3}})
		operators.WriteCSV(rows, engine.ClientPath+path, operators.CSVWriteOptions{})
		return nil
	})
	result, err := engine.Run(t.Context(), job, struct{}{})
	require.NoError(t, err)
	result.Release()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "n\n1\n2\n3\n", string(data))
	_, err = engine.Run(t.Context(), job, struct{}{})
	require.ErrorContains(t, err, "output "+path+" exists")
}
