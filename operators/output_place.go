package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// seal describes the complete output in a staging directory that waits to take its place. It
// holds everything that another process needs to put the output there, or to take it back.
type seal struct {
	// Run is the name of the directory of parts, which is unique to the run.
	Run string `msgpack:"run"`
	// ID identifies the file or directory that takes the place, 0 if unknown.
	ID uint64 `msgpack:"id"`
	// Target is the output's place, as an absolute path.
	Target string `msgpack:"target"`
	// PerShard says that the output is a directory. Replace says that it may replace another.
	PerShard bool `msgpack:"shards"`
	Replace  bool `msgpack:"replace"`
	// Files are the files of the output: the one, or those of all shards in their directory.
	Files []partFile `msgpack:"files"`
	// Before describes what was at Target when the output was complete. Nothing else is
	// replaced.
	Before fileState `msgpack:"before"`
	// Journal is the staging directory that has the journal of the set. It is "" if the output
	// is the only one, or if the caller has recorded the commit. Set is the name of the set.
	Journal string `msgpack:"journal"`
	Set     string `msgpack:"set"`
	// Dirs are the staging directories of the set; only the seal in Journal has them. First
	// describes the first output of the set; the other seals have it. If the journal is gone,
	// they tell what was decided.
	Dirs  []string `msgpack:"dirs,omitempty"`
	First firstOf  `msgpack:"first"`
}

// firstOf describes the first output of a set.
type firstOf struct {
	Target string    `msgpack:"target"`
	Made   fileState `msgpack:"made"`
}

// placement is a complete output on its way from its staging directory to its place.
type placement struct {
	seal
	stage         string // its staging directory
	disk          outputDisk
	completedHere bool // this process completed it and has not tried to place it
}

// from returns the staged path of the output.
func (p *placement) from() string {
	if p.PerShard {
		return filepath.Join(p.stage, p.Run)
	}
	return filepath.Join(p.stage, wholeFile)
}

// old returns the path that the replaced output is moved to. If the two are exchanged, it is at
// from instead.
func (p *placement) old() string { return filepath.Join(p.stage, oldDir) }

// location is the location of a complete output.
type location int

const (
	inStaging location = iota // in its staging directory
	inPlace                   // in its place
	notFound                  // in neither
)

// where looks for a complete output. The output is in its place if what is there matches the
// seal's description; otherwise why says what is wrong. A staged output is verified later, when
// it takes its place.
func (p *placement) where() (at location, why, err error) {
	info, err := os.Lstat(p.from())
	switch {
	case err == nil && (!p.Replace || p.ID == 0 || fileID(info) == p.ID):
		return inStaging, nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, nil, err
	}
	// The output is in its place, or an exchange has put the replaced output here.
	return p.inPlace()
}

// inPlace is where for an output that is not in its staging directory.
func (p *placement) inPlace() (at location, why, err error) {
	err = p.verify(p.Target)
	if d := (*damageError)(nil); errors.As(err, &d) {
		return notFound, fmt.Errorf("%s is neither in %s, where it was complete, nor in its place: %s", p.Target, p.stage, d.what), nil
	}
	return inPlace, nil, err
}

// place moves a complete output to its place, durably. If that is done already, it does
// nothing.
func (p *placement) place() error {
	at, why, err := p.where()
	if err != nil {
		return err
	}
	if at != inStaging && p.completedHere {
		return fmt.Errorf("%s, which was complete, is gone before it took the place of the output; nothing has become visible: look for what removed it, and run the job again", p.from())
	}
	p.completedHere = false
	switch at {
	case notFound:
		return why
	case inStaging:
		if err := p.move(); err != nil {
			return err
		}
	}
	return p.disk.SyncDir(filepath.Dir(p.Target))
}

// errTaken marks errors that say that something else is in an output's place.
var errTaken = errors.New("its place is taken")

// takenError is an error that is errTaken.
type takenError struct {
	target string
	err    error
}

func (e *takenError) Error() string {
	return fmt.Sprintf("something else wrote to %s while the job ran: %v", e.target, e.err)
}

