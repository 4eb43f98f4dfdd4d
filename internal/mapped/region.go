package mapped

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/disk"
)

// ErrUnsupported says that files of this system, or of this file system, cannot be mapped.
var ErrUnsupported = errors.New("files cannot be mapped here")

// Region is the memory of a batch.
type Region struct {
	on    disk.FS
	dir   string
	hint  int64
	parts []part
	free  []byte       // of the last part
	held  atomic.Int64 // buffers, and one for Hold
}

// part is one mapping.
type part struct {
	name string // the file's, while it had one
	data []byte
	sum  uint32
}

const (
	alignment = 64      // of buffers
	leastPart = 1 << 16 // bytes of a mapping
)

// Hold returns a batch whose buffers make reserves from mem: memory that is the contents of
// files in dir. size is about the bytes it takes. The batch is the caller's; the memory goes
// with the last reference to one of its buffers.
func Hold(on disk.FS, dir string, size int64, make func(mem memory.Allocator) (arrow.Record, error)) (arrow.Record, *Region, error) {
	r := &Region{on: on, dir: dir, hint: size}
	r.held.Store(1)
	rows, err := r.fill(make)
	if err == nil {
		for i := range r.parts {
			r.parts[i].sum = disk.Checksum(0, r.parts[i].data)
		}
	}
	r.letGo()
	if err != nil {
		return nil, nil, err
	}
	return rows, r, nil
}

// fill calls make, and turns the panics of allocate into errors.
func (r *Region) fill(make func(mem memory.Allocator) (arrow.Record, error)) (rows arrow.Record, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case noRoom:
			rows, err = nil, p.err
		default:
			panic(p)
		}
	}()
	return make(allocator{r})
}

// noRoom is what allocate panics with, as an Allocator returns no errors.
type noRoom struct{ err error }

// allocator is a Region as make sees it.
type allocator struct{ r *Region }

// Allocate implements memory.Allocator.
func (a allocator) Allocate(n int) []byte { return a.r.allocate(n) }

// Reallocate implements memory.Allocator. What b took is not used again.
func (a allocator) Reallocate(n int, b []byte) []byte {
	larger := a.r.allocate(n)
	copy(larger, b)
	a.Free(b)
	return larger
}

// Free implements memory.Allocator.
func (a allocator) Free(b []byte) {
	if len(b) > 0 {
		a.r.letGo()
	}
}

func (r *Region) allocate(n int) []byte {
	if n == 0 {
		return nil
	}
	need := (n + alignment - 1) &^ (alignment - 1)
	if need > len(r.free) {
		p, err := newPart(r.on, r.dir, max(int64(need), r.hint, leastPart))
		if err != nil {
			panic(noRoom{err})
		}
		r.parts, r.free, r.hint = append(r.parts, p), p.data, 0
	}
	r.held.Add(1)
	b := r.free[:n:need]
	r.free = r.free[need:]
	return b
}

// letGo gives up one hold, and the memory with the last.
func (r *Region) letGo() {
	if r.held.Add(-1) > 0 {
		return
	}
	for _, p := range r.parts {
		unmap(p.data)
	}
	r.parts, r.free = nil, nil
}

// Size returns the bytes of the region.
func (r *Region) Size() (n int64) {
	for _, p := range r.parts {
		n += int64(len(p.data))
	}
	return n
}

// Verify reads all of the region, and fails where it is not what it was when Hold returned.
// The caller holds the batch.
func (r *Region) Verify() error {
	for i := range r.parts {
		if err := r.parts[i].verify(); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) verify() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("read the %d bytes of the file %s, which is mapped: the disk does not give them back (%v)", len(p.data), p.name, fault)
		}
	}()
	if got := disk.Checksum(0, p.data); got != p.sum {
		return &disk.DamagedError{File: p.name, Length: int64(len(p.data)), Err: fmt.Errorf("the checksum is %08x where %08x was written", got, p.sum)}
	}
	return nil
}
