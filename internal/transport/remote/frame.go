package remote

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

// After the handshake, a connection carries frames. Numbers are in little endian. A frame
// begins with this head:
//
//	 0  length of the body, which follows the head of 16 bytes, without checksums
//	 4  kind, in one byte; then, in three bytes, the number of a message's edge
//	    plus 1, or 0 for no edge
//	 8  number of the frame in its direction of the connection, from 0
//	12  CRC-32C of the 12 bytes before
//
// The body that follows the head has checksums too (checked.go). So damage, loss, repetition
// and reordering of frames are detected before any byte of the frame is used.
//
//	beat     empty                                                both ways
//	bye      empty; no frame follows                              both ways
//	damaged  text that describes the damage in the other side's   both ways
//	         frames; no frame follows
//	grant    edge, inbox, credits                                 to the dialer
//	schema   number, and the schema as an Arrow IPC message       from the dialer
//	message  see messageHead, parts, one Arrow record batch       from the dialer
type kind byte

const (
	kindBeat kind = iota + 1
	kindBye
	kindGrant
	kindSchema
	kindMessage
	kindDamaged
)

// String returns the name of the kind, for errors.
func (k kind) String() string {
	names := [...]string{"frame 0", "beat", "good-bye", "grant", "schema", "message", "word of damage"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("frame of kind %d", byte(k))
}

const (
	headBytes    = 16
	grantBytes   = 12
	messageBytes = 56
	partBytes    = 8
	maxParts     = 1 << 20 // parts of a message
	maxSchema    = 4 << 20 // bytes of a schema
	maxSchemas   = 1024    // schemas on a connection
	maxInboxes   = 1 << 20 // inboxes of a worker
)

// bounds returns the minimum and the maximum length of the body of a frame.
func (k kind) bounds(maxMessage int64) (least, most int64) {
	switch k {
	case kindGrant:
		return grantBytes, grantBytes
	case kindSchema:
		return 4, 4 + maxSchema
	case kindMessage:
		return messageBytes, maxMessage
	case kindDamaged:
		return 0, maxReason
	}
	return 0, 0
}

// appendHead appends to b the head of a frame whose body has length bytes. Its number and
// checksum are zero until stamp sets them.
func appendHead(b []byte, k kind, length int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(length))
	return append(b, byte(k), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// maxEdge is the largest edge number that fits in the head of a frame.
const maxEdge = 1<<24 - 2

// setEdge writes the number of an edge into the head of a frame, if the number fits.
func setEdge(frame []byte, edge int32) {
	if edge >= 0 && edge <= maxEdge {
		frame[5], frame[6], frame[7] = byte(edge+1), byte((edge+1)>>8), byte((edge+1)>>16)
	}
}

// frameHead is the content of a frame's head.
type frameHead struct {
	kind   kind
	number uint32
	length int64
	edge   int // edge of a message; -1 if the head has none
}

// stamp sets the number and the checksum in the head of a frame.
func stamp(frame []byte, number uint32) {
	le := binary.LittleEndian
	le.PutUint32(frame[8:], number)
	le.PutUint32(frame[12:], checksum.CRC32C(0, frame[:12]))
}

// parseHead parses and checks the head of a frame in b, which may have arbitrary bytes. The
// frame must have the given number.
func parseHead(b []byte, number uint32, maxMessage int64) (frameHead, error) {
	le := binary.LittleEndian
	length, k := int64(le.Uint32(b)), kind(b[4])
	edge := int(le.Uint32(b[4:])>>8) - 1
	if got, want := checksum.CRC32C(0, b[:12]), le.Uint32(b[12:]); got != want {
		return frameHead{}, peerlink.Damaged("the head of frame %d, so that it is not known for what it was, has the checksum %#08x, and says %#08x", number, got, want)
	}
	if got := le.Uint32(b[8:]); got != number {
		return frameHead{}, peerlink.Damaged("frame %d came in the place of frame %d: frames were lost, repeated or reordered", got, number)
	}
	if k < kindBeat || k > kindDamaged || k != kindMessage && edge >= 0 {
		return frameHead{}, peerlink.Violation("a frame begins with %x", b[:headBytes])
	}
	if least, most := k.bounds(maxMessage); length < least || length > most {
		return frameHead{}, peerlink.Violation("a %v of %d bytes, where there are %d to %d", k, length, least, most)
	}
	return frameHead{k, number, length, edge}, nil
}

// messageHead is the fixed part of a message.
//
//	 0  edge         16  sequence number   32  number of the schema
//	 4  inbox        24  sent              36  number of parts
//	 8  shard        48  rows that were    40  flags: 1 last, 2 has rows
//	12  to               sent              44  zero
//
// The parts follow, each of them as shard and end, and then the record batch.
type messageHead struct {
	edge, inbox, shard, to int32
	seq, sent, sentRows    int64
	schema, parts          uint32
	last, rows             bool
}

const (
	flagLast = 1 << iota
	flagRows
)

func (h *messageHead) append(b []byte) []byte {
	le := binary.LittleEndian
	for _, v := range [...]int32{h.edge, h.inbox, h.shard, h.to} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = le.AppendUint64(b, uint64(h.seq))
	b = le.AppendUint64(b, uint64(h.sent))
	b = le.AppendUint32(b, h.schema)
	b = le.AppendUint32(b, h.parts)
	var flags uint32
	if h.last {
		flags |= flagLast
	}
	if h.rows {
		flags |= flagRows
	}
	b = le.AppendUint32(b, flags)
	b = le.AppendUint32(b, 0)
	return le.AppendUint64(b, uint64(h.sentRows))
}

func (h *messageHead) parse(b []byte) error {
	le := binary.LittleEndian
	i32 := func(at int) int32 { return int32(le.Uint32(b[at:])) }
	*h = messageHead{
		edge: i32(0), inbox: i32(4), shard: i32(8), to: i32(12),
		seq: int64(le.Uint64(b[16:])), sent: int64(le.Uint64(b[24:])),
		schema: le.Uint32(b[32:]), parts: le.Uint32(b[36:]), sentRows: int64(le.Uint64(b[48:])),
	}
	flags := le.Uint32(b[40:])
	h.last, h.rows = flags&flagLast != 0, flags&flagRows != 0
	if flags&^(flagLast|flagRows) != 0 || le.Uint32(b[44:]) != 0 {
		return peerlink.Violation("a message with flags %#x", flags)
	}
	if h.parts > maxParts {
		return peerlink.Violation("a message with %d parts, where there are at most %d", h.parts, maxParts)
	}
	return nil
}

// headOf returns the fixed part of a message. It returns an error if the message is invalid, or
// has a number that does not fit in its field.
func headOf(to transport.Address, m *transport.Message) (messageHead, error) {
	for _, n := range [...]int{to.Edge, to.Inbox, m.Shard, m.To} {
		if n < math.MinInt32 || n > math.MaxInt32 {
			return messageHead{}, fmt.Errorf("the number %d does not fit in 32 bits", n)
		}
	}
	if len(m.Parts) > maxParts {
		return messageHead{}, fmt.Errorf("it has %d parts, more than %d", len(m.Parts), maxParts)
	}
	for _, p := range m.Parts {
		if p.Shard < math.MinInt32 || p.Shard > math.MaxInt32 {
			return messageHead{}, fmt.Errorf("the shard %d does not fit in 32 bits", p.Shard)
		}
	}
	if err := checkParts(m); err != nil {
		return messageHead{}, err
	}
	return messageHead{
		edge: int32(to.Edge), inbox: int32(to.Inbox), shard: int32(m.Shard), to: int32(m.To),
		seq: m.Seq, sent: m.Sent, sentRows: m.SentRows, parts: uint32(len(m.Parts)), last: m.Last, rows: m.Rows != nil,
	}, nil
}

// checkParts returns an error unless the parts are ranges of the rows in increasing order of
// ends and shards.
func checkParts(m *transport.Message) error {
	rows, end := 0, 0
	if m.Rows != nil {
		rows = int(m.Rows.NumRows())
	}
	for i, p := range m.Parts {
		if p.End < end || p.End > rows {
			return fmt.Errorf("part %d ends at row %d, where %d to %d are possible", i, p.End, end, rows)
		}
		if i > 0 && p.Shard <= m.Parts[i-1].Shard {
			return fmt.Errorf("part %d is of shard %d, after one of shard %d", i, p.Shard, m.Parts[i-1].Shard)
		}
		end = p.End
	}
	return nil
}

// writeParts writes the parts of a message to w.
func writeParts(w *frameWriter, parts []transport.Part) {
	var b [partBytes]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint32(b[:], uint32(p.Shard))
		binary.LittleEndian.PutUint32(b[4:], uint32(p.End))
		w.Write(b[:])
	}
}

// grantFrame returns a frame that grants credits for the inbox with the address to.
func grantFrame(to transport.Address, credits int, summed bool) []byte {
	var b [grantBytes]byte
	binary.LittleEndian.PutUint32(b[:], uint32(int32(to.Edge)))
	binary.LittleEndian.PutUint32(b[4:], uint32(int32(to.Inbox)))
	binary.LittleEndian.PutUint32(b[8:], uint32(credits))
	return frame(kindGrant, summed, b[:])
}
