package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/superstep-ml/superstep/internal/filelock"
)

// recovery finishes or undoes the set of outputs of an interrupted run.
type recovery struct {
	journal
	disk           outputDisk
	journalStaging *staging   // staging directory with the journal
	left           []*staging // the other staging directories that still exist
	all            []*placement
	gone           map[*placement]bool // the outputs whose staging directories no longer exist or belong to another run
}

// endSet finishes or undoes the set of an interrupted run, and removes its staging directories.
// It reports whether it finished the set. If something else has changed the outputs, endSet
// undoes the set as far as possible, removes the journal and the staging directories, and
// returns an error that names the outputs. After a failure of the file system, it does not
// remove the journal and the staging directories.
func endSet(d outputDisk, j journal) (finished bool, err error) {
	const doing = "end what an earlier run was interrupted in, making several outputs visible: %w"
	e := &recovery{disk: d, gone: map[*placement]bool{}}
	if e.journalStaging, err = holdStaging(d, j.Members[0].Dir, filelock.Owner{}); err != nil {
		return false, fmt.Errorf(doing, err)
	}
	defer func() { err = errors.Join(err, e.leave()) }()
	there := false
	if e.journal, there, err = readJournal(j.Members[0].Dir, j.Set); err != nil || !there {
		return false, err // without an error, the journal no longer exists: another process has ended the set
	}
	if err := e.gather(); err != nil {
		return false, fmt.Errorf(doing, err)
	}
	var amiss error
	if !e.ended {
		if amiss, err = e.resolve(); err == nil {
			err = endJournal(d, e.journalStaging.dir)
		}
	}
	if err == nil {
		err = e.remove()
	}
	if err != nil {
		return false, fmt.Errorf(doing+"; every run with one of its outputs tries again; where that cannot succeed, what the earlier run made, and what it was to replace, "+
			"is in the hidden directories %s: look whether its outputs are as you want them, and remove these directories then", and(amiss, err), strings.Join(e.dirs(), ", "))
	}
	if amiss != nil {
		return false, fmt.Errorf("an earlier run was interrupted while it made several outputs visible, and all of them have been taken back, but where it says otherwise here: %w; run the job again", amiss)
	}
	return !e.Undo, nil
}

