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

// MaxMessage is the largest size in bytes of the metadata or the body of a message.
const MaxMessage = 1<<31 - 1

// splitAbove is the size in bytes above which Write splits a batch into halves. So messages
// stay far below MaxMessage, and readers need less memory at a time.
const splitAbove = 1 << 30

// StreamWriter writes batches of one schema in the Arrow IPC stream format. Only one goroutine
// at a time may use it.
type StreamWriter struct {
	w      *ipc.Writer
	schema *arrow.Schema
	split  int64
	closed bool
}

// NewStreamWriter returns a StreamWriter that writes to w and does not close w. It writes many
// small pieces, so w should be buffered.
func NewStreamWriter(w io.Writer, schema *arrow.Schema, mem memory.Allocator) *StreamWriter {
	return &StreamWriter{w: ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem)), schema: schema, split: splitAbove}
}

// Write writes one borrowed batch. A batch of more than 1 GiB is written as several batches.
func (s *StreamWriter) Write(rec arrow.Record) error {
	if s.closed {
		return errors.New("write batch: the stream is closed")
	}
	if !rec.Schema().Equal(s.schema) {
		return fmt.Errorf("write batch: it has columns (%s), the stream has (%s)", describe(rec.Schema()), describe(s.schema))
	}
	if rec.NumRows() == 0 {
		// Arrow's encoder fails for a batch of no rows that is a slice of a larger batch.
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

// Close writes the end mark of the stream, and before it the schema if no batch was written.
// Further calls do nothing.
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
// supported plain type (see PlainType), to which they are converted. Dictionaries are not
// supported. Damaged input is an error, never a panic. The memory needed is at most a small
// multiple of the received or decompressed bytes, also for damaged input. Only one goroutine at
// a time may use a StreamReader.
type StreamReader struct {
	r      *ipc.Reader
	from   *bufio.Reader // source of the messages that r reads
	mem    *trackingAllocator
	schema *arrow.Schema
	as     bool // whether the columns of the stream have their final types, so that no conversion is needed
	err    error
}

// NewStreamReader returns a reader of the stream r, from which it reads the schema. Batches are
// allocated from mem. The caller must call Release; batches remain valid afterwards.
func NewStreamReader(r io.Reader, mem memory.Allocator) (*StreamReader, error) {
	return newStreamReader(r, mem, nil, &Buffers{})
}

// Buffers hold the bytes of messages while a stream is read. Streams that are read one after the other may use
// the same Buffers, of which the zero value is empty.
type Buffers struct{ meta, body []byte }

// NewStreamReader is the function NewStreamReader, with these Buffers.
func (b *Buffers) NewStreamReader(r io.Reader, mem memory.Allocator) (*StreamReader, error) {
	return newStreamReader(r, mem, nil, b)
}

func newStreamReader(r io.Reader, mem memory.Allocator, omit *omission, buffers *Buffers) (sr *StreamReader, err error) {
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
	in := &messageReader{r: from, Buffers: buffers}
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

// Buffered returns the number of bytes that were already read from r, but not yet used by Read.
func (s *StreamReader) Buffered() int { return s.from.Buffered() }

// Schema returns the schema of the stream.
func (s *StreamReader) Schema() *arrow.Schema { return s.schema }

// Read returns the next batch, owned by the caller and validated, or io.EOF after the last
// batch. If the stream ends without its end mark, the error is io.ErrUnexpectedEOF. After an
// error every Read returns the same error.
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
		// The decoder still refers to the batch. Release makes it release the batch.
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

// plain returns a batch, owned by the caller, in which the columns of got are converted to
// their plain types.
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

// Release releases the memory of the reader, including its reference to the last batch.
func (s *StreamReader) Release() {
	if s.r != nil {
		s.r.Release()
		s.r = nil
	}
	if s.err == nil {
		s.err = errors.New("read arrow stream: the reader is released")
	}
}

// messageReader reads the messages of a stream. It reuses one buffer for all messages, because
// the decoder copies the data. It does not allocate memory by the lengths in the stream:
// buffers grow only as bytes arrive.
type messageReader struct {
	r     io.Reader
	shape shape // shape of record batches; set once the schema is known
	omit  *omission
	*Buffers
	unpacker
}

// Retain and Release do nothing, because the memory is on the Go heap.
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

// Unexpected returns io.ErrUnexpectedEOF if err is io.EOF, because Read returns io.EOF only at
// the regular end of a stream. It returns other errors unchanged.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBounded reads n bytes into buf and returns it. If buf is too small, it is doubled
// whenever the bytes that arrived fill it.
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

// trackingAllocator is the allocator of the decoder, and allocates from mem. It records the
// allocations for the current message, because the decoder does not free them if it fails
// midway.
type trackingAllocator struct {
	mem  memory.Allocator
	mu   sync.Mutex
	live map[*byte][]byte // allocations for the current message
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

// Free implements memory.Allocator; batches call it later, from any goroutine.
func (a *trackingAllocator) Free(buf []byte) {
	a.mu.Lock()
	delete(a.live, unsafe.SliceData(buf))
	a.mu.Unlock()
	a.mem.Free(buf)
}

// adopt ends the recording for a message that was decoded. The memory now belongs to the batch.
func (a *trackingAllocator) adopt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.live)
}

// abandon frees the memory of a message that could not be decoded. Nothing refers to that
// memory any more.
func (a *trackingAllocator) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, buf := range a.live {
		a.mem.Free(buf)
	}
	clear(a.live)
}
