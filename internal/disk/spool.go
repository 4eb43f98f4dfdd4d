package disk

import (
	"errors"
	"io"
	"sync"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// pieceSize is the number of bytes that share a checksum in a spool. It is large compared with the
// four bytes of a checksum, and small compared with usual reads.
const pieceSize = 64 << 10

// Spool is a file whose bytes are written once, in order, by one goroutine. Then any number of
// goroutines may read them at any offset.
type Spool struct {
	file   File
	size   int64
	sums   []uint32 // checksums of the pieces; the last piece may be shorter
	buffer []byte   // the piece being written
	pieces sync.Pool
}

// NewSpool returns a spool in f, an empty file. The caller closes f.
func NewSpool(f File) *Spool {
	s := &Spool{file: f, buffer: make([]byte, 0, pieceSize)}
	s.pieces.New = func() any { return new([pieceSize]byte) }
	return s
}

// Write appends data.
func (s *Spool) Write(data []byte) (int, error) {
	for at := 0; at < len(data); {
		n := copy(s.buffer[len(s.buffer):cap(s.buffer)], data[at:])
		s.buffer = s.buffer[:len(s.buffer)+n]
		at += n
		if len(s.buffer) == cap(s.buffer) {
			if err := s.flush(); err != nil {
				return at, err
			}
		}
	}
	return len(data), nil
}

// Seal writes the bytes that are still buffered. After Seal, only ReadAt and Size may be
// called.
func (s *Spool) Seal() error {
	var err error
	if len(s.buffer) > 0 {
		err = s.flush()
	}
	s.buffer = nil
	return err
}

func (s *Spool) flush() error {
	if _, err := s.file.Write(s.buffer); err != nil {
		return err
	}
	s.sums = append(s.sums, checksum.CRC32C(0, s.buffer))
	s.size += int64(len(s.buffer))
	s.buffer = s.buffer[:0]
	return nil
}

// Size returns the number of bytes of a sealed spool.
func (s *Spool) Size() int64 { return s.size }

// ReadAt reads and verifies len(b) bytes of a sealed spool from offset on. It returns io.EOF at the
// end of the written bytes, and a *DamagedError if the file ends earlier or its bytes have changed.
func (s *Spool) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errors.New("read spool: the offset is negative")
	}
	for n < len(b) {
		at := offset + int64(n)
		if at >= s.size {
			return n, io.EOF
		}
		piece := at / pieceSize
		from, length := piece*pieceSize, int(min(pieceSize, s.size-piece*pieceSize))
		if at == from && len(b)-n >= length { // a whole piece is read directly into b
			if err := s.read(piece, b[n:n+length]); err != nil {
				return n, err
			}
			n += length
			continue
		}
		k, err := s.copyOf(piece, b[n:], int(at-from), length)
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// copyOf copies bytes of a piece to b, beginning with the byte at index from of the piece.
// length is the length of the piece in bytes. It returns the number of bytes copied.
func (s *Spool) copyOf(piece int64, b []byte, from, length int) (int, error) {
	buffer := s.pieces.Get().(*[pieceSize]byte)
	defer s.pieces.Put(buffer)
	if err := s.read(piece, buffer[:length]); err != nil {
		return 0, err
	}
	return copy(b, buffer[from:length]), nil
}

// read reads a whole piece into b, which has the piece's length, and verifies it.
func (s *Spool) read(piece int64, b []byte) error {
	if err := readFull(s.file, b, piece*pieceSize); err != nil {
		return err
	}
	if got := checksum.CRC32C(0, b); got != s.sums[piece] {
		return &DamagedError{File: s.file.Name(), Offset: piece * pieceSize, Length: int64(len(b)), Err: errChecksum(got, s.sums[piece])}
	}
	return nil
}
