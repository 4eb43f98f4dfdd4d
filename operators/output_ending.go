package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// ending is a set of a run that was cut off, while another one ends it.
type ending struct {
	journal
	disk   outputDisk
	keeper *staging   // that of the journal
	left   []*staging // of the others of which something is left
	all    []*placement
	gone   map[*placement]bool // those of which nothing is left in their staging directories
}

// endSet finishes or undoes the set of a run that was cut off, and removes what is left
// of it. It reports whether it was finished. Where something else has meddled with the
// outputs, so that the set was undone, or not all of it could be, the error says so, and
// the set has ended all the same, but where the error is of the disk.
func endSet(d outputDisk, j journal) (finished bool, err error) {
	const doing = "end what an earlier run was cut off in, making several outputs visible: %w"
	e := &ending{disk: d, gone: map[*placement]bool{}}
	if e.keeper, err = holdStaging(d, j.Members[0].Dir); err != nil {
		return false, fmt.Errorf(doing, err)
	}
	defer func() { err = errors.Join(err, e.leave()) }()
	there := false
	if e.journal, there, err = readJournal(j.Members[0].Dir, j.Set); err != nil || !there {
		return false, err // somebody else has ended it meanwhile
	}
	if err := e.gather(); err != nil {
		return false, fmt.Errorf(doing, err)
	}
	var amiss error
	if !e.ended {
		if amiss, err = e.settle(); err == nil {
			err = endJournal(d, e.keeper.dir)
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
		return false, fmt.Errorf("an earlier run was cut off while it made several outputs visible, and all of them have been taken back, but where it says otherwise here: %w; run the job again", amiss)
	}
	return !e.Undo, nil
}

// gather finds what is left of the set, and takes the locks of that.
func (e *ending) gather() error {
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
			if s, err = holdStaging(e.disk, m.Dir); err == nil {
				e.left = append(e.left, s)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle finishes the set or undoes it. What is amiss was lost to something else, or could
// not be undone for it, while err ends this.
func (e *ending) settle() (amiss, err error) {
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

// place finishes one output.
func (e *ending) place(p *placement) error {
	if !e.gone[p] {
		return p.place()
	}
	at, why, err := p.inPlace()
	if at == astray {
		return why
	}
	return err
}

// takeBack undoes one output. One of which nothing is left has been taken back, unless it
// stands.
func (e *ending) takeBack(p *placement) (left, err error) {
	if !e.gone[p] {
		return p.takeBack()
	}
	at, _, err := p.inPlace()
	if err != nil || at != placed {
		return nil, err
	}
	return fmt.Errorf("%s stays as that run made it, as %s, with what stood there before, is gone", p.Target, p.stage), nil
}

// remove is step 4.
func (e *ending) remove() error {
	for len(e.left) > 0 {
		s := e.left[len(e.left)-1]
		e.left = e.left[:len(e.left)-1]
		s.noted = true
		if err := s.remove(); err != nil {
			return err
		}
	}
	k := e.keeper
	e.keeper = nil
	k.noted = true
	return k.remove()
}

// leave gives up the locks that are still held.
func (e *ending) leave() (err error) {
	for _, s := range e.left {
		err = errors.Join(err, s.leave())
	}
	if e.keeper != nil {
		err = errors.Join(err, e.keeper.leave())
	}
	return err
}

// dirs are the staging directories of the set.
func (e *ending) dirs() []string {
	var all []string
	for _, m := range e.Members {
		all = append(all, m.Dir)
	}
	return all
}

// and joins errors in one line.
func and(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}

// sweepStaging removes what is left when all in a staging directory is: it, being empty,
// and its lock.
func sweepStaging(d outputDisk, dir string) error {
	lock, err := lockFile(lockPath(dir))
	if err != nil {
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			err = nil // somebody else has it, or all around it is gone
		}
		return err
	}
	s := &staging{dir: dir, lock: lock, disk: d}
	_ = d.Remove(dir) // which fails where it is not empty
	return s.leave()
}

// undecided looks at a set that has a seal and no journal. It fails where something of it
// has taken its place, or was about to, and something has not: then it was decided upon.
func undecided(d outputDisk, dir string, sealed seal) error {
	first, err := readRecord(sealCodec, filepath.Join(sealed.Journal, sealFile))
	if err != nil {
		return err
	}
	var stand, rest, dirs []string
	decided := false
	if dirs = first.Dirs; first.Set != sealed.Set {
		dirs = []string{dir}
		now, err := standingAt(sealed.First.Target)
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
		if err == nil && (at != waiting || was != "") {
			// A run that is at work there just now removes the seal before all else.
			s, err = readRecord(sealCodec, path)
		}
		if err != nil {
			return err
		}
		if s.Set != sealed.Set {
			continue
		}
		there = append(there, dir)
		decided = decided || at != waiting || was != ""
		switch at {
		case placed:
			stand = append(stand, s.Target)
		case waiting:
			rest = append(rest, fmt.Sprintf("%s waits in %s", s.Target, dir))
		case astray:
			rest = append(rest, why.Error())
		}
	}
	if !decided || len(rest) == 0 {
		return nil
	}
	if len(stand) > 0 {
		rest = append([]string{strings.Join(stand, ", ") + " as that run made it"}, rest...)
	}
	return fmt.Errorf("an earlier run was cut off while it made several outputs visible, and %s, where it kept whether they are to be, is gone: %s; "+
		"look whether the outputs are as you want them (what that run made, and what it replaced, is in the hidden directories until then), remove %s, and run the job again",
		filepath.Join(sealed.Journal, journalFile), strings.Join(rest, "; "), strings.Join(there, ", "))
}
