//go:build unix

package taskmanager

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// leave makes the directory of a job, with a file in it, as if a process had been killed.
func leave(t *testing.T, l *leftRows, job wire.JobID) string {
	t.Helper()
	dir, err := l.use(job)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows-1"), []byte("rows"), 0o600))
	return dir
}

// TestRowsThatAreLeft requires that files which workers have left are removed when their job has ended, has had
// no processes for the given time, or the disk is nearly full, and not before; and that empty directories are
// removed at once.
func TestRowsThatAreLeft(t *testing.T) {
	const keepFor = time.Minute
	l := openLeftRows(t.TempDir(), hclog.NewNullLogger())
	running := func(jobs ...wire.JobID) func() []wire.JobID { return func() []wire.JobID { return jobs } }
	left := func() int { return len(names(t, l.dir)) }

	dir := leave(t, l, "../../a")
	require.Equal(t, l.dir, filepath.Dir(dir))
	again, err := l.use("../../a")
	require.NoError(t, err)
	require.Equal(t, dir, again, "the next worker finds what is left")
	other, err := l.use("a")
	require.NoError(t, err)
	require.NotEqual(t, dir, other)

	for range 10 {
		l.sweep(running("../../a", "a"), keepFor, keepFor, true)
	}
	require.Equal(t, 2, left(), "their processes run")
	l.sweep(running(), keepFor/2, keepFor, false)
	require.Equal(t, 1, left(), "the other is empty")
	l.sweep(running("../../a"), keepFor/2, keepFor, false)
	l.sweep(running(), keepFor-1, keepFor, false)
	require.Equal(t, 1, left())
	l.sweep(running(), 1, keepFor, false)
	require.Zero(t, left())

	leave(t, l, "over")
	l.end("over")
	l.end("unknown")
	l.sweep(running("over"), 0, keepFor, false)
	require.Equal(t, 1, left())
	leave(t, l, "over") // a worker has come nevertheless
	l.sweep(running(), 0, keepFor, false)
	require.Equal(t, 1, left())
	l.end("over")
	l.sweep(running(), 0, keepFor, false)
	require.Zero(t, left())

	leave(t, l, "full")
	l.sweep(running(), 0, keepFor, true)
	require.Zero(t, left())
}

// TestRowsOfManyJobs requires that the files of few jobs are left, and that those that were left first are
// removed.
func TestRowsOfManyJobs(t *testing.T) {
	l := openLeftRows(t.TempDir(), hclog.NewNullLogger())
	var dirs []string
	for i := range maxLeftJobs + 3 {
		dirs = append(dirs, leave(t, l, wire.JobID(fmt.Sprint(i))))
		l.sweep(func() []wire.JobID { return nil }, time.Second, time.Hour, false)
	}
	require.Len(t, names(t, l.dir), maxLeftJobs)
	for i, dir := range dirs {
		_, err := os.Stat(dir)
		require.Equal(t, i < 3, os.IsNotExist(err), "job %d", i)
	}
}
