package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/disk"
)

// meanwhile is a disk that calls a function when a spool is created, or at the first write to a
// spool. A spool is created after the files were verified and before they are read.
type meanwhile struct {
	disk.FS
	made  func()
	wrote func()
}

func (m *meanwhile) CreateTemp(dir, pattern string) (disk.File, error) {
	f, err := m.FS.CreateTemp(dir, pattern)
	if err == nil && m.made != nil {
		m.made()
	}
	return &meanwhileFile{f, m}, err
}

type meanwhileFile struct {
	disk.File
	of *meanwhile
}

func (f *meanwhileFile) Write(b []byte) (int, error) {
	if wrote := f.of.wrote; wrote != nil {
		f.of.wrote = nil
		wrote()
	}
	return f.File.Write(b)
}

// TestUnpackedFilesAreChecked requires an error if a file that is unpacked or converted to
// UTF-8 was replaced after it was verified and before it is opened, or changes while it is
// read. The same is required for text that is read directly.
func TestUnpackedFilesAreChecked(t *testing.T) {
	lines := strings.Repeat("1 1:2\n", 20_000)
	one, other := gz(t, lines), zst(t, lines)
	for name, c := range map[string]struct {
		data     []byte
		cut      int // length of a shorter text that is also valid
		encoding Encoding
	}{
		"gzip":         {append(bytes.Clone(one), one...), len(one), UTF8},
		"zstd":         {append(bytes.Clone(other), other...), len(other), UTF8},
		"latin1":       {[]byte(lines), len(lines) / 2, Latin1},
		"windows-1252": {[]byte(lines), len(lines) / 2, Windows1252},
		"utf-16":       {bytes.Repeat([]byte("1\x00\n\x00"), 90_000), 180_000, UTF16},
	} {
		write := func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
		for change, do := range map[string]func(path string, was time.Time) error{
			"cut": func(path string, _ time.Time) error { return os.Truncate(path, int64(c.cut)) },
			"cut, of its old time": func(path string, was time.Time) error {
				return errors.Join(os.Truncate(path, int64(c.cut)), os.Chtimes(path, was, was))
			},
			"longer, of its old time": func(path string, was time.Time) error {
				return errors.Join(write(path, slices.Concat(c.data, c.data)), os.Chtimes(path, was, was))
			},
			"of another time": func(path string, was time.Time) error { return os.Chtimes(path, was, was.Add(time.Second)) },
			"another one": func(path string, was time.Time) error {
				return errors.Join(write(path+".new", c.data[:c.cut]), os.Chtimes(path+".new", was, was), os.Rename(path+".new", path))
			},
		} {
			for _, late := range []bool{false, true} {
				read := func(open func(files []File, cfg Config) (io.Closer, error)) {
					dir := t.TempDir()
					path := filepath.Join(dir, "a")
					require.NoError(t, write(path, c.data))
					info, err := os.Stat(path)
					require.NoError(t, err)
					on := &meanwhile{FS: disk.OS()}
					now := func() { require.NoError(t, do(path, info.ModTime())) }
					if on.made = now; late {
						on.made, on.wrote = nil, now
					}
					r, err := open(resolve(t, path), Config{Shards: 1, Disk: on, SpoolDir: dir})
					if late && change == "another one" {
						require.NoError(t, err, "%s: reading must succeed, because the open file has not changed", name)
						require.NoError(t, r.Close())
						return
					}
					require.ErrorIs(t, err, ErrChanged, "%s: the change %s must be detected; late: %t", name, change, late)
					require.ErrorContains(t, err, fmt.Sprintf("input %s changed between building and reading: it had %d bytes", path, len(c.data)))
				}
				read(func(files []File, cfg Config) (io.Closer, error) {
					return OpenCSV(t.Context(), files, Dialect{Encoding: c.encoding}, textLayout(1), cfg)
				})
				if c.encoding == UTF8 {
					read(func(files []File, cfg Config) (io.Closer, error) {
						return OpenLibSVM(t.Context(), files, LibSVMLayout{Size: 1}, cfg)
					})
				}
			}
		}
	}
}

// endingFS is a file system whose files end after at bytes, whatever size they report.
type endingFS struct {
	fs.FS
	at int64 // 0 means their real end
}

func (e *endingFS) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err == nil && e.at > 0 {
		f = &endingFile{f, io.LimitReader(f, e.at)}
	}
	return f, err
}

type endingFile struct {
	fs.File
	r io.Reader
}

func (f *endingFile) Read(b []byte) (int, error) { return f.r.Read(b) }

// TestUnpackedFilesThatEndEarly requires an error for an archive that is cut at the end of a
// member. It still is a valid archive, so that only its length shows the change.
func TestUnpackedFilesThatEndEarly(t *testing.T) {
	one := gz(t, "1\n2\n")
	for encoding, data := range map[Encoding][]byte{UTF8: append(bytes.Clone(one), one...), Latin1: bytes.Repeat([]byte("1\n"), len(one))} {
		fsys := &endingFS{FS: fstest.MapFS{"a": {Data: data}}}
		files, err := ResolveIn(fsys, "a")
		require.NoError(t, err)
		on := &meanwhile{FS: disk.OS(), made: func() { fsys.at = int64(len(one)) }}
		_, err = OpenCSV(t.Context(), files, Dialect{Encoding: encoding}, textLayout(1), Config{Shards: 1, FS: fsys, Disk: on, SpoolDir: t.TempDir()})
		require.ErrorIs(t, err, ErrChanged)
		require.ErrorContains(t, err, fmt.Sprintf("input a changed between building and reading: it ends before its %d bytes were read", len(data)))
	}
}
