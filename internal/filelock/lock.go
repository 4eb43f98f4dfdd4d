package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Owner says for whom a Lock is held. The zero value is a run that has no attempts.
type Owner struct {
	Job     string
	Attempt int
}

// earlier reports whether o is an earlier attempt of the job of other.
func (o Owner) earlier(other Owner) bool {
	return o.Job != "" && o.Job == other.Job && o.Attempt < other.Attempt
}

// String returns the owner as it is written into a lock file.
func (o Owner) String() string {
	if o.Job == "" {
		return ""
	}
	return fmt.Sprintf("attempt %d of job %s\n", o.Attempt, o.Job)
}

// ErrTaken is the error if a later attempt of the same job has taken the lock over.
var ErrTaken = errors.New("a later attempt of the job has taken over")

// ErrGone is the error if the lock file has been removed. A later attempt may have taken the lock over and
// released it since, so the error matches ErrTaken too.
var ErrGone error = goneError{}

type goneError struct{}

func (goneError) Error() string        { return "the lock file was removed while it was in use" }
func (goneError) Is(target error) bool { return target == ErrTaken }

// turnTime bounds how long a process waits for its turn. Turns take as long as the functions that
// are passed to Do.
const turnTime = 10 * time.Second

// Lock is a lock file with an owner. A later attempt of the owner's job can take the lock over,
// although the process that holds it still runs, for example on a machine that the job manager
// cannot reach. That process then gets ErrTaken.
//
// Processes change the lock in turns: a second file is locked while a process makes, takes over
// or removes the lock file, and while it runs a function within Do. So a process that has lost
// the lock cannot remove the lock file of its successor. On a file system without locks between
// machines there are no turns, but the lock file still says who has taken over.
type Lock struct {
	path, turn string
	owner      Owner
	file       *os.File
}

// Hold makes the lock file path, or opens a file that was left there, and locks it. turn is the
// path of the second file. The error is ErrHeld if another process holds the lock, and ErrTaken if
// a later attempt of the owner's job has had it.
func Hold(path, turn string, owner Owner) (*Lock, error) { return hold(path, turn, owner, false) }

// Take is like Hold, but takes the lock over from earlier attempts of the owner's job.
func Take(path, turn string, owner Owner) (*Lock, error) { return hold(path, turn, owner, true) }

func hold(path, turn string, owner Owner, over bool) (*Lock, error) {
	l := &Lock{path: path, turn: turn, owner: owner}
	err := l.inTurn(func() error { return l.make(over) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

// make locks the lock file and writes the owner to it. It is called in turn.
func (l *Lock) make(over bool) error {
	f, err := Make(l.path)
	if err != nil && !errors.Is(err, ErrHeld) {
		return err
	}
	holder, unread := ownerIn(l.path)
	if unread != nil {
		return closed(f, unread)
	}
	switch {
	case l.owner.earlier(holder):
		return closed(f, ErrTaken)
	case err == nil:
	case !over || !holder.earlier(l.owner):
		return err
	default:
		// The process that holds the lock keeps the old file, which has no name any more.
		if err := os.Remove(l.path); err != nil {
			return err
		}
		if f, err = Make(l.path); err != nil {
			return err
		}
	}
	if err := writeOwner(f, l.owner); err != nil {
		return closed(f, err)
	}
	l.file = f
	return nil
}

// closed closes a file, which may be nil, and returns err.
func closed(f *os.File, err error) error {
	if f != nil {
		return errors.Join(err, f.Close())
	}
	return err
}

// inTurn calls f while no other process has its turn.
func (l *Lock) inTurn(f func() error) error {
	turn, err := Make(l.turn)
	for began := time.Now(); errors.Is(err, ErrHeld) && time.Since(began) < turnTime; turn, err = Make(l.turn) {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	err = f()
	if left := Release(turn, os.Remove); err == nil {
		err = left
	}
	return err
}

// Do calls f if the lock has not been taken over, and returns ErrTaken otherwise. It is not taken
// over while f runs.
func (l *Lock) Do(f func() error) error {
	return l.inTurn(func() error {
		if err := l.Check(); err != nil {
			return err
		}
		return f()
	})
}

// Check returns ErrTaken if the lock has been taken over, and ErrGone if the lock file is gone. It may be taken over right afterwards.
func (l *Lock) Check() error {
	if l.owner == (Owner{}) {
		return nil
	}
	mine, err := l.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return ErrGone
	}
	if err == nil && !os.SameFile(mine, there) {
		return ErrTaken
	}
	if err != nil {
		return err
	}
	holder, err := ownerIn(l.path)
	if err == nil && holder != l.owner {
		err = ErrTaken
	}
	return err
}

// Release removes the lock file with the function remove, unless it has been taken over, and then
// releases the lock.
func (l *Lock) Release(remove func(path string) error) error {
	released := false
	err := l.Do(func() error { released = true; return Release(l.file, remove) })
	if released {
		return err
	}
	if errors.Is(err, ErrTaken) {
		err = nil
	}
	return errors.Join(err, l.Abandon())
}

// Abandon releases the lock and leaves the file, as the end of the process does.
func (l *Lock) Abandon() error { return l.file.Close() }

// maxOwner is the largest size in bytes of the text in a lock file.
const maxOwner = 1 << 10

// ownerIn returns the owner whose text is in a lock file. It returns the zero value for a file
// without an owner, and if there is no file.
func ownerIn(path string) (o Owner, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxOwner))
	if err != nil {
		return o, err
	}
	if _, err := fmt.Sscanf(string(text), "attempt %d of job %s\n", &o.Attempt, &o.Job); err != nil || o.String() != string(text) {
		return Owner{}, nil // it is left from a process that was killed, or of another version
	}
	return o, nil
}

// writeOwner replaces the text of a lock file.
func writeOwner(f *os.File, o Owner) error {
	if strings.ContainsAny(o.Job, " \n") || len(o.String()) > maxOwner {
		return fmt.Errorf("the lock cannot be held for a job of the name %.100q", o.Job)
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(o.String()), 0)
	return err
}
