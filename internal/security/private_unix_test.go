//go:build unix

package security

import (
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func makePipe(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(path, 0o600))
}

// owned is a file of some owner and mode.
type owned struct {
	mode fs.FileMode
	uid  uint32
}

func (o owned) Name() string       { return "owned" }
func (o owned) Size() int64        { return 44 }
func (o owned) Mode() fs.FileMode  { return o.mode }
func (o owned) ModTime() time.Time { return time.Time{} }
func (o owned) IsDir() bool        { return o.mode.IsDir() }
func (o owned) Sys() any           { return &syscall.Stat_t{Uid: o.uid} }

// TestOwnersAndModes goes over every mode for the three kinds of owners.
func TestOwnersAndModes(t *testing.T) {
	const me, root, other = 1000, 0, 1001
	for mode := range fs.FileMode(0o1000) {
		mine, roots := checkPrivate(owned{mode, me}, me), checkPrivate(owned{mode, root}, me)
		require.Equal(t, mode&0o077 == 0, mine == nil, "%04o", mode)
		require.Equal(t, mode&0o037 == 0, roots == nil, "%04o", mode)
		require.ErrorContains(t, checkPrivate(owned{mode, other}, me), "it belongs to user 1001, and this is user 1000")

		dir := mode | fs.ModeDir
		require.Equal(t, mode&0o022 == 0, judgeFolder(owned{dir, me}, me) == nil)
		require.Equal(t, mode&0o022 == 0, judgeFolder(owned{dir, root}, me) == nil)
		require.NoError(t, judgeFolder(owned{dir | fs.ModeSticky, root}, me))
		require.ErrorContains(t, judgeFolder(owned{dir | fs.ModeSticky, other}, me), "belongs to user 1001")
	}
	require.ErrorContains(t, checkPrivate(owned{0o600 | fs.ModeNamedPipe, me}, me), "not a regular file")
	require.ErrorContains(t, judgeFolder(owned{0o600, me}, me), "not a folder")
	require.Error(t, checkPrivate(noOwner{owned{0o600, me}}, me))
	require.Error(t, judgeFolder(noOwner{owned{0o700 | fs.ModeDir, me}}, me))
}

type noOwner struct{ owned }

func (noOwner) Sys() any { return nil }
