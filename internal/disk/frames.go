package disk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// A frame has these bytes, with little-endian integers:
//
//	length   uint64  the number of bytes of the body
//	rows     uint64  the number of rows in the body, given by the writer
//	body     uint32  CRC-32C of the body
//	head     uint32  CRC-32C of the file's name, the frame's offset, the frame's
//	                 number in its stream, and the three fields above
//	…                the body
//
// The head consists of all fields before the body. A head is verified before its length is
// used. The checksum of a head covers its position, so that a frame that belongs to another
// offset or file is detected. The number of frames is kept in memory, so that missing frames at
// the end are detected.
const headSize = 8 + 8 + 4 + 4

// Stream has the position in a file of a stream of frames, and its numbers of frames and rows.
type Stream struct {
	Offset, Length int64
	Frames         int64
	Rows           int64 // sum over all frames
}

// Frames appends streams of frames to a file. Only one goroutine may use it at a time. Other
// goroutines may read ended streams meanwhile.
type Frames struct {
	file   File
	buffer *bufio.Writer
	name   uint32 // checksum of the file's name
	stream Stream // the stream being written
	body   []byte // body of the frame being written
}

// NewFrames returns a writer of frames to f, an empty file. The caller closes f.
func NewFrames(f File) *Frames {
	return &Frames{file: f, buffer: bufio.NewWriterSize(f, bufferSize), name: nameSum(f)}
}

func nameSum(f File) uint32 { return checksum.CRC32C(0, []byte(f.Name())) }

// Write appends data to the body of the current frame.
func (w *Frames) Write(data []byte) (int, error) {
	w.body = append(w.body, data...)
	return len(data), nil
}

// End ends the current frame, which holds the given number of rows.
func (w *Frames) End(rows int64) error {
	var head [headSize]byte
	putHead(head[:], w.name, w.stream.Offset+w.stream.Length, w.stream.Frames, rows, w.body)
	if _, err := w.buffer.Write(head[:]); err != nil {
		return err
	}
	if _, err := w.buffer.Write(w.body); err != nil {
		return err
	}
	w.stream.Length += headSize + int64(len(w.body))
	w.stream.Frames++
	w.stream.Rows += rows
	w.body = w.body[:0]
	return nil
}

// EndStream ends the current stream, flushes it and returns it. The next frame begins another
// stream.
func (w *Frames) EndStream() (Stream, error) {
	if err := w.buffer.Flush(); err != nil {
		return Stream{}, err
	}
	done := w.stream
	w.stream = Stream{Offset: done.Offset + done.Length}
	return done, nil
}

// Size returns the number of bytes of all ended frames, including bytes that are still
// buffered.
func (w *Frames) Size() int64 { return w.stream.Offset + w.stream.Length }

func putHead(head []byte, name uint32, offset, number, rows int64, body []byte) {
	binary.LittleEndian.PutUint64(head, uint64(len(body)))
	binary.LittleEndian.PutUint64(head[8:], uint64(rows))
	binary.LittleEndian.PutUint32(head[16:], checksum.CRC32C(0, body))
	binary.LittleEndian.PutUint32(head[20:], headSum(head, name, offset, number))
}

// headSum returns the checksum of the head of a frame at the given offset and number in its stream.
// name is the checksum of the file's name.
func headSum(head []byte, name uint32, offset, number int64) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], uint64(offset))
	binary.LittleEndian.PutUint64(place[8:], uint64(number))
	return checksum.CRC32C(checksum.CRC32C(name, place[:]), head[:20])
}

// FrameReader reads a stream of frames. Only one goroutine may use it.
type FrameReader struct {
	file   File
	stream Stream
	name   uint32
	buffer *bufio.Reader
	at     int64 // offset in the file of the next frame
	frames int64 // number of frames read
	rows   int64 // number of rows read
	body   []byte
	err    error
}

