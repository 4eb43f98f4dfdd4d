//go:build !unix

package security

import (
	"errors"
	"os"
)

// On these systems files have access lists instead of modes, and the user's temporary directory
// is private. So these functions check only that a file is a regular file, or that a folder is
// a directory.

func privateFolder() string { return "superstep" }

func openPrivate(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return os.Open(path)
}

// PrivateFolder makes a folder if it does not exist.
func PrivateFolder(dir string, _ func(repaired string)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkFolder(dir)
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	return err
}

func checkKey(path string) error {
	_, err := os.Stat(path)
	return err
}
