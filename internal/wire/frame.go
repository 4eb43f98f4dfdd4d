package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A frame consists of the length of a message, in 4 bytes in big endian, and the message in
// msgpack. The length is at least 1 and at most MaxFrame.

const frameHeader = 4

// keepBuffer is the maximum capacity of a buffer that a Reader or Writer reuses for the next
// message.
const keepBuffer = 1 << 20

// Reader reads frames with messages of type T. Only one goroutine at a time may use it.
type Reader[T any] struct {
	r    io.Reader
	body bytes.Buffer
	err  error // error of the first call of Next that failed; after it, the position in the stream is unknown
}

// NewReader returns a reader of the frames in r. The reader reads no bytes after the frame that
// it returns.
func NewReader[T any](r io.Reader) *Reader[T] { return &Reader[T]{r: r} }

// Next returns the next message. It returns io.EOF if the stream ends after a whole frame, and
// an error that wraps io.ErrUnexpectedEOF if it ends within a frame. After an error, further
// calls return the same error. The buffer grows with the bytes that arrive; it is not allocated
// for the length in the frame.
func (r *Reader[T]) Next() (*T, error) {
	if r.err != nil {
		return nil, r.err
	}
	v, err := r.next()
	r.err = err
	return v, err
}

func (r *Reader[T]) next() (*T, error) {
	var header [frameHeader]byte
	switch n, err := io.ReadFull(r.r, header[:]); {
	case err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("frame %s: after %d of %d bytes of its length: %w", r.name(), n, frameHeader, err)
	}
	size := binary.BigEndian.Uint32(header[:])
	if size == 0 || size > MaxFrame {
		return nil, fmt.Errorf("frame %s: a length of %d bytes (bytes %q) is none that a frame has (1 to %d): something else wrote to the pipe", r.name(), size, header[:], MaxFrame)
	}
	if r.body.Cap() > keepBuffer {
		r.body = bytes.Buffer{}
	}
	r.body.Reset()
	if n, err := io.CopyN(&r.body, r.r, int64(size)); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("frame %s: after %d of %d bytes: %w", r.name(), n, size, err)
	}
	v := new(T)
	if err := Unmarshal(r.body.Bytes(), v); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	return v, nil
}

func (r *Reader[T]) name() string { return typeName((*T)(nil)) }

// Writer writes frames with messages of type T. Several goroutines may call its methods
// concurrently.
type Writer[T any] struct {
	mu    sync.Mutex
	w     io.Writer
	frame bytes.Buffer
	err   error // error of the first write that failed; a frame may have been written only in part
}

// NewWriter returns a writer of frames to w.
func NewWriter[T any](w io.Writer) *Writer[T] { return &Writer[T]{w: w} }

// Write writes one message by a single call of the underlying writer's Write, and blocks while
// this call blocks. If the message cannot be encoded or is too large, Write returns an error
// and writes nothing. After any other error, later calls return the same error.
func (w *Writer[T]) Write(v *T) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if v == nil {
		return errors.New("frame: there is no message to write")
	}
	if w.frame.Cap() > keepBuffer {
		w.frame = bytes.Buffer{}
	}
	w.frame.Reset()
	w.frame.Write(make([]byte, frameHeader))
	if err := marshalTo(&w.frame, v); err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	data := w.frame.Bytes()
	size := len(data) - frameHeader
	if size > MaxFrame {
		return fmt.Errorf("frame: %w", tooLarge(v, size))
	}
	binary.BigEndian.PutUint32(data, uint32(size))
	if _, err := w.w.Write(data); err != nil {
		w.err = fmt.Errorf("frame %s: %w", typeName(v), err)
	}
	return w.err
}
