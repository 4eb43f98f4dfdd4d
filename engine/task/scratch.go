package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// scratch is a run's private directory for temporary files. Beside it, in the same parent, is a
// file that the run keeps locked. The operating system drops the lock when the process ends, so
// later runs can see that the directory is left over.
type scratch struct {
	dir     string
	lock    *os.File
	created []string // directories above dir that were made for it, innermost first
}

const (
	scratchPrefix = "superstep-"
	lockSuffix    = ".lock"
	// lockMark is the content of lock files. It distinguishes them from files of other programs.
	lockMark = "lock of a superstep run\n"
)

// newScratch sweeps parent and makes a directory in it. parent is made if it does not exist; ""
// means os.TempDir.
func newScratch(parent string) (*scratch, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	s := &scratch{}
	err := s.makeParent(parent)
	if err == nil {
		sweep(parent)
		err = s.make(parent)
	}
	if err != nil {
		s.removeMade()
		return nil, fmt.Errorf("make a directory for temporary files in %s: %w; choose another spill directory", parent, err)
	}
	return s, nil
}

// make makes the directory in parent, which exists.
func (s *scratch) make(parent string) error {
	// This may have to be repeated: a sweep of another process may take the lock file between its
	// creation and its locking, and another run that made the parent may remove the parent.
	for range 100 {
		lock, err := os.CreateTemp(parent, scratchPrefix+"*"+lockSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			if err = s.makeParent(parent); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if !tryLock(lock) {
			lock.Close()
			continue
		}
		dir := strings.TrimSuffix(lock.Name(), lockSuffix)
		if err := os.Mkdir(dir, 0o700); err != nil {
			err = errors.Join(err, releaseLock(lock))
			if errors.Is(err, fs.ErrExist) {
				continue // another process has the lock
			}
			return err
		}
		s.dir, s.lock = dir, lock
		_, _ = lock.WriteString(lockMark) // if this fails, the only effect is that sweeps ignore the file
		return nil
	}
	return errors.New("other processes removed every lock file")
}

// makeParent makes parent with the directories above it, and records which of them it made.
func (s *scratch) makeParent(parent string) error {
	s.created = nil
	for dir := filepath.Clean(parent); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || errors.Is(err, fs.ErrPermission) {
			break // it exists, or it is unknown whether it does
		}
		s.created = append(s.created, dir)
	}
	return os.MkdirAll(parent, 0o755)
}

// remove deletes the directory, then the lock, as there must be no directory without a lock. It
// also removes the directories above it that were made for it, unless they have other contents.
func (s *scratch) remove() error {
	err := errors.Join(os.RemoveAll(s.dir), releaseLock(s.lock))
	s.removeMade()
	return err
}

func (s *scratch) removeMade() {
	for _, dir := range s.created {
		_ = os.Remove(dir) // fails if the directory has other contents
	}
}

// sweep removes the directories of runs that have ended. It does not touch files that no run has
// made. It leaves directories that it cannot read or remove to a later sweep.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(escapeGlob(parent), scratchPrefix+"*"+lockSuffix))
	if err != nil {
		return
	}
	for _, path := range locks {
		if !marked(path) {
			continue
		}
		release, ok := lockEndedRun(path)
		if !ok {
			continue
		}
		if os.RemoveAll(strings.TrimSuffix(path, lockSuffix)) == nil {
			_ = release(true)
		} else {
			_ = release(false)
		}
	}
}

// marked reports whether a file is the lock of a run. A lock is marked once its directory
// exists.
func marked(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(lockMark)) {
		return false
	}
	mark, err := os.ReadFile(path)
	return err == nil && string(mark) == lockMark
}

// escapeGlob quotes the special characters of patterns.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
