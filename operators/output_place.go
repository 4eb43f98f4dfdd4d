package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// seal says what is complete in a staging directory and waits to take its place. It is
// all that another process needs to put it there, or to take it back.
type seal struct {
	// Run is the name of the directory of parts, which is the run's alone.
	Run string `msgpack:"run"`
	// ID is that of the file or directory that takes the place, 0 if not known.
	ID uint64 `msgpack:"id"`
	// Target is the place, as an absolute path.
	Target string `msgpack:"target"`
	// PerShard says that it is a directory, Replace that it may take the place of another.
	PerShard bool `msgpack:"shards"`
	Replace  bool `msgpack:"replace"`
	// Files are what takes the place: the one, or those of all shards in their directory.
	Files []partFile `msgpack:"files"`
	// Before is what stood there when it was complete. Nothing else is replaced.
	Before standing `msgpack:"before"`
	// Journal is the staging directory that has the journal of the set, "" for one that is
	// decided upon alone, or by somebody else; Set is the name of the set.
	Journal string `msgpack:"journal"`
	Set     string `msgpack:"set"`
	// Dirs are the staging directories of the set, in the seal in Journal. First is what
	// takes the first place of the set, in the others. They tell what was decided where the
	// journal is gone.
	Dirs  []string `msgpack:"dirs,omitempty"`
	First firstOf  `msgpack:"first"`
}

// firstOf is what takes the first place of a set.
type firstOf struct {
	Target string   `msgpack:"target"`
	Made   standing `msgpack:"made"`
}

// placement is an output that is complete in its staging directory, on its way.
type placement struct {
	seal
	stage string // its staging directory
	disk  outputDisk
	fresh bool // this process completed it and has not tried to place it
}

// from is what takes the place.
func (p *placement) from() string {
	if p.PerShard {
		return filepath.Join(p.stage, p.Run)
	}
	return filepath.Join(p.stage, wholeFile)
}

// old is where that is moved whose place is taken, unless the two are exchanged: then it
// is at from.
func (p *placement) old() string { return filepath.Join(p.stage, oldDir) }

// whereabouts is where that is which was complete.
type whereabouts int

const (
	waiting whereabouts = iota // in its staging directory
	placed                     // in its place
	astray                     // in neither
)

// where looks for what was complete. Its place counts where it holds what the seal says;
// otherwise why says what is wrong. What waits is verified when it takes its place.
func (p *placement) where() (at whereabouts, why, err error) {
	info, err := os.Lstat(p.from())
	switch {
	case err == nil && (!p.Replace || p.ID == 0 || fileID(info) == p.ID):
		return waiting, nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, nil, err
	}
	// It has gone to its place, or an exchange has left what was replaced there.
	return p.inPlace()
}

// inPlace is where for what is not in its staging directory.
func (p *placement) inPlace() (at whereabouts, why, err error) {
	err = p.verify(p.Target)
	if d := (*damageError)(nil); errors.As(err, &d) {
		return astray, fmt.Errorf("%s is neither in %s, where it was complete, nor in its place: %s", p.Target, p.stage, d.what), nil
	}
	return placed, nil, err
}

// place moves what is complete to where it belongs, and has it stay there. Where that is
// done it does nothing.
func (p *placement) place() error {
	at, why, err := p.where()
	if err != nil {
		return err
	}
	if at != waiting && p.fresh {
		return fmt.Errorf("%s, which was complete, is gone before it took the place of the output; nothing has become visible: look for what removed it, and run the job again", p.from())
	}
	p.fresh = false
	switch at {
	case astray:
		return why
	case waiting:
		if err := p.move(); err != nil {
			return err
		}
	}
	return p.disk.SyncDir(filepath.Dir(p.Target))
}

// errTaken is what an error is that says that something else is where an output belongs.
var errTaken = errors.New("its place is taken")

// takenError is such an error.
type takenError struct {
	target string
	err    error
}

func (e *takenError) Error() string {
	return fmt.Sprintf("something else wrote to %s while the job ran: %v", e.target, e.err)
}

func (e *takenError) Unwrap() []error { return []error{errTaken, e.err} }

// taken says that something else is where the output belongs.
func (p *placement) taken(err error) error { return &takenError{p.Target, err} }

// errChanged says that what stands there is not what stood there.
var errChanged = errors.New("it is not what stood there when the output was complete, and is not replaced; run the job again to replace it too, or choose another path")

// move is the step by which the output is seen.
func (p *placement) move() error {
	// What stands there may have changed since the run began.
	if _, err := checkTarget(p.Target, p.Target, p.PerShard, p.Replace); err != nil {
		if errors.As(err, new(*fs.PathError)) {
			return err // what stands there is not known
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
		// An empty directory is as good as none.
		if err := removeIfThere(p.disk, p.Target); errors.Is(err, fs.ErrExist) {
			return p.taken(err)
		} else if err != nil {
			return err
		}
	}
	return p.moveNew()
}

// moveNew is move to a place that is free.
func (p *placement) moveNew() error {
	err := p.disk.RenameNew(p.from(), p.Target)
	if errors.Is(err, fs.ErrExist) {
		err = p.taken(err)
	}
	return err
}

// replace moves what is complete to the place of what stands there, which is kept until
// all of the set is in place: in one step where the system can exchange the two; or by
// giving the old one a second name, which it can for files, and overwriting it; or by
// moving it away first. What is between the two steps of the last is mended by bringBack.
func (p *placement) replace() error {
	// An earlier try may have been cut off after its first step.
	if err := p.restore(); err != nil {
		return err
	}
	stands, err := standingAt(p.Target)
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

// checkTarget says whether an output may take its place, called name in messages, as far
// as can be known now, and the permissions of the file that it replaces, 0 if there is
// none.
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

// checkDir refuses to replace a directory that holds anything but an output like
// this one. An empty directory is as good as none.
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
