// Package faultydisk is a file system for tests with faults that depend on a seed: it loses and
// alters bytes and refuses operations. It reports which of the faults affected a read.
//
//	d := faultydisk.New(disk.OS(), seed, faultydisk.Plan{Every: 20})
//	… run something whose files are in d …
//	for _, f := range d.Faults() {
//		if f.Read { … } // it was given wrong bytes, or refused
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

// Faults of writes without an error: later reads return other bytes.
const (
	FlipBit   Kind = iota // one bit is flipped
	ZeroRange             // some bytes, or all of a write, are zero
	Repeat                // the bytes before are repeated in place of those written
	Swap                  // two halves of a write have changed places
	Truncate              // the file ends early from now on
)

// Refusals, with an error.
const (
	NoSpace   Kind = iota + 10 // a file is not made, or only a part of a write fits
	ReadError                  // the medium does not give bytes
)

// Permitted behaviour that changes no result.
const (
	ShortRead Kind = iota + 20 // a read gives fewer bytes than it could, and no error
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

// Damages reports whether reads return bytes that differ from those written.
func (k Kind) Damages() bool { return k <= Truncate }

// Refuses reports whether an operation ends with an error.
func (k Kind) Refuses() bool { return k == NoSpace || k == ReadError }

// All returns every kind.
func All() []Kind {
	return []Kind{FlipBit, ZeroRange, Repeat, Swap, Truncate, NoSpace, ReadError, ShortRead, SlowRead}
}

// Plan says what goes wrong, and how often.
type Plan struct {
	// Kinds are the kinds that may happen; none means All.
	Kinds []Kind
	// Every is the mean number of operations on a file between two faults; 0 means
	// that there are none.
	Every int
	// Most bounds the faults of a Disk; 0 means no bound.
	Most int
}

// Fault is something that went wrong.
type Fault struct {
	Kind           Kind
	File           string // its path
	Offset, Length int64  // the bytes concerned
	// Read says that affected bytes were read, or that the operation was refused.
	Read bool
}

// Disk is the file system. The faults of a file depend on the seed, on the file's name, and on
// the operations on it. For a temporary file, its pattern and the number of earlier ones
// replace the name.
type Disk struct {
	under disk.FS
	seed  uint64
	plan  Plan

	mu     sync.Mutex
	faults []*Fault
	made   map[string]int // temporary files, by pattern
	files  map[string]*content
}

// New returns a file system that keeps its files in another one.
func New(under disk.FS, seed uint64, plan Plan) *Disk {
	if len(plan.Kinds) == 0 {
		plan.Kinds = All()
	}
	return &Disk{under: under, seed: seed, plan: plan, made: map[string]int{}, files: map[string]*content{}}
}

// Faults returns what has gone wrong so far.
func (d *Disk) Faults() []Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	faults := make([]Fault, len(d.faults))
	for i, f := range d.faults {
		faults[i] = *f
	}
	return faults
}

// Read returns the faults whose bytes were read or that were refused.
func (d *Disk) Read() []Fault {
	return slices.DeleteFunc(d.Faults(), func(f Fault) bool { return !f.Read })
}

// content is the Disk's record of a file, shared by all its open handles; Disk.mu guards it.
type content struct {
	draw    *rand.Rand
	size    int64
	cut     int64 // where it ends early; -1 if it does not
	cutting *Fault
	damage  []*Fault
}

func (d *Disk) newContent(key string) *content {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	return &content{draw: rand.New(rand.NewPCG(d.seed, h.Sum64())), cut: -1}
}

// strike decides whether one of the kinds happens at an operation.
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

// refuse decides whether there is no room for a file.
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
