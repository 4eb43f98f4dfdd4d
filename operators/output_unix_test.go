//go:build unix

package operators

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/proctest"
)

const fullDiskEnv = "SUPERSTEP_TEST_FULL_DISK"

// TestFullDisk writes in a process whose files cannot grow beyond a limit. In the first case a
// part exceeds the limit; in the second case only the file that is assembled from the parts
// exceeds it.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskEnv); dir != "" {
		writeToFullDisk(t, dir)
		return
	}
	for _, rows := range []int{50_000, 5_000} {
		for _, kind := range []string{"csv", "shards", "arrow"} {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600))
			cmd := proctest.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
			cmd.Env = append(os.Environ(), fullDiskEnv+"="+dir, "KIND="+kind, "ROWS="+strconv.Itoa(rows))
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.Contains(t, string(said), "PASS: TestFullDisk")
			require.Equal(t, map[string]string{"old": "old"}, tree(t, dir), "%s of %d rows", kind, rows)
		}
	}
}

// writeToFullDisk is the part of TestFullDisk that runs in a separate process.
func writeToFullDisk(t *testing.T, dir string) {
	signal.Ignore(unix.SIGXFSZ)
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 20_000, Max: old.Max}))
	rows, err := strconv.Atoi(os.Getenv("ROWS"))
	require.NoError(t, err)
	kind, path := os.Getenv("KIND"), filepath.Join(dir, "old")
	if kind == "shards" {
		rows, path = 50_000, filepath.Join(dir, "new")
	}
	err = runSink(t, func(b *engine.Builder) {
		d := FromSlice(b, lineRows(rows))
		if kind == "arrow" {
			WriteArrow(d, path, ArrowWriteOptions{})
		} else {
			WriteCSV(d, path, CSVWriteOptions{PerShard: kind == "shards"})
		}
	}, engine.Parallelism(3), engine.IfExists(engine.Replace))
	require.ErrorIs(t, err, unix.EFBIG)
	require.ErrorContains(t, err, "cannot write output "+path)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
}
