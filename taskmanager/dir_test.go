//go:build unix

package taskmanager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestWorkDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := openWorkDir(path, hclog.NewNullLogger())
	require.NoError(t, err)
	id := d.id
	for _, job := range []wire.JobID{"20260102-job", "../../../etc", "a/b\x00\n", wire.JobID(strings.Repeat("long", 1000)), ""} {
		made, err := d.forWorker(wire.WorkerRef{Job: job, Attempt: 2, Worker: 3})
		require.NoError(t, err)
		require.Equal(t, d.workers(), filepath.Dir(made))
		info, err := os.Stat(made)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	left, err := openLeftRows(d.rows(), hclog.NewNullLogger()).use("job")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(left, "rows-1"), nil, 0o600))
	require.NoError(t, d.lock.Close(), "the task manager is killed")
	require.NotEmpty(t, names(t, d.workers()))
	require.NotEmpty(t, names(t, d.rows()))

	// A new run must remove the files of workers of the previous run, and must have the same
	// identity.
	d, err = openWorkDir(path, hclog.NewNullLogger())
	require.NoError(t, err)
	require.Equal(t, id, d.id)
	require.Empty(t, names(t, d.workers()))
	require.Empty(t, names(t, d.rows()))
	_, err = d.forWorker(wire.WorkerRef{Job: "job"})
	require.NoError(t, err)
	require.Error(t, d.close(), "close must fail while the directory of a worker exists")
	d, err = openWorkDir(path, hclog.NewNullLogger())
	require.NoError(t, err)
	left, err = openLeftRows(d.rows(), hclog.NewNullLogger()).use("job")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(left, "rows-1"), nil, 0o600))
	_, err = openWorkDir(path, hclog.NewNullLogger())
	require.ErrorContains(t, err, "another task manager uses it")
	require.NoError(t, d.close())
	require.NotContains(t, names(t, path), "rows")

	for _, wrong := range []string{"", "short", "has/slash-and-more", strings.Repeat("x", 65), "with\nnewline1"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, "id"), []byte(wrong), 0o600))
		_, err = openWorkDir(path, hclog.NewNullLogger())
		require.ErrorContains(t, err, "does not hold an identity")
	}
	require.NoError(t, os.WriteFile(filepath.Join(path, "id"), []byte("my-task-manager\n"), 0o600))
	d, err = openWorkDir(path, hclog.NewNullLogger())
	require.NoError(t, err)
	require.Equal(t, "my-task-manager", d.id)
	require.NoError(t, d.close())

	_, err = openWorkDir(filepath.Join(path, "id"), hclog.NewNullLogger())
	require.ErrorContains(t, err, "work directory")
}
