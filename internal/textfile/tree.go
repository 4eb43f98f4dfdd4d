package textfile

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// tree is the file system that contains the input files. It is fsys, for example an embedded
// file system. If fsys is nil, it is the file system of the operating system.
type tree struct{ fsys fs.FS }

func (d tree) stat(name string) (fs.FileInfo, error) {
	if d.fsys == nil {
		return os.Stat(name)
	}
	return fs.Stat(d.fsys, name)
}

func (d tree) open(name string) (fs.File, error) {
	if d.fsys == nil {
		return os.Open(name)
	}
	return d.fsys.Open(name)
}

func (d tree) readDir(name string) ([]fs.DirEntry, error) {
	if d.fsys == nil {
		return os.ReadDir(name)
	}
	return fs.ReadDir(d.fsys, name)
}

func (d tree) glob(pattern string) ([]string, error) {
	if d.fsys == nil {
		return filepath.Glob(pattern)
	}
	return fs.Glob(d.fsys, pattern)
}

func (d tree) join(dir, name string) string {
	if d.fsys == nil {
		return filepath.Join(dir, name)
	}
	return path.Join(dir, name)
}

// clean returns a path in the form that package io/fs requires, without "./".
func (d tree) clean(name string) string {
	if d.fsys == nil {
		return name
	}
	return path.Clean(name)
}

// modTime returns the modification time, or 0 for files in fsys, whose modification times are
// ignored.
func (d tree) modTime(info fs.FileInfo) int64 {
	if d.fsys == nil {
		return info.ModTime().UnixNano()
	}
	return 0
}
