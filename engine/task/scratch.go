package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// scratch is a run's private directory for temporary files. Beside it, in the
// same parent, is a file that the run keeps locked: the operating system drops
// the lock when the process ends in whatever way, which tells later runs that
// the directory is left over.
type scratch struct {
	dir  string
	lock *os.File
}

const (
	scratchPrefix = "superstep-"
	lockSuffix    = ".lock"
)

// newScratch makes a directory in parent (os.TempDir where empty), which is made
// too where it does not exist, after sweeping it.
func newScratch(parent string) (*scratch, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	explain := func(err error) error {
		return fmt.Errorf("make a directory for temporary files in %s: %w; choose another spill directory", parent, err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, explain(err)
	}
	sweep(parent)
	// A sweep of another process may take the file between its creation and its
	// locking; then the next one is tried.
	for range 100 {
		lock, err := os.CreateTemp(parent, scratchPrefix+"*"+lockSuffix)
		if err != nil {
			return nil, explain(err)
		}
		if !hold(lock) {
			lock.Close()
			continue
		}
		s := &scratch{dir: strings.TrimSuffix(lock.Name(), lockSuffix), lock: lock}
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return nil, explain(errors.Join(err, s.remove()))
		}
		return s, nil
	}
	return nil, explain(errors.New("other processes took every lock file away"))
}

// remove deletes the directory, then the lock: who finds no lock must find no
// directory.
func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	return errors.Join(err, releaseLock(s.lock))
}

// sweep removes the directories of runs that no longer live. It leaves alone
// what it cannot tell or remove: that is a later sweep's work.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(escapeGlob(parent), scratchPrefix+"*"+lockSuffix))
	if err != nil {
		return
	}
	for _, path := range locks {
		release, ok := leftOver(path)
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

// escapeGlob quotes what has a meaning in patterns.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
