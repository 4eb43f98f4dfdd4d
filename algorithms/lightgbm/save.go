package lightgbm

import (
	"os"
	"path/filepath"
)

// replace puts data in the place of a file, or leaves what is there: it writes aside, has the
// disk hold it, and renames.
func replace(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.partial")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		// Temporary files are their maker's alone; models are as readable as what they replace,
		// or else by all.
		mode := os.FileMode(0o644)
		if old, wrong := os.Stat(path); wrong == nil {
			mode = old.Mode().Perm()
		}
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
