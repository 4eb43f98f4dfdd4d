package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Rows are sent as record batches of the Arrow IPC stream format. Each schema is sent once on a
// connection, with a number that identifies it. To decode a record batch without dictionaries,
// only its schema is needed. So several encoders may encode batches of the same schema
// concurrently, and one decoder decodes all of them.

// codec encodes batches of one schema. Its methods may be called concurrently.
type codec struct {
	number uint32
	schema *arrow.Schema
	head   []byte // the schema as an Arrow IPC message
	mem    memory.Allocator

	mu   sync.Mutex
	free []*encoder
}

// encoder writes batches as Arrow IPC messages. One goroutine at a time uses it.
type encoder struct {
	out  *frameWriter
	skip int // number of bytes to drop: those of the schema, which is sent in a separate frame
	w    *batch.StreamWriter
}

// Write is called by the stream writer with its output.
func (e *encoder) Write(p []byte) (int, error) {
	k := min(e.skip, len(p))
	e.skip -= k
	e.out.Write(p[k:])
	return len(p), nil
}

// endMark is the length in bytes of the end-of-stream mark of an Arrow IPC stream.
const endMark = 8

// newCodec returns a codec of a schema. It returns an error if the receiver could not decode
// the schema.
func newCodec(number int, schema *arrow.Schema, mem memory.Allocator) (*codec, error) {
	var stream bytes.Buffer
	w := batch.NewStreamWriter(&stream, schema, mem)
	if err := w.Close(); err != nil {
		return nil, err
	}
	r, err := batch.NewStreamReader(bytes.NewReader(stream.Bytes()), mem)
	if err != nil {
		return nil, err
	}
	r.Release()
	head := stream.Bytes()[:stream.Len()-endMark]
	if len(head) > maxSchema {
		return nil, fmt.Errorf("a schema of %d columns takes %d bytes, more than %d", schema.NumFields(), len(head), maxSchema)
	}
	return &codec{number: uint32(number), schema: schema, head: head, mem: mem}, nil
}

// append encodes rec and writes the result to the frameWriter to. It keeps no reference to rec.
func (c *codec) append(to *frameWriter, rec arrow.Record) error {
	c.mu.Lock()
	var e *encoder
	if n := len(c.free); n > 0 {
		e, c.free = c.free[n-1], c.free[:n-1]
	}
	c.mu.Unlock()
	if e == nil {
		e = &encoder{skip: len(c.head)}
		e.w = batch.NewStreamWriter(e, c.schema, c.mem)
	}
	e.out = to
	err := e.w.Write(rec)
	e.out = nil
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.free = append(c.free, e)
	c.mu.Unlock()
	return nil
}

// codecs has the codecs of a network.
type codecs struct {
	mem  memory.Allocator
	mu   sync.Mutex
	list []*codec
}

// find returns the codec of a schema. Equal schemas have the same codec.
func (s *codecs) find(schema *arrow.Schema) (*codec, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.list {
		if c.schema == schema || c.schema.Equal(schema) && sameMetadata(c.schema, schema) {
			return c, nil
		}
	}
	if len(s.list) == maxSchemas {
		return nil, fmt.Errorf("more than %d different schemas are sent", maxSchemas)
	}
	c, err := newCodec(len(s.list), schema, s.mem)
	if err != nil {
		return nil, err
	}
	s.list = append(s.list, c)
	return c, nil
}

func sameMetadata(a, b *arrow.Schema) bool {
	ma, mb := a.Metadata(), b.Metadata()
	return slices.Equal(ma.Keys(), mb.Keys()) && slices.Equal(ma.Values(), mb.Values())
}

// decoder decodes batches of one schema.
type decoder struct {
	head []byte
	mem  memory.Allocator
	feed feed
	r    *batch.StreamReader // nil if decode must make a new one
}

// feed limits a stream reader to the remaining bytes of a frame.
type feed struct{ io.LimitedReader }

// At the end of the frame, Read returns io.ErrUnexpectedEOF, since the stream reader would
// treat io.EOF as the regular end of a stream.
func (f *feed) Read(p []byte) (int, error) {
	if f.N <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return f.LimitedReader.Read(p)
}

// After a message of more than largeMessage bytes, a decoder releases its memory. For shorter
// messages it reuses the memory, so that they need no allocation.
const largeMessage = 4 << 20

// newDecoder returns a decoder of the schema in head, an Arrow IPC message.
func newDecoder(head []byte, mem memory.Allocator) (*decoder, error) {
	d := &decoder{head: head, mem: mem}
	if err := d.open(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *decoder) open() (err error) {
	d.feed.LimitedReader = io.LimitedReader{R: bytes.NewReader(d.head), N: int64(len(d.head))}
	if d.r, err = batch.NewStreamReader(&d.feed, d.mem); err != nil {
		return err
	}
	if rest := d.rest(); rest != 0 {
		d.release()
		return fmt.Errorf("%d bytes follow the schema", rest)
	}
	return nil
}

// rest returns the number of bytes of the feed that have not been decoded yet, including bytes
// that the reader has buffered.
func (d *decoder) rest() int64 { return d.feed.N + int64(d.r.Buffered()) }

// decode reads a batch of length bytes from in, and validates it. The caller owns the batch.
func (d *decoder) decode(in io.Reader, length int64) (arrow.Record, error) {
	if d.r == nil {
		if err := d.open(); err != nil {
			return nil, err
		}
	}
	d.feed.LimitedReader = io.LimitedReader{R: in, N: length}
	rec, err := d.r.Read()
	if rest := d.rest(); err == nil && rest != 0 {
		rec.Release()
		return nil, fmt.Errorf("%d bytes follow the rows", rest)
	}
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if length > largeMessage {
		d.release()
	}
	return rec, err
}

// release releases the stream reader and its memory.
func (d *decoder) release() {
	if d.r != nil {
		d.r.Release()
		d.r = nil
	}
}

// schemaFrame returns the frame that sends the schema and the number of c.
func schemaFrame(c *codec, summed bool) []byte {
	return frame(kindSchema, summed, binary.LittleEndian.AppendUint32(nil, c.number), c.head)
}
