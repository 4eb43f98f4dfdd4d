package mapped

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/memrange"
)

// ErrUnsupported says that this operating system or file system cannot map files.
var ErrUnsupported = errors.New("files cannot be mapped here")

// RoomError says that a file could not be created or mapped, or that its disk is too full.
type RoomError struct{ Err error }

// Error implements error.
func (e *RoomError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RoomError) Unwrap() error { return e.Err }

// Region is the mapped memory of a batch (Hold) or of bytes (HoldBytes).
type Region struct {
	files *Files
	hint  int64 // minimal size in bytes of the first part
	parts []part
	free  []byte       // unused bytes of the last part
	held  atomic.Int64 // number of buffers in use, plus 1 until Hold returns or Release is called

	released func() // called before the memory is freed; nil if there is nothing to do
}

// part is a whole mapping, or a piece of a mapping that several regions share.
type part struct {
	of   *mapping
	data []byte
	n    int    // number of bytes of data that sum covers
	sum  uint32 // CRC-32C
}

const alignment = 64 // of buffers, in bytes

// Hold calls make to build a batch, and returns the batch and its region. The buffers that make
// allocates from mem lie in mapped files. size is the approximate number of bytes needed. The
// caller owns the batch. The memory is freed when the last reference to its buffers is released.
//
// When make has returned, Hold computes the checksums from the mapped memory. By then the system
// may have written pages to the disk and read them back damaged. So Hold then calls compare, which
// must compare the batch with its source. If the disk cannot read a page back while make or compare
// runs, Hold returns an error.
func (f *Files) Hold(size int64, make func(mem memory.Allocator) (arrow.Record, error), compare func(rows arrow.Record) error) (arrow.Record, *Region, error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // reading a damaged page then panics instead of ending the process
	r := newRegion(f, size)
	filled := false
	defer func() {
		if !filled {
			r.unmap() // frees the memory of columns that were already built
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

// HoldBytes returns bytes in a mapped file. They consist of consecutive pieces; pieces[i] is
// the size of piece i in bytes. HoldBytes calls fill(i, b) for every piece i, with b zeroed. b
// is ordinary memory: the checksum is computed from it before it is copied into the file. The
// region's Release frees the bytes.
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
		sum = checksum.CRC32C(sum, piece)
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

// seal computes the checksums of all parts of the region.
func (r *Region) seal() {
	for i := range r.parts {
		p := &r.parts[i]
		p.n, p.sum = len(p.data), checksum.CRC32C(0, p.data)
	}
}

// Release frees the memory of a region of HoldBytes.
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
		if rows == nil { // some buffers of made may be outside the region
			made.Release()
		}
	}()
	r.seal()
	if err := compare(made); err != nil {
		return nil, err
	}
	return made, nil
}

// recovered is deferred while the region is filled. It turns a panic of allocate and a memory fault
// in the region into *err. It repeats other panics.
func (r *Region) recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case noRoom:
		*err = p.err
	case interface{ Addr() uintptr }: // a memory fault
		i := r.partAt(p.Addr())
		if i < 0 {
			panic(p)
		}
		*err = fmt.Errorf("fill the %d bytes of the file %s, which is mapped: the disk does not hold them (%v)", len(r.parts[i].data), r.parts[i].of.name, p)
	default:
		panic(p)
	}
}

// contains reports whether an address lies in the part.
func (p *part) contains(address uintptr) bool {
	from := memrange.Address(p.data)
	return address >= from && address-from < uintptr(len(p.data))
}

// noRoom is the value with which Allocate panics, because a memory.Allocator cannot return an error.
type noRoom struct{ err error }

// allocator is the memory.Allocator that Hold passes to make.
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

// Reallocate implements memory.Allocator. It always copies b, because the memory of b cannot be
// enlarged or used again.
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

// allocate returns n > 0 bytes of a mapped file.
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

// release drops a reference to the region. It frees the memory if that was the last reference.
func (r *Region) release() {
	if r.held.Add(-1) == 0 {
		r.unmap()
	}
}

func (r *Region) unmap() {
	if r.released != nil {
		r.released()
	}
	for _, p := range r.parts {
		p.of.release()
	}
	r.parts, r.free = nil, nil
}

// Size returns the number of bytes of the region.
func (r *Region) Size() (n int64) {
	for _, p := range r.parts {
		n += int64(len(p.data))
	}
	return n
}

// Verify reads the whole region. It fails if a byte has changed since the checksums were computed,
// or cannot be read. The caller must still hold the batch or the bytes.
func (r *Region) Verify() error {
	for i := range r.parts {
		if err := r.parts[i].verify(); err != nil {
			return err
		}
	}
	return nil
}

// Read calls f, which reads the batch or the bytes. A page of the region that cannot be read makes f fail
// with an error that names the file.
func (r *Region) Read(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a memory fault
			i := r.partAt(p.Addr())
			if i < 0 {
				panic(p)
			}
			err = r.parts[i].damaged(fmt.Errorf("some cannot be read (%v)", p))
		default:
			panic(p)
		}
	}()
	return f()
}

// partAt returns the index of the part with an address, or -1.
func (r *Region) partAt(address uintptr) int {
	return slices.IndexFunc(r.parts, func(own part) bool { return own.contains(address) })
}

func (p *part) verify() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = p.damaged(fmt.Errorf("some cannot be read (%v)", fault))
		}
	}()
	if got := checksum.CRC32C(0, p.data[:p.n]); got != p.sum {
		return p.damaged(fmt.Errorf("the checksum is %08x where %08x was written", got, p.sum))
	}
	return nil
}

func (p *part) damaged(err error) error {
	return &disk.DamagedError{File: p.of.name, Length: int64(len(p.data)), Err: err}
}
