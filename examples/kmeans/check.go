package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/engine"
)

// noneAdded returns an error if rows, which are read from path, have a column with the name of
// a column that the predictions add.
func noneAdded(path string, rows *engine.Dataset) error {
	for _, name := range []string{"cluster", "distance"} {
		if rows.Schema().Index(name) >= 0 {
			return fmt.Errorf("--input %s has a column %q, which the output adds: rename it", path, name)
		}
	}
	return nil
}

// unused returns a name that no column of rows has: name, with underscores appended if needed.
func unused(rows *engine.Dataset, name string) string {
	for rows.Schema().Index(name) >= 0 {
		name += "_"
	}
	return name
}

// distinct returns an error if two of the paths refer to the same file. Empty paths are
// ignored.
func distinct(paths ...string) error {
	taken := map[string]string{}
	for _, path := range paths {
		if path == "" {
			continue
		}
		at, err := resolve(path)
		if err != nil {
			return err
		}
		if first, ok := taken[at]; ok {
			return fmt.Errorf("two outputs have the path %s: %s and %s", at, first, path)
		}
		taken[at] = path
	}
	return nil
}

// resolve returns the absolute path of a file, which need not exist. It resolves symbolic links
// in the path, or at least in its directory, if these exist.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("output %s: %w", path, err)
	}
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at, nil
	}
	dir := filepath.Dir(path)
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dir = at
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// mayWrite returns an error if report could not write a file at path: if the path exists and
// must not or cannot be replaced, or if no file can be created in its directory. It is called
// before the job runs. An empty path is ignored.
func mayWrite(b *engine.Builder, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("output %s is a directory: give the path of a file", path)
	} else if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("output %s is not a regular file, which cannot be replaced", path)
	}
	if _, err := os.Lstat(path); err == nil && b.IfExists() == engine.Fail {
		return fmt.Errorf("output %s exists: choose another path, or replace it with --if-exists replace", path)
	}
	dir := filepath.Dir(path)
	probe, err := os.CreateTemp(dir, ".kmeans-*.partial")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err // leaves out the name of the temporary file
	}
	if err != nil {
		return fmt.Errorf("cannot write output %s: no file can be made in %s: %w", path, dir, err)
	}
	return nil
}
