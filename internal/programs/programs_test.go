package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestMain lets the test binary act as a program that prints the hash and the name of its own
// executable.
func TestMain(m *testing.M) {
	if os.Getenv("SUPERSTEP_TEST_SELF") != "" {
		os.Stdout.WriteString("ready\n")
		_, _ = io.ReadAll(os.Stdin)
		p, err := Self()
		if err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		os.Stdout.WriteString(p.Hash + " " + p.Name)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestSelf(t *testing.T) {
	p, err := Self()
	require.NoError(t, err)
	name, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, hashOf(data), p.Hash)
	require.Equal(t, int64(len(data)), p.Size)
	require.Equal(t, name, p.Name)
	require.Equal(t, wire.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, p.Platform)
	require.NoError(t, p.Check())
	require.Equal(t, p.Hash[:12], Short(p.Hash))
	require.Empty(t, Short(""))
}

// TestReplaced replaces the file of a program while it runs. On Linux, Self must return the hash of
// the executable that runs.
func TestReplaced(t *testing.T) {
	name, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, data, 0o700))
	cmd := proctest.Command(path)
	cmd.Env = append(os.Environ(), "SUPERSTEP_TEST_SELF=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ready := make([]byte, 6)
	_, err = io.ReadFull(out, ready)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, append(data, "another build"...), 0o700))
	require.NoError(t, in.Close())
	said, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	if runtime.GOOS == "linux" {
		require.Contains(t, string(said), hashOf(data)+" ")
	}
}

// TestCheck requires that Check accepts a file with the same bytes and another modification time,
// and refuses a file with other bytes and a missing file.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	p, err := Of(path, wire.Platform{OS: "linux", Arch: "amd64"})
	require.NoError(t, err)
	require.Equal(t, hashOf([]byte("one")), p.Hash)
	require.NoError(t, p.Check())
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, later, later))
	require.NoError(t, p.Check())
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o600))
	require.NoError(t, os.Chtimes(path, later.Add(time.Hour), later.Add(time.Hour)))
	require.ErrorContains(t, p.Check(), "was replaced or changed since this process started: restart it")
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, p.Check(), os.ErrNotExist)
	_, err = Of(path, wire.Platform{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCheckHash(t *testing.T) {
	good := hashOf([]byte("one"))
	require.NoError(t, CheckHash(good))
	for _, bad := range []string{"", good[1:], good + "0", strings.ToUpper(good), "../../" + good[6:], "g" + good[1:]} {
		require.ErrorContains(t, CheckHash(bad), "is not a SHA-256 of 64 lower-case hexadecimal digits", bad)
	}
}