func (e *takenError) Unwrap() []error { return []error{errTaken, e.err} }

// taken returns the error that something else is in the output's place.
func (p *placement) taken(err error) error { return &takenError{p.Target, err} }

// errChanged says that the output's place has changed since the output was complete.
var errChanged = errors.New("it is not what stood there when the output was complete, and is not replaced; run the job again to replace it too, or choose another path")

// move makes the output visible.
func (p *placement) move() error {
	// The target may have changed since the run began.
	if _, err := checkTarget(p.Target, p.Target, p.PerShard, p.Replace); err != nil {
		if errors.As(err, new(*fs.PathError)) {
			return err // it is unknown what is there
		}
		return p.taken(err)
	}
	if err := p.verify(p.from()); err != nil {
		return err
	}
	switch {
	case p.Replace:
		return p.replace()
	case p.PerShard:
		// An empty directory counts as none.
		if err := removeIfThere(p.disk, p.Target); errors.Is(err, fs.ErrExist) {
			return p.taken(err)
		} else if err != nil {
			return err
		}
	}
	return p.moveNew()
}

// moveNew is move to a free path.
func (p *placement) moveNew() error {
	err := p.disk.RenameNew(p.from(), p.Target)
	if errors.Is(err, fs.ErrExist) {
		err = p.taken(err)
	}
	return err
}

// replace moves a complete output to the place of an old one, which is kept until the whole set
// is in place. If the system can, it exchanges the two in one step. Otherwise it gives an old
// file a second name and overwrites it, or else moves the old output away first. restoreOld
// repairs an interruption between these last two steps.
func (p *placement) replace() error {
	// An earlier attempt may have been interrupted after its first step.
	if err := p.restore(); err != nil {
		return err
	}
	stands, err := fileStateAt(p.Target)
	switch {
	case err != nil:
		return err
	case !stands.There:
		return p.moveNew()
	case stands != p.Before:
		return p.taken(errChanged)
	}
	if p.disk.Exchange(p.from(), p.Target) == nil {
		return nil
	}
	if err := p.disk.RemoveAll(p.old()); err != nil {
		return err
	}
	move := p.disk.Rename
	if p.disk.Link(p.Target, p.old()) != nil {
		move = p.disk.RenameNew
		if err := p.disk.Rename(p.Target, p.old()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := p.disk.SyncDir(p.stage); err != nil {
		return errors.Join(err, p.restore())
	}
	if err := move(p.from(), p.Target); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = p.taken(err)
		}
		return errors.Join(err, p.restore())
	}
	return nil
}

// checkTarget returns an error if an output may not take its place, as far as can be known now.
// It also returns the permissions of the file that it replaces, 0 if there is none. name is the
// path in messages.
func checkTarget(name, target string, perShard, replace bool) (fs.FileMode, error) {
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case perShard:
		return 0, checkDir(name, target, info, replace)
	case info.IsDir():
		return 0, fmt.Errorf("output %s is a directory; give the path of a file, or ask for one file per shard", name)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("output %s is not a regular file (%s), which cannot be replaced", name, info.Mode().Type())
	case !replace:
		return 0, outputExists(name)
	}
	return info.Mode().Perm(), nil
}

func outputExists(name string) error {
	return fmt.Errorf("output %s exists: choose another path, or replace it with --if-exists replace (engine.IfExists(engine.Replace))", name)
}

// checkDir refuses to replace a directory that holds anything but an output like this one. An
// empty directory counts as none.
func checkDir(name, target string, info fs.FileInfo, replace bool) error {
	if !info.IsDir() {
		return fmt.Errorf("output %s is a file, and one file per shard needs a directory; remove it or choose another path", name)
	}
	entries, err := os.ReadDir(target)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !replace {
		return outputExists(name)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "part-") || !e.Type().IsRegular() {
			return fmt.Errorf("output directory %s is not replaced, as it holds more than the files of an output, such as %s; remove it or choose another path", name, e.Name())
		}
	}
	return nil
}
