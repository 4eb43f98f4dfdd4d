package operators

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// testDisk makes the calls of the operating system, except sync, which is slow. Before call
// number at, it calls the function what; if what returns an error, the call fails with it.
// Calls that some systems do not support can be disabled.
type testDisk struct {
	mu   sync.Mutex
	n    int // number of calls so far
	at   int // number of the call before which what is called, counted from 1
	what func() error
	dead bool // calls no longer have an effect, as if the process had ended
	// plain is set if the system supports neither exchange nor link.
	plain bool
	order *diskOrder // checks the order of calls; may be nil
	last  string     // the call before which what was called
}

var errDead = errors.New("the process has ended")

// crashesAt returns a disk that simulates the end of the process before call number at: this
// call and all later calls do nothing.
func crashesAt(at int) *testDisk {
	d := &testDisk{at: at}
	d.what = func() error {
		d.dead = true
		return nil
	}
	return d
}

// fails returns a disk of which call number at fails.
func fails(at int) *testDisk {
	return &testDisk{at: at, what: func() error { return errNoSpace }}
}

// call performs one call of the disk by f, unless it must fail or do nothing.
func (d *testDisk) call(name string, paths []string, f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	if d.n == d.at {
		d.last = fmt.Sprintf("%s %s", name, strings.Join(paths, " "))
		if err := d.what(); err != nil {
			return err
		}
	}
	if d.dead || d.order != nil && d.order.cut != nil && d.order.cut(name, paths) {
		return errDead
	}
	if d.order != nil {
		d.order.before(name, paths)
	}
	err := f()
	if err == nil && d.order != nil {
		d.order.after(name, paths)
	}
	return err
}

func (d *testDisk) Create(path string) (f *os.File, err error) {
	err = d.call("create", []string{path}, func() error { f, err = osDisk{}.Create(path); return err })
	return f, err
}

func (d *testDisk) Sync(f *os.File) error {
	return d.call("sync", []string{f.Name()}, func() error { return nil })
}

func (d *testDisk) SyncDir(dir string) error {
	return d.call("syncdir", []string{dir}, func() error { return nil })
}

func (d *testDisk) Mkdir(path string) error {
	return d.call("mkdir", []string{path}, func() error { return osDisk{}.Mkdir(path) })
}

func (d *testDisk) Rename(from, to string) error {
	return d.call("rename", []string{from, to}, func() error { return os.Rename(from, to) })
}

func (d *testDisk) RenameNew(from, to string) error {
	return d.call("renamenew", []string{from, to}, func() error { return renameNew(from, to) })
}

func (d *testDisk) Exchange(a, b string) error {
	if d.plain {
		return errors.ErrUnsupported
	}
	return d.call("exchange", []string{a, b}, func() error { return exchange(a, b) })
}

func (d *testDisk) Link(from, to string) error {
	if d.plain {
		return errors.ErrUnsupported
	}
	return d.call("link", []string{from, to}, func() error { return os.Link(from, to) })
}

func (d *testDisk) Remove(path string) error {
	return d.call("remove", []string{path}, func() error { return os.Remove(path) })
}

func (d *testDisk) RemoveAll(path string) error {
	return d.call("removeall", []string{path}, func() error { return os.RemoveAll(path) })
}

// noExchange is a disk that supports link, but not exchange.
type noExchange struct{ *testDisk }

func (noExchange) Exchange(string, string) error { return errors.ErrUnsupported }

// diskOrder tracks what would survive a crash of the machine: files whose bytes have been
// synced, and names whose directories have been synced.
type diskOrder struct {
	files, dirs map[string]bool // paths that have been synced after their last change
	targets     map[string]bool
	wrong       []string
	seen        int             // number of visible outputs
	placed      map[string]bool // visible outputs whose rename is not durable yet
	decided     bool
	// cut, if set, is called before each call of the disk. If it returns true, the call fails.
	cut func(name string, paths []string) bool
}

func newDiskOrder() *diskOrder {
	return &diskOrder{files: map[string]bool{}, dirs: map[string]bool{}, targets: map[string]bool{}, placed: map[string]bool{}}
}

func (o *diskOrder) need(ok bool, format string, args ...any) {
	if !ok {
		o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
	}
}

// whole requires that all files and directories below path are durable. why is a part of the
// message.
func (o *diskOrder) whole(path, why string) {
	_ = filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
		case e.IsDir():
			o.need(o.dirs[p], "%s: the names in %s may be lost", why, p)
		default:
			o.need(o.files[p], "%s: the bytes of %s may be lost", why, p)
		}
		return nil
	})
}

func (o *diskOrder) before(name string, paths []string) {
	from, to := paths[0], paths[len(paths)-1]
	switch {
	case name == "rename" && filepath.Base(to) == journalFile:
		for t := range o.targets {
			stage := stagingDir(t)
			o.need(o.dirs[filepath.Dir(stage)], "decide: %s may be lost", stage)
			if stage != filepath.Dir(to) { // the staging directory that has the journal is checked later, when the journal is removed
				o.need(o.dirs[stage], "decide: the names in %s may be lost", stage)
			}
			o.need(o.files[filepath.Join(stage, sealFile)], "decide: the seal in %s may be lost", stage)
			if _, err := os.Lstat(filepath.Join(stage, wholeFile)); err == nil {
				o.need(o.files[filepath.Join(stage, wholeFile)], "decide: %s may be lost", filepath.Join(stage, wholeFile))
			} else if parts, err := findParts(stage, partsDir); err == nil {
				o.whole(parts, "decide")
			}
		}
		o.need(o.files[from], "decide: the journal may be lost")
	case (name == "rename" || name == "renamenew" || name == "exchange") && o.targets[to]:
		o.seen++
		o.whole(from, "place")
		o.need(o.decided || len(o.targets) == 1, "place: %s before it is decided", to)
		o.placed[to] = true
	case name == "remove" && filepath.Base(from) == sealFile && o.files[from]:
		for t := range o.placed {
			o.need(false, "finish: %s may not be in its place", t)
		}
	}
}

func (o *diskOrder) after(name string, paths []string) {
	from, to := paths[0], paths[len(paths)-1]
	switch name {
	case "sync":
		o.files[from] = true
	case "syncdir":
		o.dirs[from] = true
		o.decided = o.decided || o.files[filepath.Join(from, journalFile)]
		for t := range o.placed {
			if filepath.Dir(t) == from {
				delete(o.placed, t)
			}
		}
	default:
		if name == "create" {
			o.files[from] = false
		}
		if name == "rename" || name == "renamenew" {
			o.files[to], o.dirs[to] = o.files[from], o.dirs[from]
		}
		o.dirs[filepath.Dir(from)], o.dirs[filepath.Dir(to)] = false, false
	}
}
