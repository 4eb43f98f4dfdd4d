// Package faultydisk is a file system with faults, for tests. It loses and alters bytes and refuses
// operations at random, depending on a seed. It records all faults, and which of them affected a
// reader.
//
//	d := faultydisk.New(disk.OS(), seed, faultydisk.Plan{Every: 20})
//	… run something whose files are in d …
//	for _, f := range d.Faults() {
//		if f.Read { … } // wrong bytes were returned, or the operation failed
//	}
package faultydisk

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/superstep-ml/superstep/internal/disk"
)

// Kind is the kind of a fault.
type Kind int

// These kinds are writes that damage the file but return no error. Later reads return other bytes
// than were written.
const (
	FlipBit   Kind = iota // one bit of the write is flipped
	ZeroRange             // some or all bytes of the write become zero
	Repeat                // the bytes written before are written again in place of the new bytes
	Swap                  // the two halves of the write are exchanged
	Truncate              // the file ends early from now on
)

// These kinds are operations that fail with an error.
const (
	NoSpace   Kind = iota + 10 // no file is created, or only a part of a write fits: ENOSPC
	ReadError                  // a read fails: EIO
)

// These kinds are permitted behaviour that must not change a result.
const (
	ShortRead Kind = iota + 20 // a read returns fewer bytes than it could, and no error
	SlowRead                   // other goroutines run before a read returns
)

// String returns the kind's name.
func (k Kind) String() string {
	names := map[Kind]string{FlipBit: "flip bit", ZeroRange: "zero range", Repeat: "repeat", Swap: "swap",
		Truncate: "truncate", NoSpace: "no space", ReadError: "read error", ShortRead: "short read", SlowRead: "slow read"}
	if name, ok := names[k]; ok {
		return name
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Damages reports whether faults of this kind make later reads return other bytes than were
// written.
func (k Kind) Damages() bool { return k <= Truncate }

// Refuses reports whether faults of this kind make an operation fail.
func (k Kind) Refuses() bool { return k == NoSpace || k == ReadError }

// All returns every kind.
func All() []Kind {
	return []Kind{FlipBit, ZeroRange, Repeat, Swap, Truncate, NoSpace, ReadError, ShortRead, SlowRead}
}

// Plan says which faults a Disk has, and how often.
type Plan struct {
	// Kinds are the kinds of faults that may happen. An empty list means All.
	Kinds []Kind
	// Every is the mean number of operations on a file between two faults. 0 means that there
	// are no faults.
	Every int
	// Most is the maximal number of faults of a Disk. 0 means no maximum.
	Most int
}

// Fault is a fault that has happened.
type Fault struct {
	Kind           Kind
	File           string // path of the file
	Offset, Length int64  // range of the affected bytes
	// Read says that affected bytes were read, or that the operation failed.
	Read bool
}

// Disk is the file system. The faults of a file depend on the seed, on the file's name, and on
// the operations on it. For a temporary file, its pattern and the number of earlier files with
// that pattern are used in place of the name.
type Disk struct {
	under disk.FS
	seed  uint64
	plan  Plan

	mu     sync.Mutex
	faults []*Fault
	made   map[string]int // number of temporary files created, by pattern
	files  map[string]*content
}

// New returns a Disk that stores its files in the file system under.
func New(under disk.FS, seed uint64, plan Plan) *Disk {
	if len(plan.Kinds) == 0 {
		plan.Kinds = All()
	}
	return &Disk{under: under, seed: seed, plan: plan, made: map[string]int{}, files: map[string]*content{}}
}

// Faults returns all faults so far.
func (d *Disk) Faults() []Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	faults := make([]Fault, len(d.faults))
	for i, f := range d.faults {
		faults[i] = *f
	}
	return faults
}

// Read returns the faults with Read set: affected bytes were read, or the operation failed.
func (d *Disk) Read() []Fault {
	return slices.DeleteFunc(d.Faults(), func(f Fault) bool { return !f.Read })
}

// content is the Disk's record of a file, shared by all its open handles; Disk.mu guards it.
type content struct {
	draw    *rand.Rand
	size    int64
	cut     int64    // offset at which a Truncate ends the file; -1 if there was no Truncate
	cutting *Fault   // the fault that set cut
	damage  []*Fault // faults of other kinds for which Damages reports true
}

func (d *Disk) newContent(key string) *content {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	return &content{draw: rand.New(rand.NewPCG(d.seed, h.Sum64())), cut: -1}
}

// strike draws whether an operation on c has a fault, and one of kinds for it. It never draws a
// kind that the plan does not have.
func (d *Disk) strike(c *content, kinds ...Kind) (Kind, bool) {
	if d.plan.Every <= 0 || c.draw.IntN(d.plan.Every) > 0 || d.plan.Most > 0 && len(d.faults) >= d.plan.Most {
		return 0, false
	}
	kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return !slices.Contains(d.plan.Kinds, k) })
	if len(kinds) == 0 {
		return 0, false
	}
	return kinds[c.draw.IntN(len(kinds))], true
}

func (d *Disk) note(f Fault) *Fault {
	d.faults = append(d.faults, &f)
	return &f
}

// OpenFile implements disk.FS.
func (d *Disk) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	d.mu.Lock()
	c := d.files[path]
	if c == nil || flag&os.O_TRUNC != 0 {
		c = d.newContent(filepath.Base(path))
	}
	err := d.refuse(c, path, flag&os.O_CREATE != 0)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f, err := d.under.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return d.opened(f, c, flag&os.O_APPEND != 0), nil
}

// CreateTemp implements disk.FS.
func (d *Disk) CreateTemp(dir, pattern string) (disk.File, error) {
	d.mu.Lock()
	c := d.newContent(fmt.Sprintf("%s %d", pattern, d.made[pattern]))
	d.made[pattern]++
	err := d.refuse(c, filepath.Join(dir, pattern), true)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f, err := d.under.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return d.opened(f, c, false), nil
}

// refuse returns ENOSPC if the file at path is to be created and a NoSpace fault is drawn for it.
func (d *Disk) refuse(c *content, path string, create bool) error {
	if !create {
		return nil
	}
	if _, ok := d.strike(c, NoSpace); !ok {
		return nil
	}
	d.note(Fault{Kind: NoSpace, File: path, Read: true})
	return &os.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
}

func (d *Disk) opened(f disk.File, c *content, end bool) *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[f.Name()] = c
	o := &file{File: f, disk: d, content: c}
	if end {
		o.at = c.size
	}
	return o
}

// Remove implements disk.FS.
func (d *Disk) Remove(path string) error {
	d.mu.Lock()
	delete(d.files, path)
	d.mu.Unlock()
	return d.under.Remove(path)
}

// Rename implements disk.FS.
func (d *Disk) Rename(from, to string) error {
	err := d.under.Rename(from, to)
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.files[from]; err == nil && c != nil {
		delete(d.files, from)
		d.files[to] = c
	}
	return err
}

var _ disk.FS = (*Disk)(nil)
