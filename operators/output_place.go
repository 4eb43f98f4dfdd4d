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
	// Empty says that an empty directory stood there.
	Empty bool `msgpack:"empty"`
	// Journal is the staging directory that has the journal of the set, "" for one that is
	// decided upon alone, or by somebody else; Set is the name of the set.
	Journal string `msgpack:"journal"`
	Set     string `msgpack:"set"`
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

// placed reports whether the output has taken its place: nothing but that takes it away
// from where it was complete.
func (p *placement) placed() (bool, error) {
	info, err := os.Lstat(p.from())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !p.Replace || p.ID == 0 || fileID(info) == p.ID {
		return false, err
	}
	// An exchange has left what was replaced there.
	if info, err = os.Lstat(p.Target); err != nil {
		return false, err
	}
	if fileID(info) != p.ID {
		return false, fmt.Errorf("neither %s nor %s is what was about to take the place of the output: something else has moved them", p.from(), p.Target)
	}
	return true, nil
}

// place moves what is complete to where it belongs, and has it stay there. Where that is
// done it does nothing.
func (p *placement) place() error {
	placed, err := p.placed()
	if err != nil {
		return err
	}
	if placed && p.fresh {
		return fmt.Errorf("%s, which was complete, is gone before it took the place of the output; nothing has become visible: look for what removed it, and run the job again", p.from())
	}
	p.fresh = false
	if !placed {
		if err := p.move(); err != nil {
			return err
		}
	}
	return p.disk.SyncDir(filepath.Dir(p.Target))
}

// move is the step by which the output is seen.
func (p *placement) move() error {
	// What stands there may have changed since the run began.
	if _, err := checkTarget(p.Target, p.Target, p.PerShard, p.Replace); err != nil {
		return fmt.Errorf("something else wrote to %s while the job ran: %w", p.Target, err)
	}
	if err := p.verify(); err != nil {
		return err
	}
	switch {
	case p.Replace:
		return p.replace()
	case p.PerShard:
		// An empty directory is as good as none.
		if err := removeIfThere(p.disk, p.Target); err != nil {
			return fmt.Errorf("something else wrote to %s while the job ran: %w", p.Target, err)
		}
		return p.disk.Rename(p.from(), p.Target)
	}
	err := p.disk.RenameNew(p.from(), p.Target)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("something else made %s while the job ran: %w", p.Target, err)
	}
	return err
}

// replace moves what is complete to the place of what stands there, which is kept until
// all of the set is in place: in one step where the system can exchange the two; or by
// giving the old one a second name, which it can for files, and overwriting it; or by
// moving it away first. What is between the two steps of the last is mended by restore.
func (p *placement) replace() error {
	if p.disk.Exchange(p.from(), p.Target) == nil {
		return nil
	}
	// An earlier try may have been cut off after its first step.
	err := p.restore()
	if err == nil {
		err = p.disk.RemoveAll(p.old())
	}
	if err != nil {
		return err
	}
	if p.disk.Link(p.Target, p.old()) != nil {
		if err := p.disk.Rename(p.Target, p.old()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := p.disk.SyncDir(p.stage); err != nil {
		return errors.Join(err, p.restore())
	}
	if err := p.disk.Rename(p.from(), p.Target); err != nil {
		return errors.Join(err, p.restore())
	}
	return nil
}

// restore brings back what was moved away to make room, where nothing has taken its
// place but what is complete.
func (p *placement) restore() error {
	there, err := exists(p.old())
	if err != nil || !there {
		return err
	}
	info, err := os.Lstat(p.Target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case p.ID == 0 || fileID(info) != p.ID:
		return nil // it was never gone
	}
	return p.disk.Rename(p.old(), p.Target)
}

// takeBack undoes place, as far as that has come: what stood there stands there again,
// and what is complete is where it was. An output that something else has replaced or
// removed since is left as it is.
func (p *placement) takeBack() error {
	placed, err := p.placed()
	if err != nil {
		return err
	}
	if placed {
		err = p.unmove()
	} else {
		err = p.restore()
	}
	if err == nil && p.Empty {
		if there, _ := exists(p.Target); !there {
			err = p.disk.Mkdir(p.Target)
		}
	}
	if err != nil {
		return err
	}
	return p.disk.SyncDir(filepath.Dir(p.Target))
}

// unmove undoes move.
func (p *placement) unmove() error {
	info, err := os.Lstat(p.Target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.restore() // removed since, or cut off between two steps of this
	case err != nil:
		return err
	case p.ID != 0 && fileID(info) != p.ID:
		return nil // replaced since
	}
	if there, err := exists(p.from()); err != nil {
		return err
	} else if there {
		return p.disk.Exchange(p.from(), p.Target)
	}
	if there, err := exists(p.old()); err != nil {
		return err
	} else if there && p.disk.Link(p.Target, p.from()) == nil {
		return p.disk.Rename(p.old(), p.Target)
	}
	if err := p.disk.Rename(p.Target, p.from()); err != nil {
		return err
	}
	return p.restore()
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
