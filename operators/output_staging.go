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

// stagingDir is where an output is written aside.
func stagingDir(target string) string {
	parent, name := filepath.Split(target)
	if len(name) > 100 {
		// The longest names that file systems take leave no room for more.
		sum := xxh3.HashString128(name).Bytes()
		name = hex.EncodeToString(sum[:])
	}
	return filepath.Join(parent, ".superstep-"+name)
}

// newStaging makes the directory for an output, after removing what a run that
// was killed has left there.
func newStaging(target string) (*staging, error) {
	s := &staging{dir: stagingDir(target)}
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
	return errors.Join(os.RemoveAll(s.dir), removeIfThere(receiptPath(target)))
}

// makeParts makes the directory for the files of shards. Its name is this run's alone:
// a worker of an earlier attempt, on a machine that was thought dead, finds nothing to
// write to, and cannot spoil what this one writes.
func (s *staging) makeParts() (string, error) {
	dir, err := os.MkdirTemp(s.dir, partsDir+"*")
	if err == nil {
		// It may become the output itself, with the permissions of any directory. Nobody
		// takes the name meanwhile: whoever would holds the lock, which is here.
		err = os.Remove(dir)
	}
	if err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o777)
}

// remove deletes the directory, then the lock: who finds no lock must find no
// directory. The files of shards lose their place first, so that workers that still
// write add no more of them meanwhile.
func (s *staging) remove() error {
	// A seal without what it seals would say that this has taken its place.
	if err := removeIfThere(filepath.Join(s.dir, sealFile)); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	if parts, err := findParts(s.dir); err == nil {
		_ = os.Rename(parts, filepath.Join(s.dir, goneDir)) // what stays is removed all the same
	}
	return errors.Join(os.RemoveAll(s.dir), unlockFile(s.lock))
}

// errInUse says that the lock of an output is held.
func errInUse(path string) error { return &inUseError{path} }

// errLocked is what an error that says so is.
var errLocked = errors.New("the output is locked")

type inUseError struct{ path string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("another run, or another sink of this job, is writing it just now (%s is locked)", e.path)
}

func (e *inUseError) Unwrap() error { return errLocked }