// NewFrameReader returns a reader of s, an ended stream of f.
func NewFrameReader(f File, s Stream) *FrameReader {
	size := int(min(max(s.Length, 16), bufferSize))
	return &FrameReader{
		file: f, stream: s, name: nameSum(f), at: s.Offset,
		buffer: bufio.NewReaderSize(&fileReader{f, s.Offset, s.Offset + s.Length}, size),
	}
}

// fileReader reads the bytes of a file at the offsets i with at <= i < end.
type fileReader struct {
	file    File
	at, end int64
}

func (r *fileReader) Read(b []byte) (int, error) {
	b = b[:min(int64(len(b)), r.end-r.at)]
	if len(b) == 0 {
		return 0, io.ErrUnexpectedEOF // not reached: nothing reads after the last frame
	}
	n, err := r.file.ReadAt(b, r.at)
	r.at += int64(n)
	switch {
	case n > 0:
		err = nil // if the error persists, the next read returns it again
	case err == nil:
		err = io.ErrNoProgress // without an error, io.ReadFull would read for ever
	}
	return n, err
}

// Next returns the body of the next frame, valid until the next call, and its number of rows.
// After the last frame it returns io.EOF. It fails with a *DamagedError if bytes have changed, or
// if the stream has another length or other numbers of frames and rows than were written. After an
// error it returns the same error again.
func (r *FrameReader) Next() (body []byte, rows int64, err error) {
	if r.err != nil {
		return nil, 0, r.err
	}
	if body, rows, err = r.next(); err != nil {
		r.err = err
	}
	return body, rows, err
}

func (r *FrameReader) next() (body []byte, rows int64, err error) {
	if r.frames == r.stream.Frames {
		read := r.at - r.stream.Offset
		switch {
		case read != r.stream.Length:
			return nil, 0, r.damaged(r.stream.Offset, r.stream.Length, fmt.Errorf("the %d blocks in them end after %d", r.frames, read))
		case r.rows != r.stream.Rows:
			return nil, 0, r.damaged(r.stream.Offset, r.stream.Length, fmt.Errorf("they hold %d rows where %d were written", r.rows, r.stream.Rows))
		}
		return nil, 0, io.EOF
	}
	var head [headSize]byte
	if err := r.read(head[:], r.at); err != nil {
		return nil, 0, err
	}
	want := binary.LittleEndian.Uint32(head[20:])
	if got := headSum(head[:], r.name, r.at, r.frames); got != want {
		return nil, 0, r.damaged(r.at, headSize, fmt.Errorf("which should begin block %d, %w", r.frames, errChecksum(got, want)))
	}
	length := binary.LittleEndian.Uint64(head[:])
	if rest := r.stream.Offset + r.stream.Length - r.at - headSize; length > uint64(max(rest, 0)) {
		return nil, 0, r.damaged(r.at, headSize, fmt.Errorf("which begin block %d, a length of %d is more than the %d that follow", r.frames, length, rest))
	}
	r.body = slices.Grow(r.body[:0], int(length))[:length]
	if err := r.read(r.body, r.at+headSize); err != nil {
		return nil, 0, err
	}
	if got, want := checksum.CRC32C(0, r.body), binary.LittleEndian.Uint32(head[16:]); got != want {
		return nil, 0, r.damaged(r.at+headSize, int64(length), errChecksum(got, want))
	}
	rows = int64(binary.LittleEndian.Uint64(head[8:]))
	r.at += headSize + int64(length)
	r.frames++
	r.rows += rows
	return r.body, rows, nil
}

// read reads the next len(b) bytes. offset is their position in the file, for errors.
func (r *FrameReader) read(b []byte, offset int64) error {
	n, err := io.ReadFull(r.buffer, b)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return r.damaged(offset, int64(len(b)), earlyEnd{int64(n)})
	}
	return fmt.Errorf("read %d bytes from byte %d of %s: %w", len(b), offset, r.file.Name(), err)
}

func (r *FrameReader) damaged(offset, length int64, err error) error {
	return &DamagedError{File: r.file.Name(), Offset: offset, Length: length, Err: err}
}
