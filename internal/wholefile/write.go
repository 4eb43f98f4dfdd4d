package wholefile

import (
	"os"
	"path/filepath"
)

// Write puts data in the place of a file, or leaves what is there: it writes beside the
// file, has the disk hold it, and renames. A new file can be read by all, one that takes
// another's place by whom that could be.
func Write(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.partial")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		mode := os.FileMode(0o644) // temporary files are their maker's alone
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
