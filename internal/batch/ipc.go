package batch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// MaxMessage bounds one message of an Arrow stream.
const MaxMessage = 1<<31 - 1

// splitAbove is the size above which Write halves a batch, so that messages
// stay far from the bound and readers need not hold more at once.
const splitAbove = 1 << 30

// StreamWriter writes batches of one schema to w in the Arrow IPC stream
// format. One goroutine at a time.
type StreamWriter struct {
	w      *ipc.Writer
	schema *arrow.Schema
	split  int64
	closed bool
}

// NewStreamWriter returns a writer to w, which it does not close. Writes go
// out in small pieces: give it a buffered writer.
func NewStreamWriter(w io.Writer, schema *arrow.Schema, mem memory.Allocator) *StreamWriter {
	return &StreamWriter{w: ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem)), schema: schema, split: splitAbove}
}

// Write writes one borrowed batch. A batch of more than a GiB is read back as several.
func (s *StreamWriter) Write(rec arrow.Record) error {
	if s.closed {
		return errors.New("write batch: the stream is closed")
	}
	if !rec.Schema().Equal(s.schema) {
		return fmt.Errorf("write batch: it has columns (%s), the stream has (%s)", describe(rec.Schema()), describe(s.schema))
	}
	if rec.NumRows() == 0 {
		// A slice of no rows out of a larger batch trips Arrow's encoder.
		rec = Empty(s.schema)
		defer rec.Release()
	}
	if rows := int(rec.NumRows()); rows > 1 && Size(rec) > s.split {
		half := (rows + rows%2) / 2
		for part := range Rechunk(rec, half) {
			err := s.Write(part)
			part.Release()
			if err != nil {
				return err
			}
		}
		return nil
	}
	if size := Size(rec); size > MaxMessage-1<<20 {
		return fmt.Errorf("write batch: a row of %d bytes exceeds the %d that a message can hold", size, MaxMessage)
	}
	if err := s.w.Write(rec); err != nil {
		return fmt.Errorf("write batch of %d rows: %w", rec.NumRows(), err)
	}
	return nil
}

// Close writes the end of the stream (and the schema, if there was no batch).
// Closing again does nothing.
func (s *StreamWriter) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.w.Close(); err != nil {
		return fmt.Errorf("end arrow stream: %w", err)
	}
	return nil
}

// StreamReader reads batches in the Arrow IPC stream format, as written by StreamWriter or with
// bodies compressed by LZ4 or zstd. Columns must be of supported types, or of types with a
// plain type, to which they are converted. Dictionaries are not supported. Damaged input is an
// error, never a panic, and takes no more memory than a small multiple of the received or
// decompressed bytes. One goroutine at a time.
type StreamReader struct {
	r      *ipc.Reader
	from   *bufio.Reader // what r reads
	mem    *trackingAllocator
	schema *arrow.Schema
	as     bool // batches have their final types already
	err    error
}

// NewStreamReader reads the schema from r. Batches are allocated from mem. Call Release when
// done; batches stay valid.
func NewStreamReader(r io.Reader, mem memory.Allocator) (*StreamReader, error) {
	return newStreamReader(r, mem, nil)
}

func newStreamReader(r io.Reader, mem memory.Allocator, omit *omission) (sr *StreamReader, err error) {
	tracked := &trackingAllocator{mem: mem, live: make(map[*byte][]byte)}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			sr, err = nil, fmt.Errorf("read arrow stream: %w", err)
		}
	}()
	from := bufio.NewReaderSize(r, 1<<16)
	in := &messageReader{r: from}
	rd, err := ipc.NewReaderFromMessageReader(in, ipc.WithAllocator(tracked))
	if err != nil {
		return nil, err
	}
	fields := rd.Schema().Fields()
	in.shape, in.omit = shapeOf(fields), omit
	as := true
	for i, f := range fields {
		fields[i].Type = PlainType(f.Type)
		as = as && fields[i].Type == f.Type
		if !Supported(fields[i].Type) {
			rd.Release()
			return nil, fmt.Errorf("column %s: type %s is not supported", quote(f.Name), cutText(TypeName(f.Type)))
		}
	}
	metadata := rd.Schema().Metadata()
	return &StreamReader{r: rd, from: from, mem: tracked, schema: arrow.NewSchema(fields, &metadata), as: as}, nil
}

// Buffered returns how many bytes of the next Read were already read from r.
func (s *StreamReader) Buffered() int { return s.from.Buffered() }

// Schema returns the schema of the stream.
func (s *StreamReader) Schema() *arrow.Schema { return s.schema }

// Read returns the next batch, owned by the caller and validated, or io.EOF
// after the last. A stream that ends without its end mark is
// io.ErrUnexpectedEOF. After an error every Read returns it again.
func (s *StreamReader) Read() (arrow.Record, error) {
	if s.err != nil {
		return nil, s.err
	}
	rec, err := s.read()
	if err != nil {
		s.mem.abandon()
		if err != io.EOF { // not errors.Is: a wrapped io.EOF means truncated data
			err = fmt.Errorf("read arrow stream: %w", err)
		}
		s.err = err
		return nil, err
	}
	s.mem.adopt()
	return rec, nil
}

func (s *StreamReader) read() (rec arrow.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			rec, err = nil, fmt.Errorf("%v", p)
		}
	}()
	got, err := s.r.Read()
	if err != nil {
		return nil, err
	}
	if rec, err = s.plain(got); err != nil {
		// The decoder still refers to the batch, and frees it.
		s.Release()
		return nil, err
	}
	if err := Validate(rec); err != nil {
		rec.Release()
		s.Release()
		return nil, err
	}
	return rec, nil
}

