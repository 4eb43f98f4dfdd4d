package wholefile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wholefile"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	holds := func(want string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
		files, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, files, 1, "no temporary file may be left")
	}
	require.NoError(t, wholefile.Write(path, []byte("first, and long")))
	holds("first, and long", 0o644)
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, wholefile.Write(path, []byte("second")))
	holds("second", 0o640)
	require.NoError(t, wholefile.Write(path, nil))
	holds("", 0o640)
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	require.ErrorIs(t, wholefile.Write(filepath.Join(dir, "none", "f"), nil), os.ErrNotExist)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "taken", "inside"), 0o755))
	require.Error(t, wholefile.Write(filepath.Join(dir, "taken"), []byte("x")))
	full := errors.New("disk full")
	err := wholefile.WriteFrom(filepath.Join(dir, "f"), failing{full})
	require.ErrorIs(t, err, full)
	require.EqualError(t, err, "write "+filepath.Join(dir, "f")+": disk full")
	require.ErrorContains(t, wholefile.Write(filepath.Join(dir, "none", "f"), nil), "write "+filepath.Join(dir, "none", "f")+": no such")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "no temporary file may be left")
}

// failing is an io.WriterTo that writes some bytes and then returns err.
type failing struct{ err error }

func (f failing) WriteTo(w io.Writer) (int64, error) {
	n, _ := io.WriteString(w, "half")
	return int64(n), f.err
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	got, err := wholefile.Read(path, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(got))
	_, err = wholefile.Read(path, 4)
	require.EqualError(t, err, "read "+path+": it has 5 bytes: the limit is 4")
	_, err = wholefile.Read(dir, 5)
	require.ErrorContains(t, err, "it is a directory")
	_, err = wholefile.Read(filepath.Join(dir, "none"), 5)
	require.ErrorIs(t, err, os.ErrNotExist)
}
