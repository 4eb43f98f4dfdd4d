package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/grpc/mem"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// These are the maximum sizes of encoded messages, in bytes. The sender checks the size of a
// message, so that the error occurs where the message is made. The receiver checks it too,
// because it does not trust senders.
const (
	// MaxFrame bounds a message between a worker and its task manager.
	MaxFrame = 64 << 20
	// MaxMessage bounds every gRPC message. A message can have the content of a frame, and the
	// reference to its worker in addition.
	MaxMessage = MaxFrame + 64<<10
	// MaxSubmit bounds a SubmitRequest, which consists mostly of the graph.
	MaxSubmit = 32 << 20
	// MaxChunk bounds a Chunk and a LogChunk. Senders put at most ChunkBytes bytes of data into
	// each of them.
	MaxChunk   = 2 << 20
	ChunkBytes = 256 << 10
	// MaxRequest bounds all other requests of clients and short replies.
	MaxRequest = 64 << 10
)

// limit returns the maximum size of a message of v's type.
func limit(v any) int {
	switch v.(type) {
	case *SubmitRequest:
		return MaxSubmit
	case *Chunk, *LogChunk:
		return MaxChunk
	case *HasArtifactRequest, *FetchRequest, *ListRequest, *ShowRequest, *CancelRequest, *SavepointRequest, *ScaleRequest, *CordonRequest, *UncordonRequest, *DrainRequest,
		*FollowRequest, *ResultsRequest, *ResultRequest, *LogsRequest, *TaskManagersRequest, *OverviewRequest,
		*HasArtifactReply, *UploadReply, *SubmitReply, *CordonReply, *Delivered:
		return MaxRequest
	case *ToWorker, *FromWorker:
		return MaxFrame
	}
	return MaxMessage
}

// tooLarge returns an error that says that message v, which has size bytes, is too large.
func tooLarge(v any, size int) error {
	return fmt.Errorf("a message %s of %d bytes is larger than the limit of %d", typeName(v), size, limit(v))
}

// typeName returns the name of a message's type without its package.
func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return "nil"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// Marshal encodes v, a pointer to a message, in msgpack. It returns an error if the message is
// larger than the limit of its type.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	if err := marshalTo(&out, v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func marshalTo(out *bytes.Buffer, v any) error {
	start := out.Len()
	enc := msgpack.NewEncoder(out)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("message %s does not encode: %w", typeName(v), err)
	}
	if size := out.Len() - start; size > limit(v) {
		return tooLarge(v, size)
	}
	return nil
}

// Unmarshal decodes data into v, a pointer to a zero message. The message does not refer to
// data. Fields in data that v's type does not have are ignored, as the version of the sender
// may have additional fields. If data is not a message, Unmarshal returns an error; it never
// panics. It allocates memory only in proportion to the bytes of data, whatever lengths are
// encoded in data. After an error the contents of v must not be used.
func Unmarshal(data []byte, v any) (err error) {
	if len(data) > limit(v) {
		return tooLarge(v, len(data))
	}
	if err := examine(data); err != nil {
		return fmt.Errorf("message %s does not decode: %w", typeName(v), err)
	}
	// The library panics on some data, such as nil instead of a time.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("message %s does not decode: %v", typeName(v), r)
		}
	}()
	if err := msgpack.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
		return fmt.Errorf("message %s does not decode: %w", typeName(v), err)
	}
	return nil
}

// codec is the gRPC codec of messages. It appends a CRC-32C to each message. On connections
// without TLS, only this checksum detects damage that TCP's own checksum of 16 bits does not
// detect.
type codec struct{}

const sumBytes = 4

// Name returns the part of the content type after "application/grpc+".
func (codec) Name() string { return "msgpack" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	var out bytes.Buffer
	if err := marshalTo(&out, v); err != nil {
		return nil, err
	}
	data := out.Bytes()
	return mem.BufferSlice{mem.SliceBuffer(binary.LittleEndian.AppendUint32(data, checksum.CRC32C(0, data)))}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	if size := data.Len() - sumBytes; size > limit(v) {
		return tooLarge(v, size)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	b := whole.ReadOnlyData()
	n := len(b) - sumBytes
	if n < 0 || checksum.CRC32C(0, b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return fmt.Errorf("a message %s of %d bytes has a wrong checksum: it was %w, or the other side is of another version", typeName(v), len(b), checksum.ErrDamaged)
	}
	return Unmarshal(b[:n], v)
}

var (
	errTruncated = errors.New("it ends early")
	errTrailing  = errors.New("bytes follow its end")
	errTooDeep   = fmt.Errorf("it nests deeper than %d", maxDepth)
	errTooMany   = fmt.Errorf("it has more than %d values", maxValues)
)
