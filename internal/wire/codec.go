package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/grpc/mem"
)

// Sizes of encoded messages, in bytes. Both sides check them: the sender, so that the error
// arises where the message is made, and the receiver, because it trusts no sender.
const (
	// MaxFrame bounds a message between a worker and its task manager.
	MaxFrame = 64 << 20
	// MaxMessage bounds every gRPC message. It has room for a frame's content and the name of
	// its worker.
	MaxMessage = MaxFrame + 64<<10
	// MaxSubmit bounds a submission; most of it is the graph.
	MaxSubmit = 32 << 20
	// MaxChunk bounds a Chunk and a LogChunk; senders put ChunkBytes of data in each.
	MaxChunk   = 2 << 20
	ChunkBytes = 256 << 10
	// MaxRequest bounds all other requests.
	MaxRequest = 64 << 10
)

// limit returns the largest size of a message of v's type.
func limit(v any) int {
	switch v.(type) {
	case *SubmitRequest:
		return MaxSubmit
	case *Chunk, *LogChunk:
		return MaxChunk
	case *HasArtifactRequest, *FetchRequest, *ListRequest, *ShowRequest, *CancelRequest,
		*FollowRequest, *ResultsRequest, *ResultRequest, *LogsRequest, *TaskManagersRequest, *OverviewRequest,
		*HasArtifactReply, *UploadReply, *SubmitReply, *Delivered:
		return MaxRequest
	case *ToWorker, *FromWorker:
		return MaxFrame
	}
	return MaxMessage
}

// tooLarge returns the error of a message that is too large.
func tooLarge(v any, size int) error {
	return fmt.Errorf("a message %s of %d bytes is larger than the limit of %d", typeName(v), size, limit(v))
}

// typeName is the name of a message's type without its package.
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

// Marshal encodes a message, given by pointer, in msgpack. It fails where the message
// is larger than its type may be.
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

// Unmarshal decodes a message into v, a pointer to a zero message. The message does not refer
// to data. Fields that v's type does not have are ignored, as a newer sender may have more.
// Bytes that are not a message are an error, never a panic. Memory is allocated for what data
// holds, never for what it claims to hold. After an error the contents of v must not be used.
func Unmarshal(data []byte, v any) (err error) {
	if len(data) > limit(v) {
		return tooLarge(v, len(data))
	}
	if err := examine(data); err != nil {
		return fmt.Errorf("message %s does not decode: %w", typeName(v), err)
	}
	// The library panics on some bytes, such as a nil where a time should be.
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

// codec converts between messages and gRPC's bytes. Its CRC-32C follows each message: not every
// connection has TLS, and nothing else on the way finds damage that TCP's own checksum of 16
// bits misses.
type codec struct{}

const sumBytes = 4

// castagnoli is the polynomial of CRC-32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is wrapped by the error about a message that was changed on the way.
var errDamaged = errors.New("damaged in transit")

// Name is the part of the content type after "application/grpc+".
func (codec) Name() string { return "msgpack" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	var out bytes.Buffer
	if err := marshalTo(&out, v); err != nil {
		return nil, err
	}
	data := out.Bytes()
	return mem.BufferSlice{mem.SliceBuffer(binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli)))}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	if size := data.Len() - sumBytes; size > limit(v) {
		return tooLarge(v, size)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	b := whole.ReadOnlyData()
	n := len(b) - sumBytes
	if n < 0 || crc32.Checksum(b[:n], castagnoli) != binary.LittleEndian.Uint32(b[n:]) {
		return fmt.Errorf("a message %s of %d bytes has a wrong checksum: it was %w, or the other side is of another version", typeName(v), len(b), errDamaged)
	}
	return Unmarshal(b[:n], v)
}

var (
	errTruncated = errors.New("it ends early")
	errTrailing  = errors.New("bytes follow its end")
	errTooDeep   = fmt.Errorf("it nests deeper than %d", maxDepth)
	errTooMany   = fmt.Errorf("it has more than %d values", maxValues)
)
