package operators

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"
)

// staging is the hidden directory beside an output in which it is written. Its
// name derives from that of the output, and a locked file beside it says that a
// run is at work: the system gives up the lock when the process ends in whatever
// way, so that who gets it may remove what is there.
type staging struct {
	dir  string
	lock *os.File
}

// newStaging makes the directory for an output, after removing what a run that
// was killed has left there.
func newStaging(target string) (*staging, error) {
	parent, name := filepath.Split(target)
	if len(name) > 100 {
		// The longest names that file systems take leave no room for more.
		sum := xxh3.HashString128(name).Bytes()
		name = hex.EncodeToString(sum[:])
	}
	s := &staging{dir: filepath.Join(parent, ".superstep-"+name)}
	var err error
	if s.lock, err = lockFile(s.dir + ".lock"); err != nil {
		return nil, err
	}
	if err := s.recover(target); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// recover ends what an earlier run has left half done.
func (s *staging) recover(target string) error {
	old := filepath.Join(s.dir, oldDir)
	if _, err := os.Lstat(old); err == nil {
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(old, target); err != nil {
				return fmt.Errorf("bring back the output that an earlier run was about to replace: %w", err)
			}
		}
	}
	return os.RemoveAll(s.dir)
}

// remove deletes the directory, then the lock: who finds no lock must find no
// directory.
func (s *staging) remove() error {
	return errors.Join(os.RemoveAll(s.dir), unlockFile(s.lock))
}

// errInUse says that the lock of an output is held.
func errInUse(path string) error {
	return fmt.Errorf("another run, or another sink of this job, is writing it just now (%s is locked)", path)
}
