package operators

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
)

// staging is the hidden directory beside an output in which it is written. Its name derives
// from that of the output. A locked file beside it says that a run is using it. The system
// releases the lock when the process ends, so the next holder may remove what is there.
type staging struct {
	dir  string
	lock *os.File
	disk outputDisk
	// noted says that a journal decides about this directory. Then the seal is removed last, as
	// whoever ends the set finds the directory by it. Otherwise it is removed first, as a seal
	// without its output means that the output has taken its place.
	noted bool
}

// stagePrefix begins the names of all temporary files and directories beside an output. No
// output may have such a name. The rest of the name is different for different outputs. For the
// directory it is "-" and the name of the output; for files it is ".lock-", ".done-" or
// ".kept-" and the name. For long names, "+" and a hash replace "-" and the name.
const stagePrefix = ".superstep"

// stagingDir returns the staging directory of an output.
func stagingDir(target string) string {
	parent, name := filepath.Split(target)
	id := "-" + name
	if len(name) > 100 {
		// The longest names of file systems leave no room for a prefix.
		sum := xxh3.HashString128(name).Bytes()
		id = "+" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(parent, stagePrefix+id)
}

// siblingPath returns the path of a file beside a staging directory, for the same output.
func siblingPath(dir, kind string) string {
	parent, name := filepath.Split(dir)
	return filepath.Join(parent, stagePrefix+"."+kind+strings.TrimPrefix(name, stagePrefix))
}

// lockPath returns the file that is locked while a run uses the staging directory.
func lockPath(dir string) string { return siblingPath(dir, "lock") }

// receiptPath returns the path of an output's receipt; see output_resume.go.
func receiptPath(dir string) string { return siblingPath(dir, "done") }

// lockTimeout is how long a process that ends another run's commit waits for the lock of an
// output: a worker that is being killed holds it until its process is gone.
const lockTimeout = 10 * time.Second

// holdStaging locks a staging directory and leaves it as it is.
func holdStaging(d outputDisk, dir string) (*staging, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		lock, err := lockFile(lockPath(dir))
		if err == nil {
			return &staging{dir: dir, lock: lock, disk: d}, nil
		}
		if !errors.Is(err, errLocked) || time.Since(began) > lockTimeout {
			return nil, err
		}
	}
}

// newStaging makes the directory for an output. Before that it finishes or undoes the commit of
// a killed run. It reports whether that made an output visible.
func newStaging(d outputDisk, target string) (s *staging, finished bool, err error) {
	dir := stagingDir(target)
	for range 10 {
		lock, err := lockFile(lockPath(dir))
		if err != nil {
			return nil, false, err
		}
		s = &staging{dir: dir, lock: lock, disk: d}
		sealed, err := readRecord(sealCodec, filepath.Join(dir, sealFile))
		var j journal
		if err == nil {
			j, err = journalOf(dir, sealed)
		}
		if err == nil && j.Set == "" && sealed.Set != "" {
			err = checkUndecided(d, dir, sealed)
		}
		if err != nil {
			return nil, false, errors.Join(err, s.leave())
		}
		if j.Set == "" {
			return s, finished, s.begin(target)
		}
		// A process that waits for the locks of a set holds none, so two cannot wait for each
		// other.
		if err := s.leave(); err != nil {
			return nil, false, err
		}
		if finished, err = endSet(d, j); err != nil {
			return nil, false, err
		}
	}
	return nil, false, errors.New("other runs with this output are interrupted again and again")
}

// begin makes an empty directory.
func (s *staging) begin(target string) error {
	err := s.recover(target)
	if err == nil {
		err = s.disk.Mkdir(s.dir)
	}
	if err != nil {
		return errors.Join(err, s.leave())
	}
	return nil
}

// recover ends an interrupted commit of an earlier run that had only this output.
func (s *staging) recover(target string) error {
	old := filepath.Join(s.dir, oldDir)
	if there, err := exists(old); err != nil {
		return err
	} else if there {
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			if err := s.disk.Rename(old, target); err != nil {
				return fmt.Errorf("bring back the output that an earlier run was about to replace: %w", err)
			}
		}
	}
	return errors.Join(s.empty(), removeIfThere(s.disk, receiptPath(s.dir)))
}

// makeParts makes the directory for the files of shards. Its name is unique to this run: a
// worker of an earlier attempt, on a machine that was thought dead, cannot write into it.
func (s *staging) makeParts() (string, error) {
	dir, err := os.MkdirTemp(s.dir, partsDir+"*")
	if err == nil {
		// It may become the output itself, so it needs the permissions of an ordinary
		// directory. No other process takes the name meanwhile, as it would need the lock,
		// which is held here.
		err = os.Remove(dir)
	}
	if err != nil {
		return "", err
	}
	return dir, s.disk.Mkdir(dir)
}

// remove deletes the directory, then the lock, as there must be no directory without a lock.
func (s *staging) remove() error {
	if err := s.empty(); err != nil {
		return errors.Join(err, s.leave())
	}
	return s.leave()
}

// empty deletes the directory. It renames the directory of the files of shards first, so that
// workers that still write cannot add more files.
func (s *staging) empty() error {
	if !s.noted {
		if err := removeIfThere(s.disk, filepath.Join(s.dir, sealFile)); err != nil {
			return err
		}
	}
	if parts, err := findParts(s.dir); err == nil {
		_ = s.disk.Rename(parts, filepath.Join(s.dir, goneDir)) // on failure its files are removed all the same
	}
	if s.noted {
		entries, err := os.ReadDir(s.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if e.Name() == sealFile || e.Name() == journalFile || e.Name() == endedFile {
				continue
			}
			if err := s.disk.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
		if err := removeIfThere(s.disk, filepath.Join(s.dir, sealFile)); err != nil {
			return err
		}
	}
	return s.disk.RemoveAll(s.dir)
}

// leave releases the lock, and leaves the directory as it is.
func (s *staging) leave() error { return unlockFile(s.disk, s.lock) }

// errInUse returns the error that the lock of an output is held.
func errInUse(path string) error { return &inUseError{path} }

// errLocked marks such an error.
var errLocked = errors.New("the output is locked")

type inUseError struct{ path string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("another run, or another sink of this job, is writing it just now (%s is locked)", e.path)
}

func (e *inUseError) Unwrap() error { return errLocked }
