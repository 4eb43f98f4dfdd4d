//go:build unix

package security

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func makePipe(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(path, 0o600))
}

// owned is the FileInfo of a file with the given mode and owner.
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

// TestOwnersAndModes checks every mode for the three kinds of owners: this user, root and
// another user.
func TestOwnersAndModes(t *testing.T) {
	const me, root, other = 1000, 0, 1001
	for mode := range fs.FileMode(0o1000) {
		mine, roots := checkPrivate(owned{mode, me}, me), checkPrivate(owned{mode, root}, me)
		require.Equal(t, mode&0o077 == 0, mine == nil, "%04o", mode)
		require.Equal(t, mode&0o037 == 0, roots == nil, "%04o", mode)
		require.ErrorContains(t, checkPrivate(owned{mode, other}, me), "it belongs to user 1001, and this is user 1000")

		dir := mode | fs.ModeDir
		require.Equal(t, mode&0o022 == 0, checkFolderAccess(owned{dir, me}, me) == nil)
		require.Equal(t, mode&0o022 == 0, checkFolderAccess(owned{dir, root}, me) == nil)
		require.NoError(t, checkFolderAccess(owned{dir | fs.ModeSticky, root}, me))
		require.ErrorContains(t, checkFolderAccess(owned{dir | fs.ModeSticky, other}, me), "belongs to user 1001")
	}
	require.ErrorContains(t, checkPrivate(owned{0o600 | fs.ModeNamedPipe, me}, me), "not a regular file")
	require.ErrorContains(t, checkFolderAccess(owned{0o600, me}, me), "not a folder")
	require.Error(t, checkPrivate(noOwner{owned{0o600, me}}, me))
	require.Error(t, checkFolderAccess(noOwner{owned{0o700 | fs.ModeDir, me}}, me))
}

type noOwner struct{ owned }

func (noOwner) Sys() any { return nil }

func TestTokenFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	_, err := CreateToken(good)
	require.NoError(t, err)
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	write := func(name, content string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(good, link))
	dangling := filepath.Join(dir, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), dangling))
	pipe := filepath.Join(dir, "pipe")
	makePipe(t, pipe)
	for _, c := range []struct{ path, want string }{
		{write("group", string(text), 0o640), "others may use it (mode 0640): run chmod 600"},
		{write("all", string(text), 0o604), "others may use it (mode 0604)"},
		{write("writable", string(text), 0o602), "others may use it (mode 0602)"},
		{link, "symbolic link"},
		{dangling, "symbolic link"},
		{pipe, "not a regular file"},
		{dir, "not a regular file"},
		{write("empty", "", 0o600), "the token is empty; remove the file"},
		{write("short", "secret", 0o600), "has 6 characters"},
		{write("binary", strings.Repeat("\x00", 43), 0o600), "character 1 of the token"},
		{write("large", strings.Repeat("a", 1<<20), 0o600), "more than 512"},
		{filepath.Join(good, "below"), "not a directory"},
	} {
		_, err := ReadToken(c.path)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, c.path)
		_, err = CreateToken(c.path)
		require.ErrorContains(t, err, c.want, "CreateToken must also refuse the file, and not replace it")
	}
	_, err = ReadToken(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestFoldersThatAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := CreateToken(filepath.Join(dir, "token"))
	require.ErrorContains(t, err, "others may replace files in it (mode 0777): run chmod 700")
	require.NoError(t, os.Chmod(dir, 0o777|fs.ModeSticky))
	_, err = CreateToken(filepath.Join(dir, "token"))
	require.NoError(t, err)
}

// TestFolderThatAGroupMayWrite changes a folder as a kubelet changes a volume with fsGroup at
// each mount. PrivateFolder must remove the rights in the whole folder and report that. A
// second call must have nothing to report.
func TestFolderThatAGroupMayWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	told := []string{}
	open := func() error { return PrivateFolder(dir, func(what string) { told = append(told, what) }) }
	require.NoError(t, open())
	sub, file := filepath.Join(dir, "artifacts"), filepath.Join(dir, "artifacts", "x")
	require.NoError(t, os.Mkdir(sub, 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	require.Empty(t, told)
	for _, path := range []string{dir, sub} {
		require.NoError(t, os.Chmod(path, 0o770|fs.ModeSetgid))
	}
	require.NoError(t, os.Chmod(file, 0o660))
	require.NoError(t, open())
	require.Len(t, told, 1)
	require.Contains(t, told[0], "a group could write to "+dir+" (mode 0770)")
	require.NoError(t, open())
	require.Len(t, told, 1)
	for path, mode := range map[string]fs.FileMode{dir: 0o700, sub: 0o700, file: 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}

// TestFoldersThatAreNotRepaired requires that PrivateFolder refuses a folder to which everybody
// may have written, or that contains a file of another user, and does not change its mode.
func TestFoldersThatAreNotRepaired(t *testing.T) {
	fail := func(what string) { t.Error(what) }
	make := func() (parent, dir, file string) {
		parent = filepath.Join(t.TempDir(), "parent")
		dir, file = filepath.Join(parent, "dir"), filepath.Join(parent, "dir", "file")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Chmod(dir, 0o770))
		return parent, dir, file
	}
	refused := func(dir, want string) {
		t.Helper()
		before, err := os.Stat(dir)
		require.NoError(t, err)
		require.ErrorContains(t, PrivateFolder(dir, fail), want)
		after, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
	}
	_, dir, file := make()
	require.NoError(t, os.Chmod(file, 0o606))
	refused(dir, "everybody may write to "+file)
	_, dir, _ = make()
	require.NoError(t, os.Chmod(dir, 0o777))
	refused(dir, "others may replace files in it (mode 0777)")
	require.NoError(t, os.Chmod(dir, 0o772))
	refused(dir, "others may")
	parent, dir, _ := make()
	require.NoError(t, os.Chmod(parent, 0o777))
	refused(dir, "as "+parent+" is open to all")
	if os.Getuid() == 0 {
		_, dir, file = make()
		require.NoError(t, os.Chown(file, 12345, -1))
		refused(dir, file+" is somebody else's")
	}
}
