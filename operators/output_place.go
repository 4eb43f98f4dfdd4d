package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// seal describes a complete output that is in its staging directory until it is moved to its
// target. It has everything that another process needs to move the output there, or to take it
// back.
type seal struct {
	// Run is the unique name of the directory for the files of shards; it identifies the run.
	Run string `msgpack:"run"`
	// ID is the file ID of the staged file or directory; 0 if it is unknown.
	ID uint64 `msgpack:"id"`
	// Target is the absolute path at which the output becomes visible.
	Target string `msgpack:"target"`
	// PerShard is set if the output is a directory. Replace is set if it may replace an
	// existing output.
	PerShard bool `msgpack:"shards"`
	Replace  bool `msgpack:"replace"`
	// Files describes the single file of the output, or the files of all shards in the
	// directory.
	Files []partFile `msgpack:"files"`
	// Before describes what was at Target when the output was complete. If Target has changed
	// since then, it is not replaced.
	Before fileState `msgpack:"before"`
	// Journal is the staging directory with the journal of the set. It is "" if the set has
	// only one output, or if the caller records the commit. Set is the name of the set.
	Journal string `msgpack:"journal"`
	Set     string `msgpack:"set"`
	// Dirs has the staging directories of the set; it is set only in the seal of the first
	// output. First describes the first output of the set, in the seals of all outputs. If the
	// journal is lost, both are used to find out whether it had been written.
	Dirs  []string `msgpack:"dirs,omitempty"`
	First firstOf  `msgpack:"first"`
}

// firstOf describes the first output of a set.
type firstOf struct {
	Target string    `msgpack:"target"`
	Made   fileState `msgpack:"made"`
}

// placement moves a complete output from its staging directory to its target, or back.
type placement struct {
	seal
	stage         string // staging directory of the output
	disk          outputDisk
	completedHere bool // this process has completed the output and has not called place yet
}

// from returns the path of the staged output.
func (p *placement) from() string {
	if p.PerShard {
		return filepath.Join(p.stage, p.Run)
	}
	return filepath.Join(p.stage, wholeFile)
}

// old returns the path to which the replaced output is moved. If replace exchanges the two
// outputs, the replaced output is at from() instead.
func (p *placement) old() string { return filepath.Join(p.stage, oldDir) }

// location is the location of a complete output.
type location int

const (
	inStaging location = iota // in its staging directory
	inPlace                   // at its target
	notFound                  // neither in its staging directory nor at its target
)

// where returns the location of a complete output. The result is inPlace if the files at the
// target match the seal. If it is notFound, why says what differs. A staged output is verified
// later, when it is moved.
func (p *placement) where() (at location, why, err error) {
	info, err := os.Lstat(p.from())
	switch {
	case err == nil && (!p.Replace || p.ID == 0 || fileID(info) == p.ID):
		return inStaging, nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, nil, err
	}
	// The output may be at its target: its staged path does not exist, or an exchange has put
	// the replaced output there.
	return p.inPlace()
}

// inPlace returns the results of where for an output that is not in its staging directory.
func (p *placement) inPlace() (at location, why, err error) {
	err = p.verify(p.Target)
	if d := (*damageError)(nil); errors.As(err, &d) {
		return notFound, fmt.Errorf("%s is neither in %s, where it was complete, nor in its place: %s", p.Target, p.stage, d.what), nil
	}
	return inPlace, nil, err
}

// place moves a complete output to its target and makes this durable. It does not move an
// output that is already at its target.
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

// errTaken is wrapped by errors that say that something else is at an output's target.
var errTaken = errors.New("its place is taken")

// takenError wraps err and errTaken.
type takenError struct {
	target string
	err    error
}

func (e *takenError) Error() string {
	return fmt.Sprintf("something else wrote to %s while the job ran: %v", e.target, e.err)
}

func (e *takenError) Unwrap() []error { return []error{errTaken, e.err} }

// taken returns an error that says that something else is at the output's target.
func (p *placement) taken(err error) error { return &takenError{p.Target, err} }

// errChanged says that the target has changed since the output was complete.
var errChanged = errors.New("it is not what stood there when the output was complete, and is not replaced; run the job again to replace it too, or choose another path")

// move moves the output to its target.
func (p *placement) move() error {
	// The target may have changed since the run began.
	if _, err := checkTarget(p.Target, p.Target, p.PerShard, p.Replace); err != nil {
		if errors.As(err, new(*fs.PathError)) {
			return err // checkTarget failed, so it is unknown what is at the target
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
		// An empty directory at the target does not count as an output, so it is removed.
		if err := removeIfThere(p.disk, p.Target); errors.Is(err, fs.ErrExist) {
			return p.taken(err)
		} else if err != nil {
			return err
		}
	}
	return p.moveNew()
}

// moveNew moves the output to its target, at which nothing may exist.
func (p *placement) moveNew() error {
	err := p.disk.RenameNew(p.from(), p.Target)
	if errors.Is(err, fs.ErrExist) {
		err = p.taken(err)
	}
	return err
}

// replace moves a complete output to its target in place of an old output, which is kept until
// the whole set is in place. If the file system supports it, replace exchanges the two
// atomically. Otherwise, if the output is a file, it makes a hard link to the old file and
// renames the new file to the target. If that is impossible too, it moves the old output away
// and then moves the new output to the target. After an interruption between these two moves,
// restoreOld moves the old output back.
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

// checkTarget returns an error if the file or directory that is now at target prevents an
// output from being moved there. It also returns the permissions of the file that would be
// replaced, or 0 if there is none. name is the path that messages show.
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

// checkDir returns an error if the directory at target must not be replaced. It may be replaced
// only if all its entries are files named "part-…", like the files of an output. An empty
// directory does not count as an output.
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
