package operators_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestInputsAreOfTheirMachine requires an engine.LocalPathError, which gives advice about other
// machines, if a file has changed since the job was built. Embedded files are the same on every
// machine, so the error about an embedded file must not be a LocalPathError.
func TestInputsAreOfTheirMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	for name, spoil := range map[string]func() error{
		"gone":    func() error { return os.Remove(path) },
		"changed": func() error { return os.WriteFile(path, []byte("x\n3\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte("x\n1\n2\n"), 0o600))
			first := true
			_, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
				rows := operators.ReadCSV(b, path, operators.CSVOptions{Header: true})
				engine.Collect(rows, "rows")
				if !first { // the second build, after which the job runs
					return spoil()
				}
				first = false
				return nil
			}), struct{}{})
			var local *engine.LocalPathError
			require.True(t, errors.As(err, &local), "%v", err)
			require.Equal(t, path, local.Path)
			require.ErrorContains(t, err, "input "+path+" changed between building and reading: it had 6 bytes")
		})
	}
	files := fstest.MapFS{"rows.csv": {Data: []byte("x\n1\n")}}
	_, err := engine.Compile(engine.Anonymous(func(b *engine.Builder) error {
		in, err := operators.ResolveInput(b, files, "rows.csv")
		require.NoError(t, err)
		require.NoError(t, in.Verify())
		files["rows.csv"].Data = []byte("x\n2\n")
		err = in.Verify()
		require.Error(t, err)
		require.False(t, errors.As(err, new(*engine.LocalPathError)))
		return errors.New("enough")
	}), struct{}{})
	require.ErrorContains(t, err, "enough")
}