// plain returns a batch with the columns as their plain types, owned.
func (s *StreamReader) plain(got arrow.Record) (arrow.Record, error) {
	if s.as {
		got.Retain()
		return got, nil
	}
	cols := make([]arrow.Array, got.NumCols())
	for i, col := range got.Columns() {
		made, err := plain(s.mem, col, s.schema.Field(i).Type)
		if err != nil {
			releaseAll(cols)
			return nil, fmt.Errorf("column %s: %w", quote(got.ColumnName(i)), err)
		}
		cols[i] = made
	}
	return ownedRecord(s.schema, cols, int(got.NumRows())), nil
}

// Release releases what the reader holds, which includes a reference to the batch read last.
func (s *StreamReader) Release() {
	if s.r != nil {
		s.r.Release()
		s.r = nil
	}
	if s.err == nil {
		s.err = errors.New("read arrow stream: the reader is released")
	}
}

// messageReader reads the messages of a stream into a buffer that it reuses for the next one
// (the decoder copies out of it). It trusts no length: memory grows only as bytes arrive.
type messageReader struct {
	r     io.Reader
	shape shape // of record batches, once the schema is known
	omit  *omission
	meta  []byte
	body  []byte
	unpacker
}

// Retain and Release do nothing: the memory is on the Go heap.
func (m *messageReader) Retain()  {}
func (m *messageReader) Release() {}

const continuation = 0xffffffff

// Message returns the next message, or io.EOF at the end mark.
func (m *messageReader) Message() (*ipc.Message, error) {
	length, err := m.metaLength()
	if err != nil {
		return nil, err
	}
	if m.meta, err = readBounded(m.r, m.meta, int64(length)); err != nil {
		return nil, fmt.Errorf("message metadata: %w", err)
	}
	if m.omit != nil {
		if err := m.omit.apply(m.meta); err != nil {
			return nil, fmt.Errorf("a message cannot be read: %w", err)
		}
	}
	bodyLen, pack, err := checkMessage(m.meta, m.shape)
	if err != nil {
		return nil, fmt.Errorf("a message cannot be read: %w", err)
	}
	if m.body, err = readBounded(m.r, m.body, bodyLen); err != nil {
		return nil, fmt.Errorf("message body: %w", err)
	}
	if pack.is {
		body, err := m.unpack(pack, m.meta, m.body)
		if err != nil {
			return nil, err
		}
		return ipc.NewMessage(memory.NewBufferBytes(m.meta), memory.NewBufferBytes(body)), nil
	}
	return ipc.NewMessage(memory.NewBufferBytes(m.meta), memory.NewBufferBytes(m.body)), nil
}

func (m *messageReader) metaLength() (int32, error) {
	var word [4]byte
	if _, err := io.ReadFull(m.r, word[:]); err != nil {
		return 0, fmt.Errorf("the stream has no end mark: %w", Unexpected(err))
	}
	if binary.LittleEndian.Uint32(word[:]) == continuation {
		if _, err := io.ReadFull(m.r, word[:]); err != nil {
			return 0, fmt.Errorf("message length: %w", Unexpected(err))
		}
	}
	length := int32(binary.LittleEndian.Uint32(word[:]))
	if length == 0 {
		return 0, io.EOF
	}
	return length, nil
}

// Unexpected replaces io.EOF, which is kept for the proper end of a stream.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBounded reads n bytes into buf, growing it by doubling as bytes arrive.
func readBounded(r io.Reader, buf []byte, n int64) ([]byte, error) {
	if n < 0 || n > MaxMessage {
		return buf, fmt.Errorf("length %d is not between 0 and %d", n, MaxMessage)
	}
	const step = 1 << 20
	have := 0
	for int64(have) < n {
		want := int(min(n, int64(max(have*2, step, cap(buf)))))
		if want > cap(buf) {
			grown := make([]byte, want)
			copy(grown, buf[:have])
			buf = grown
		}
		buf = buf[:want]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return buf, Unexpected(err)
		}
		have = want
	}
	return buf[:n], nil
}

// trackingAllocator wraps the real allocator for the decoder. It records the allocations for
// the current message, as the decoder does not free them when it fails midway.
type trackingAllocator struct {
	mem  memory.Allocator
	mu   sync.Mutex
	live map[*byte][]byte // of the current message
}

// Allocate implements memory.Allocator.
func (a *trackingAllocator) Allocate(size int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.track(a.mem.Allocate(size))
}

func (a *trackingAllocator) track(buf []byte) []byte {
	if len(buf) > 0 {
		a.live[unsafe.SliceData(buf)] = buf
	}
	return buf
}

// Reallocate implements memory.Allocator.
func (a *trackingAllocator) Reallocate(size int, old []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.live, unsafe.SliceData(old))
	return a.track(a.mem.Reallocate(size, old))
}

// Free implements memory.Allocator; batches call it long after the message,
// from any goroutine.
func (a *trackingAllocator) Free(buf []byte) {
	a.mu.Lock()
	delete(a.live, unsafe.SliceData(buf))
	a.mu.Unlock()
	a.mem.Free(buf)
}

// adopt ends a message that was decoded: its memory belongs to the batch.
func (a *trackingAllocator) adopt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.live)
}

// abandon ends a message that failed: nobody refers to its memory any more.
func (a *trackingAllocator) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, buf := range a.live {
		a.mem.Free(buf)
	}
	clear(a.live)
}
