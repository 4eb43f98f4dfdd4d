package faultydisk

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/superstep-ml/superstep/internal/disk"
)

// file is an open file.
type file struct {
	disk.File
	disk    *Disk
	content *content
	at      int64 // offset of the next Read or Write
}

// Write implements io.Writer, with the disk's faults.
func (f *file) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return f.File.Write(b)
	}
	wrong, room, refused := f.spoil(b)
	if refused != nil {
		n, err := f.File.Write(b[:room])
		f.wrote(n)
		if err == nil {
			err = refused
		}
		return n, err
	}
	n, err := f.File.Write(wrong)
	f.wrote(n)
	return n, err
}

func (f *file) wrote(n int) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.at += int64(n)
	f.content.size = max(f.content.size, f.at)
}

// spoil draws a fault of a write. It returns the bytes to write in place of b or, with ENOSPC, the
// number of bytes of b that still fit.
func (f *file) spoil(b []byte) (wrong []byte, room int, err error) {
	d, c := f.disk, f.content
	d.mu.Lock()
	defer d.mu.Unlock()
	kind, ok := d.strike(c, FlipBit, ZeroRange, Repeat, Swap, Truncate, NoSpace)
	if !ok {
		return b, 0, nil
	}
	wrong = slices.Clone(b)
	switch kind {
	case FlipBit:
		wrong[c.draw.IntN(len(wrong))] ^= 1 << c.draw.IntN(8)
	case ZeroRange:
		lo := c.draw.IntN(len(wrong))
		hi := lo + 1 + c.draw.IntN(len(wrong)-lo)
		if c.draw.IntN(4) == 0 {
			lo, hi = 0, len(wrong)
		}
		clear(wrong[lo:hi])
	case Repeat:
		n := min(int64(len(b)), f.at)
		if k, err := f.File.ReadAt(wrong[:n], f.at-n); err != nil || int64(k) != n {
			copy(wrong, b) // the earlier bytes cannot be read: write b without a fault
		}
	case Swap:
		half := len(wrong) / 2
		copy(wrong, b[half:2*half])
		copy(wrong[half:], b[:half])
	case Truncate:
		if c.cut >= 0 {
			return b, 0, nil // a file is truncated only once
		}
		c.cut = c.draw.Int64N(f.at + int64(len(b)))
		c.cutting = d.note(Fault{Kind: Truncate, File: f.Name(), Offset: c.cut})
		return b, 0, nil
	case NoSpace:
		d.note(Fault{Kind: NoSpace, File: f.Name(), Offset: f.at, Length: int64(len(b)), Read: true})
		return nil, c.draw.IntN(len(b)), &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	if lo, hi, differ := difference(b, wrong); differ {
		c.damage = append(c.damage, d.note(Fault{Kind: kind, File: f.Name(), Offset: f.at + int64(lo), Length: int64(hi - lo)}))
	}
	return wrong, 0, nil
}

// difference returns the smallest range [lo, hi) outside which a and b, of equal length, are
// equal. differ is false if they are equal everywhere.
func difference(a, b []byte) (lo, hi int, differ bool) {
	if bytes.Equal(a, b) {
		return 0, 0, false
	}
	for lo = 0; a[lo] == b[lo]; lo++ {
	}
	for hi = len(a); a[hi-1] == b[hi-1]; hi-- {
	}
	return lo, hi, true
}

// Read implements io.Reader.
func (f *file) Read(b []byte) (int, error) {
	n, err := f.read(b, f.at, f.File.Read)
	f.at += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(b []byte, offset int64) (int, error) {
	return f.read(b, offset, func(b []byte) (int, error) { return f.File.ReadAt(b, offset) })
}

func (f *file) read(b []byte, offset int64, from func([]byte) (int, error)) (int, error) {
	end, wanted := false, len(b)
	f.disk.mu.Lock()
	if cut := f.content.cut; cut >= 0 && offset+int64(len(b)) > cut {
		end = offset+int64(len(b)) > cut && cut < f.content.size
		b = b[:max(0, min(int64(len(b)), cut-offset))]
	}
	kind, ok := f.disk.strike(f.content, ReadError, ShortRead, SlowRead)
	if ok && kind != ReadError {
		f.disk.note(Fault{Kind: kind, File: f.Name(), Offset: offset, Length: int64(len(b))})
	}
	if ok && kind == ReadError && wanted > 0 {
		f.disk.note(Fault{Kind: kind, File: f.Name(), Offset: offset, Length: int64(wanted), Read: true})
	}
	short := len(b)
	if ok && kind == ShortRead && short > 1 {
		short = 1 + f.content.draw.IntN(short-1)
		end = false // this read does not reach the early end
	}
	f.disk.mu.Unlock()
	switch {
	case ok && kind == ReadError && wanted > 0:
		return 0, &os.PathError{Op: "read", Path: f.Name(), Err: syscall.EIO}
	case ok && kind == SlowRead:
		for range 3 {
			runtime.Gosched()
		}
	}
	n, err := 0, error(nil)
	if short > 0 || !end {
		n, err = from(b[:short])
	}
	f.saw(offset, n, end)
	if err == nil && end && n < wanted {
		err = io.EOF
	}
	return n, err
}

// saw records which faults affected a read of n bytes at offset. end says that the read reached
// the early end of a truncated file.
func (f *file) saw(offset int64, n int, end bool) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	for _, fault := range f.content.damage {
		if fault.Offset < offset+int64(n) && offset < fault.Offset+fault.Length {
			fault.Read = true
		}
	}
	if end {
		f.content.cutting.Read = true
	}
}
