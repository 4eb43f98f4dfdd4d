package operators

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/filelock"
)

// staging is the hidden directory beside an output in which the output is written. Its name is
// derived from the name of the output. While a run uses the directory, the run holds the lock
// of a file beside the directory. The operating system releases the lock when the process ends,
// so the next holder of the lock may remove the directory.
//
// On a cluster, the next attempt of a job can begin while a process of the attempt before still
// runs, on a task manager that the job manager has lost. The next attempt takes over the lock,
// removes what the directory holds, and makes a directory for the files of shards whose name has
// the number of the attempt. The attempt before can then add no file, as the directory of its
// files is gone, and it removes nothing, as it does not have the lock. It does not commit, as the
// job manager tells only the last attempt to do so.
type staging struct {
	dir  string
	lock *filelock.Lock
	disk outputDisk
	// noted is set if a journal lists this directory. If it is set, the seal is removed last,
	// as a process that finishes or undoes the set recognizes the directory by its seal.
	// Otherwise the seal is removed first, as a seal without its staged output means that the
	// output is at its target.
	noted bool
}

// stagePrefix is the prefix of the names of all temporary files and directories beside an
// output. An output must not have such a name. The rest of the name is unique to the output:
// "-" and the output's name for the directory, and ".lock-", ".turn-", ".done-" or ".kept-" and
// the output's name for files. If the output's name is long, "+" and a hash replace "-" and the
// name.
const stagePrefix = ".superstep"

// stagingDir returns the staging directory of an output.
func stagingDir(target string) string {
	parent, name := filepath.Split(target)
	id := "-" + name
	if len(name) > 100 {
		// With the prefix, a long name could exceed the file system's limit.
		sum := xxh3.HashString128(name).Bytes()
		id = "+" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(parent, stagePrefix+id)
}

// siblingPath returns the path of the output's file of the given kind, such as "lock". The file
// is beside the output's staging directory dir.
func siblingPath(dir, kind string) string {
	parent, name := filepath.Split(dir)
	return filepath.Join(parent, stagePrefix+"."+kind+strings.TrimPrefix(name, stagePrefix))
}

// lockPath returns the file that is locked while a run uses the staging directory. turnPath
// returns the file that is locked while the lock changes hands; see filelock.Lock.
func lockPath(dir string) string { return siblingPath(dir, "lock") }
func turnPath(dir string) string { return siblingPath(dir, "turn") }

// receiptPath returns the path of an output's receipt; see output_resume.go.
func receiptPath(dir string) string { return siblingPath(dir, "done") }

// lockStaging locks a staging directory. take says whether the lock is taken over from earlier
// attempts of the owner's job.
func lockStaging(dir string, owner filelock.Owner, take bool) (*filelock.Lock, error) {
	lock := filelock.Hold
	if take {
		lock = filelock.Take
	}
	path := lockPath(dir)
	l, err := lock(path, turnPath(dir), owner)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, errInUse(path)
	case errors.Is(err, filelock.ErrTaken):
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return l, err
}

// lockTimeout is how long a process that finishes or undoes another run's commit waits for the
// lock of an output. A worker that is being killed holds the lock until its process has ended.
const lockTimeout = 10 * time.Second

// holdStaging locks a staging directory without changing it.
func holdStaging(d outputDisk, dir string, owner filelock.Owner) (*staging, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		lock, err := lockStaging(dir, owner, false)
		if err == nil {
			return &staging{dir: dir, lock: lock, disk: d}, nil
		}
		if !errors.Is(err, errLocked) || time.Since(began) > lockTimeout {
			return nil, err
		}
	}
}

// newStaging makes the staging directory for an output. If a killed run has left a commit of
// this output, newStaging first finishes or undoes that commit. finished reports whether it has
// finished such a commit.
func newStaging(d outputDisk, target string, owner filelock.Owner) (s *staging, finished bool, err error) {
	dir := stagingDir(target)
	for range 10 {
		lock, err := lockStaging(dir, owner, true)
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
		// The lock is released first: a process that waits for the locks of a set must not hold
		// any, so that two processes cannot wait for each other.
		if err := s.leave(); err != nil {
			return nil, false, err
		}
		if finished, err = endSet(d, j); err != nil {
			return nil, false, err
		}
	}
	return nil, false, errors.New("other runs with this output are interrupted again and again")
}

// begin finishes or undoes an interrupted commit and then makes the empty staging directory.
func (s *staging) begin(target string) error {
	err := s.lock.Do(func() error {
		if err := s.recover(target); err != nil {
			return err
		}
		return s.disk.Mkdir(s.dir)
	})
	if err != nil {
		return errors.Join(err, s.leave())
	}
	return nil
}

// recover finishes or undoes the interrupted commit of an earlier run that had only this
// output.
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

// makeParts makes the directory for the files of shards. Its name begins with prefix, which is
// unique to the attempt of a job on a cluster, and is unique to this run.
func (s *staging) makeParts(prefix string) (dir string, err error) {
	err = s.lock.Do(func() error {
		if dir, err = os.MkdirTemp(s.dir, prefix+"*"); err != nil {
			return err
		}
		// The directory may become the output, so it is made again with the permissions of an
		// ordinary directory. No other process takes its name meanwhile, as this process has
		// its turn.
		if err := os.Remove(dir); err != nil {
			return err
		}
		return s.disk.Mkdir(dir)
	})
	return dir, err
}

// remove deletes the directory and then the lock file. The order matters: a staging directory
// must always have a lock file. If a later attempt has taken over the lock, it has deleted what
// this attempt had in the directory, and nothing is left to be done.
func (s *staging) remove() error {
	err := s.lock.Do(s.empty)
	if errors.Is(err, filelock.ErrTaken) {
		err = nil
	}
	return errors.Join(err, s.leave())
}

// empty deletes the staging directory. It first renames the directories for the files of shards,
// so that workers that are still writing cannot add files to them.
func (s *staging) empty() error {
	if !s.noted {
		if err := removeIfThere(s.disk, filepath.Join(s.dir, sealFile)); err != nil {
			return err
		}
	}
	parts, _ := partsIn(s.dir, partsDir)
	for i, name := range parts {
		gone := goneDir
		if i > 0 {
			gone += strconv.Itoa(i)
		}
		_ = s.disk.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, gone)) // if this fails, the files are removed nevertheless
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

// leave releases the lock without changing the directory.
func (s *staging) leave() error { return s.lock.Release(s.disk.Remove) }

// errInUse returns an error that says that another process holds the lock of the output at
// path.
func errInUse(path string) error { return &inUseError{path} }

// errLocked is wrapped by the errors of errInUse.
var errLocked = errors.New("the output is locked")

type inUseError struct{ path string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("another run, or another sink of this job, is writing it just now (%s is locked)", e.path)
}

func (e *inUseError) Unwrap() error { return errLocked }
