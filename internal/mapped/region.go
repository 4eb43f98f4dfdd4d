package mapped

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/memrange"
)

// ErrUnsupported says that this operating system or file system cannot map files.
var ErrUnsupported = errors.New("files cannot be mapped here")

// RoomError says that a file could not be made, or has no room on its disk.
type RoomError struct{ Err error }

// Error implements error.
func (e *RoomError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RoomError) Unwrap() error { return e.Err }

// Region is the memory of a batch, or of a block of bytes.
type Region struct {
	files *Files
	hint  int64
	parts []part
	free  []byte       // unused bytes of the last part
	held  atomic.Int64 // number of buffers in use, and one for Hold
}

// part is a mapping, or a piece of one that several regions share.
type part struct {
	of   *mapping
	data []byte
	n    int // bytes of data in use
	sum  uint32
}

const alignment = 64 // of buffers

// Hold returns the batch that make builds with buffers from mem, which are mapped files.
// size is about the number of bytes needed. The caller owns the batch; the memory is freed with
// the last reference to one of its buffers.
//
// The checksums are computed from the files when make returns. By then pages may have been
// written to the disk and read back. So compare, which is called next, compares the batch with
// its source. A page that the disk cannot read back is an error, in make and in compare.
func (f *Files) Hold(size int64, make func(mem memory.Allocator) (arrow.Record, error), compare func(rows arrow.Record) error) (arrow.Record, *Region, error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // for pages that the disk cannot read back
	r := newRegion(f, size)
	filled := false
	defer func() {
		if !filled {
			r.unmap() // releases the columns made so far
		}
	}()
	rows, err := r.fill(make, compare)
	if err != nil {
		return nil, nil, err
	}
	filled = true
	r.release()
	return rows, r, nil
}

// HoldBytes returns the bytes of a mapped file. They are consecutive pieces of given
// sizes; each is zeroed and then filled by fill. A piece is filled in memory, and its checksum
// is computed there, before it is in the file. Release frees the bytes.
func (f *Files) HoldBytes(pieces []int, fill func(piece int, b []byte) error) (held []byte, region *Region, err error) {
	n, largest := 0, 0
	for _, size := range pieces {
		n, largest = n+size, max(largest, size)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	r := newRegion(f, int64(n))
	filled := false
	defer func() {
		if !filled {
			r.unmap()
		}
	}()
	defer r.recovered(&err)
	b, err := r.allocate(max(n, 1))
	if err != nil {
		return nil, nil, err
	}
	at, sum, own := 0, uint32(0), make([]byte, largest)
	for i, size := range pieces {
		piece := own[:size:size]
		clear(piece)
		if err := fill(i, piece); err != nil {
			return nil, nil, err
		}
		sum = disk.Checksum(sum, piece)
		at += copy(b[at:], piece)
	}
	r.parts[0].n, r.parts[0].sum = n, sum
	filled = true
	return b[:n:n], r, nil
}

func newRegion(f *Files, size int64) *Region {
	r := &Region{files: f, hint: size}
	r.held.Store(1)
	return r
}

// seal records the checksums of the region's present contents.
func (r *Region) seal() {
	for i := range r.parts {
		p := &r.parts[i]
		p.n, p.sum = len(p.data), disk.Checksum(0, p.data)
	}
}

// Release frees the memory of HoldBytes.
func (r *Region) Release() { r.release() }

// fill calls make, seals the region and calls compare. It turns the panics of allocate, and
// faults of the region's pages, into errors.
func (r *Region) fill(make func(mem memory.Allocator) (arrow.Record, error), compare func(rows arrow.Record) error) (rows arrow.Record, err error) {
	defer r.recovered(&err)
	made, err := make(allocator{r})
	if err != nil {
		return nil, err
	}
	defer func() {
		if rows == nil { // buffers that are not the region's
			made.Release()
		}
	}()
	r.seal()
	if err := compare(made); err != nil {
		return nil, err
	}
	return made, nil
}

// recovered is to be deferred while the region is filled: it turns a panic into an error if the
// region is the cause.
func (r *Region) recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case noRoom:
		*err = p.err
	case interface{ Addr() uintptr }: // a memory fault
		i := slices.IndexFunc(r.parts, func(own part) bool { return own.contains(p.Addr()) })
		if i < 0 {
			panic(p)
		}
		*err = fmt.Errorf("fill the %d bytes of the file %s, which is mapped: the disk does not hold them (%v)", len(r.parts[i].data), r.parts[i].of.name, p)
	default:
		panic(p)
	}
}

// contains reports whether an address is in the part.
func (p *part) contains(address uintptr) bool {
	from := memrange.Address(p.data)
	return address >= from && address-from < uintptr(len(p.data))
}

// noRoom is the value with which Allocate panics, as an Allocator returns no errors.
type noRoom struct{ err error }

// allocator is the Allocator of a Region for make.
type allocator struct{ r *Region }

// Allocate implements memory.Allocator.
func (a allocator) Allocate(n int) []byte {
	if n == 0 {
		return []byte{}
	}
	b, err := a.r.allocate(n)
	if err != nil {
		panic(noRoom{err})
	}
	a.r.held.Add(1)
	return b
}

// Reallocate implements memory.Allocator. The room of b is not used again.
func (a allocator) Reallocate(n int, b []byte) []byte {
	larger := a.Allocate(n)
	copy(larger, b)
	a.Free(b)
	return larger
}

// Free implements memory.Allocator.
func (a allocator) Free(b []byte) {
	if len(b) > 0 {
		a.r.release()
	}
}

// allocate returns n > 0 bytes of a file.
func (r *Region) allocate(n int) ([]byte, error) {
	need := (n + alignment - 1) &^ (alignment - 1)
	if need > len(r.free) {
		p, err := r.files.part(max(int64(need), r.hint))
		if err != nil {
			return nil, &RoomError{err}
		}
		r.parts, r.free, r.hint = append(r.parts, p), p.data, 0
	}
	b := r.free[:n:need]
	r.free = r.free[need:]
	return b, nil
}

// release drops one reference, and frees the memory with the last.
func (r *Region) release() {
	if r.held.Add(-1) == 0 {
		r.unmap()
	}
}

func (r *Region) unmap() {
	for _, p := range r.parts {
		p.of.release()
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

// Verify reads the whole region, and fails if it has changed since Hold returned. The caller
// holds the batch.
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
			err = p.damaged(fmt.Errorf("some cannot be read (%v)", fault))
		}
	}()
	if got := disk.Checksum(0, p.data[:p.n]); got != p.sum {
		return p.damaged(fmt.Errorf("the checksum is %08x where %08x was written", got, p.sum))
	}
	return nil
}

func (p *part) damaged(err error) error {
	return &disk.DamagedError{File: p.of.name, Length: int64(len(p.data)), Err: err}
}