// gather finds the staging directories of the set that still exist, and locks them.
func (e *recovery) gather() error {
	for i, m := range e.Members {
		sealed, err := readRecord(sealCodec, filepath.Join(m.Dir, sealFile))
		if err != nil {
			return err
		}
		p := &placement{seal: m.Seal, stage: m.Dir, disk: e.disk}
		e.all = append(e.all, p)
		switch {
		case sealed.Set != e.Set:
			e.gone[p] = true
			if i > 0 {
				err = sweepStaging(e.disk, m.Dir)
			}
		case i > 0:
			var s *staging
			if s, err = holdStaging(e.disk, m.Dir, filelock.Owner{}); err == nil {
				e.left = append(e.left, s)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve finishes the set or undoes it. amiss names the outputs that are lost or could not be
// taken back because something else has changed them. err is the error because of which resolve
// could not continue.
func (e *recovery) resolve() (amiss, err error) {
	if !e.Undo {
		for _, p := range e.all {
			if err = e.place(p); err != nil {
				break
			}
		}
		if err == nil {
			return nil, nil
		}
		if !errors.Is(err, errTaken) {
			amiss = err
		}
		e.Undo = true
		if err := writeJournal(e.disk, e.journal); err != nil {
			return amiss, err
		}
	}
	for _, p := range e.all {
		left, err := e.takeBack(p)
		if amiss = and(amiss, left); err != nil {
			return amiss, err
		}
	}
	return amiss, nil
}

// place moves one output to its target, or checks that it is there.
func (e *recovery) place(p *placement) error {
	if !e.gone[p] {
		return p.place()
	}
	at, why, err := p.inPlace()
	if at == notFound {
		return why
	}
	return err
}

// takeBack takes back one output. An output without a staging directory has already been taken
// back, unless it is at its target.
func (e *recovery) takeBack(p *placement) (left, err error) {
	if !e.gone[p] {
		return p.takeBack()
	}
	at, _, err := p.inPlace()
	if err != nil || at != inPlace {
		return nil, err
	}
	return fmt.Errorf("%s stays as that run made it, as %s, with what stood there before, is gone", p.Target, p.stage), nil
}

// remove performs step 4 of output_journal.go.
func (e *recovery) remove() error {
	for len(e.left) > 0 {
		s := e.left[len(e.left)-1]
		e.left = e.left[:len(e.left)-1]
		s.noted = true
		if err := s.remove(); err != nil {
			return err
		}
	}
	k := e.journalStaging
	e.journalStaging = nil
	k.noted = true
	return k.remove()
}

// leave releases the locks that are still held.
func (e *recovery) leave() (err error) {
	for _, s := range e.left {
		err = errors.Join(err, s.leave())
	}
	if e.journalStaging != nil {
		err = errors.Join(err, e.journalStaging.leave())
	}
	return err
}

// dirs returns the staging directories of the set.
func (e *recovery) dirs() []string {
	var all []string
	for _, m := range e.Members {
		all = append(all, m.Dir)
	}
	return all
}

// and joins two errors, either of which may be nil, on one line.
func and(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}

// sweepStaging removes an empty staging directory and its lock.
func sweepStaging(d outputDisk, dir string) error {
	lock, err := lockStaging(dir, filelock.Owner{}, false)
	if err != nil {
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			err = nil // another process holds the lock, or the parent directory does not exist: nothing has to be removed
		}
		return err
	}
	s := &staging{dir: dir, lock: lock, disk: d}
	_ = d.Remove(dir) // fails if the directory is not empty
	return s.leave()
}

// checkUndecided examines a set that has a seal but no journal. It returns an error if some
// outputs of the set have been moved to their targets, or their replacement had begun, while
// other outputs have not been moved: the journal must then have been written and lost.
func checkUndecided(d outputDisk, dir string, sealed seal) error {
	first, err := readRecord(sealCodec, filepath.Join(sealed.Journal, sealFile))
	if err != nil {
		return err
	}
	var stand, rest, dirs []string
	decided := false
	if dirs = first.Dirs; first.Set != sealed.Set {
		dirs = []string{dir}
		now, err := fileStateAt(sealed.First.Target)
		if err != nil {
			return err
		}
		if now == sealed.First.Made {
			stand, decided = append(stand, sealed.First.Target), true
		}
	}
	var there []string
	for _, dir := range dirs {
		path := filepath.Join(dir, sealFile)
		s, err := readRecord(sealCodec, path)
		if err != nil {
			return err
		}
		if s.Set != sealed.Set {
			continue
		}
		p := &placement{seal: s, stage: dir, disk: d}
		at, why, err := p.where()
		var was string
		if err == nil {
			was, err = p.replaced()
		}
		if err == nil && (at != inStaging || was != "") {
			// The seal is read again, as another run that uses the directory has removed the
			// seal first.
			s, err = readRecord(sealCodec, path)
		}
		if err != nil {
			return err
		}
		if s.Set != sealed.Set {
			continue
		}
		there = append(there, dir)
		decided = decided || at != inStaging || was != ""
		switch at {
		case inPlace:
			stand = append(stand, s.Target)
		case inStaging:
			rest = append(rest, fmt.Sprintf("%s waits in %s", s.Target, dir))
		case notFound:
			rest = append(rest, why.Error())
		}
	}
	if !decided || len(rest) == 0 {
		return nil
	}
	if len(stand) > 0 {
		rest = append([]string{strings.Join(stand, ", ") + " as that run made it"}, rest...)
	}
	return fmt.Errorf("an earlier run was interrupted while it made several outputs visible, and %s, where it kept whether they are to be, is gone: %s; "+
		"look whether the outputs are as you want them (what that run made, and what it replaced, is in the hidden directories until then), remove %s, and run the job again",
		filepath.Join(sealed.Journal, journalFile), strings.Join(rest, "; "), strings.Join(there, ", "))
}
