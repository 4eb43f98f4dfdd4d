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

// staging is the hidden directory beside an output in which it is written. Its
// name derives from that of the output, and a locked file beside it says that a
// run is at work: the system gives up the lock when the process ends in whatever
// way, so that who gets it may remove what is there.
type staging struct {
	dir  string
	lock *os.File
	disk outputDisk
	// noted says that a journal has what becomes of what is here. Then the seal, by which
	// whoever ends the set finds what is left, is removed last. Otherwise it is first: a seal
	// without what it seals says that this has taken its place.
	noted bool
}

// stagePrefix begins the names of all that is beside an output for a while. No output
// may have such a name, and what follows it keeps those of several outputs apart: "-"
// and the name of the output for the directory, ".lock-", ".done-" and ".kept-" before it
// for the others, or "+" and a hash of the name in place of "-" and the name.
const stagePrefix = ".superstep"

// stagingDir is where an output is written aside.
func stagingDir(target string) string {
	parent, name := filepath.Split(target)
	id := "-" + name
	if len(name) > 100 {
		// The longest names that file systems take leave no room for more.
		sum := xxh3.HashString128(name).Bytes()
		id = "+" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(parent, stagePrefix+id)
}

// beside is a file beside a staging directory, for the same output.
func beside(dir, kind string) string {
	parent, name := filepath.Split(dir)
	return filepath.Join(parent, stagePrefix+"."+kind+strings.TrimPrefix(name, stagePrefix))
}

// lockPath is the file that is locked while a run has the staging directory.
func lockPath(dir string) string { return beside(dir, "lock") }

// receiptPath is where the receipt of an output is; see output_resume.go.
func receiptPath(dir string) string { return beside(dir, "done") }

// lockPatience is how long whoever ends what a run has begun waits for the lock of an
// output: a worker that is being killed holds it until its process is gone.
const lockPatience = 10 * time.Second

// holdStaging takes a staging directory as it is.
func holdStaging(d outputDisk, dir string) (*staging, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		lock, err := lockFile(lockPath(dir))
		if err == nil {
			return &staging{dir: dir, lock: lock, disk: d}, nil
		}
		if !errors.Is(err, errLocked) || time.Since(began) > lockPatience {
			return nil, err
		}
	}
}

// newStaging makes the directory for an output, after ending what a run that was killed
// has left there. It reports whether that made an output visible.
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
			err = undecided(d, dir, sealed)
		}
		if err != nil {
			return nil, false, errors.Join(err, s.leave())
		}
		if j.Set == "" {
			return s, finished, s.begin(target)
		}
		// Who waits for the locks of a set has none of its own, so that two cannot wait for
		// each other.
		if err := s.leave(); err != nil {
			return nil, false, err
		}
		if finished, err = endSet(d, j); err != nil {
			return nil, false, err
		}
	}
	return nil, false, errors.New("other runs with this output are cut off again and again")
}

// begin makes the directory empty.
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

// recover ends what an earlier run has left half done that decided upon this output
// alone.
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
	return dir, s.disk.Mkdir(dir)
}

// remove deletes the directory, then the lock: who finds no lock must find no
// directory.
func (s *staging) remove() error {
	if err := s.empty(); err != nil {
		return errors.Join(err, s.leave())
	}
	return s.leave()
}

// empty deletes the directory. The files of shards lose their place first, so that
// workers that still write add no more of them meanwhile.
func (s *staging) empty() error {
	if !s.noted {
		if err := removeIfThere(s.disk, filepath.Join(s.dir, sealFile)); err != nil {
			return err
		}
	}
	if parts, err := findParts(s.dir); err == nil {
		_ = s.disk.Rename(parts, filepath.Join(s.dir, goneDir)) // what stays is removed all the same
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

// leave gives up the lock, with the directory as it is.
func (s *staging) leave() error { return unlockFile(s.disk, s.lock) }

// errInUse says that the lock of an output is held.
func errInUse(path string) error { return &inUseError{path} }

// errLocked is what an error that says so is.
var errLocked = errors.New("the output is locked")

type inUseError struct{ path string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("another run, or another sink of this job, is writing it just now (%s is locked)", e.path)
}

func (e *inUseError) Unwrap() error { return errLocked }
