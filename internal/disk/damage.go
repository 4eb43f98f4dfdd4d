package disk

import (
	"errors"
	"fmt"
	"io"
)

// DamagedError says that a file does not have the bytes that were written to it.
type DamagedError struct {
	File   string // path of the file
	Offset int64  // offset of the first byte to read
	Length int64  // number of bytes to read
	Err    error  // kind of damage; matches io.ErrUnexpectedEOF if the file ends early
}

// Error says which file is damaged, at which bytes, and what the user can do.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the file %s is damaged: of its %d bytes from byte %d, %v; the disk lost them or another program changed them: run the job again, and with another directory for temporary files if it fails again",
		e.File, e.Length, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }

// errChecksum returns the error for bytes whose checksum is got, and was want when they were
// written.
func errChecksum(got, want uint32) error {
	return fmt.Errorf("the checksum is %08x where %08x was written", got, want)
}

// earlyEnd is the error of a file that ends early: the file has only got of the bytes to read.
type earlyEnd struct{ got int64 }

func (e earlyEnd) Error() string { return fmt.Sprintf("only %d are there", e.got) }

// Unwrap makes the error match io.ErrUnexpectedEOF, never io.EOF.
func (e earlyEnd) Unwrap() error { return io.ErrUnexpectedEOF }

// readFull reads len(b) bytes of f from offset on. If the file ends before the last of these
// bytes, it fails with a *DamagedError. Other errors name the file.
func readFull(f File, b []byte, offset int64) error {
	for at := 0; at < len(b); {
		n, err := f.ReadAt(b[at:], offset+int64(at))
		at += n
		switch {
		case at == len(b):
			return nil
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return &DamagedError{File: f.Name(), Offset: offset, Length: int64(len(b)), Err: earlyEnd{int64(at)}}
		case err != nil:
			return fmt.Errorf("read %d bytes from byte %d of %s: %w", len(b), offset, f.Name(), err)
		case n == 0:
			return fmt.Errorf("read %d bytes from byte %d of %s: %w", len(b), offset, f.Name(), io.ErrNoProgress)
		}
	}
	return nil
}
