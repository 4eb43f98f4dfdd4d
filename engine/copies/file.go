package copies

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// A file has a state of a queue of which one process holds all pieces. Numbers are in little endian.
//
//	0  magic "SSPS"     12  superstep          24  length of the ID of the job
//	4  version          16  flags (flagEnded)  28  length of the name of the queue
//	8  attempt          20  number of pieces
//
// The ID of the job and the name of the queue follow, and the CRC-32C of everything before. Then come the
// pieces in their order. Each has 16 bytes before it: its length in 8 bytes, the upper half of its checksum
// (package checksum), and the CRC-32C of its number, in 4 bytes, and these 12 bytes. Nothing follows the
// last piece. So no length is used before it has been checked, and a file that is torn, damaged, or has
// pieces in another order is an error.
const (
	fileMagic     = "SSPS"
	fileVersion   = 1
	fileHeadBytes = 32
	pieceHead     = 16
	maxJob        = 1 << 10 // bytes of the ID of a job
)

// fileHead is the head of a file.
type fileHead struct {
	job     string
	attempt int
	State
}

// append appends the encoding of the head.
func (h *fileHead) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, fileMagic...)
	var flags uint32
	if h.Ended {
		flags = flagEnded
	}
	for _, v := range []uint32{fileVersion, uint32(h.attempt), uint32(h.Superstep), flags, uint32(h.Of), uint32(len(h.job)), uint32(len(h.Queue))} {
		b = le.AppendUint32(b, v)
	}
	b = append(append(b, h.job...), h.Queue...)
	return le.AppendUint32(b, checksum.CRC32C(0, b))
}

// writeFile writes the file of a state that the Store holds.
func (s *Store) writeFile(ctx context.Context, w *bufio.Writer, h fileHead) error {
	if _, err := w.Write(h.append(nil)); err != nil {
		return err
	}
	for number := range h.Of {
		p := s.acquire(h.State, number)
		if p == nil {
			return fmt.Errorf("piece %d of %s is not held", number, h.State)
		}
		err := writePiece(ctx, w, number, p)
		s.release(p)
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// writePiece writes a piece and what is before it.
func writePiece(ctx context.Context, w io.Writer, number int, p *piece) error {
	if _, err := w.Write(appendPieceHead(nil, number, len(p.data), p.sum)); err != nil {
		return err
	}
	for rest := p.data; len(rest) > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := w.Write(rest[:min(len(rest), stepBytes)])
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// appendPieceHead appends what is before a piece.
func appendPieceHead(b []byte, number, length int, sum checksum.Sum) []byte {
	le := binary.LittleEndian
	start := len(b)
	b = le.AppendUint64(b, uint64(length))
	b = le.AppendUint32(b, sum.Bits())
	return le.AppendUint32(b, pieceHeadSum(number, b[start:]))
}

// pieceHeadSum returns the checksum of the first 12 bytes before a piece, and of its number.
func pieceHeadSum(number int, head []byte) uint32 {
	return checksum.CRC32C(checksum.CRC32C(0, binary.LittleEndian.AppendUint32(nil, uint32(number))), head)
}

// fileReader reads a file that may have any content.
type fileReader struct {
	r    *bufio.Reader
	left int64 // bytes of the file that were not read
	fileHead
}

// openFile reads the head of a file of the given size.
func openFile(from io.Reader, size int64) (*fileReader, error) {
	f := &fileReader{r: bufio.NewReaderSize(from, checksum.PieceBytes), left: size}
	if err := f.readHead(); err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	return f, nil
}

// read reads n bytes, which the caller has bounded.
func (f *fileReader) read(b []byte) error {
	if int64(len(b)) > f.left {
		return io.ErrUnexpectedEOF
	}
	n, err := io.ReadFull(f.r, b)
	f.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

var errFileSum = errors.New("its checksum is wrong")

// readHead reads and checks the head.
func (f *fileReader) readHead() error {
	le := binary.LittleEndian
	b := make([]byte, fileHeadBytes)
	if err := f.read(b); err != nil {
		return err
	}
	if string(b[:4]) != fileMagic {
		return errors.New("it is no state of a queue")
	}
	if v := le.Uint32(b[4:]); v != fileVersion {
		return fmt.Errorf("it has version %d, and this program reads version %d", v, fileVersion)
	}
	job, queue := le.Uint32(b[24:]), le.Uint32(b[28:])
	if job > maxJob || queue > maxQueue {
		return fmt.Errorf("names of %d and %d bytes", job, queue)
	}
	b = append(b, make([]byte, job+queue+sumBytes)...)
	if err := f.read(b[fileHeadBytes:]); err != nil {
		return err
	}
	end := len(b) - sumBytes
	if checksum.CRC32C(0, b[:end]) != le.Uint32(b[end:]) {
		return errFileSum
	}
	names := string(b[fileHeadBytes:end])
	flags := le.Uint32(b[16:])
	f.job = names[:job]
	f.attempt = int(le.Uint32(b[8:]))
	f.State = State{Queue: names[job:], Superstep: int(le.Uint32(b[12:])), Ended: flags == flagEnded, Of: int(le.Uint32(b[20:]))}
	if flags > flagEnded || f.attempt < 1 || f.attempt > math.MaxInt32 {
		return fmt.Errorf("flags %d and attempt %d", flags, f.attempt)
	}
	return f.check()
}

// piece reads the piece with the given number into memory from take.
func (f *fileReader) piece(number int, take func(n int) *piece) (*piece, error) {
	le := binary.LittleEndian
	b := make([]byte, pieceHead)
	if err := f.read(b); err != nil {
		return nil, err
	}
	if pieceHeadSum(number, b[:12]) != le.Uint32(b[12:]) {
		return nil, errFileSum
	}
	length := le.Uint64(b)
	if length > MaxPiece || int64(length) > f.left {
		return nil, fmt.Errorf("%d bytes, of %d that are left: %w", length, f.left, io.ErrUnexpectedEOF)
	}
	p := take(int(length))
	if cap(p.data) < int(length) {
		p.data = make([]byte, 0, roomFor(int(length)))
	}
	p.data = p.data[:length]
	err := f.read(p.data)
	p.sum = checksum.Of(p.data)
	if err == nil && p.sum.Bits() != le.Uint32(b[8:]) {
		err = errFileSum
	}
	return p, err
}

// readFile puts all pieces of a file into the Store. If one cannot be read, it puts none.
func (s *Store) readFile(f *fileReader) error {
	for number := range f.Of {
		p, err := f.piece(number, func(n int) *piece { return s.take(f.Queue, n) })
		if err != nil {
			if p != nil {
				s.release(p)
			}
			s.dropState(f.State)
			return fmt.Errorf("piece %d of %d: %w", number, f.Of, err)
		}
		p.own = true
		s.put(f.State, number, p)
	}
	if f.left > 0 {
		s.dropState(f.State)
		return fmt.Errorf("%d bytes follow its end", f.left)
	}
	s.noteRead(f.State)
	return nil
}
