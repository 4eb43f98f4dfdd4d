package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// ErrFenced is wrapped by errors that refuse messages of another attempt of the group.
var ErrFenced = errors.New("fenced off")

// ErrFrame is wrapped by errors that say that bytes are not a message of this protocol.
var ErrFrame = errors.New("bad message")

// A message consists of a header of headerBytes bytes and the payload. Numbers are
// little-endian:
//
//	 0  magic "SM"            24  sequence number
//	 2  version               32  hash of the operation
//	 3  flags                 40  offset
//	 4  lane                  48  segment
//	 6  step                  52  length of the payload
//	 8  attempt               56  checksum of the payload, or 0 if it is not here
//	12  message number        60  CRC-32C of the 60 bytes before
//	16  hash of the group's name
//
// If flagTrailer is set, the checksum follows the payload, in trailerBytes bytes, because the
// sender writes the header of a long message before it has summed the payload.
//
// The message number counts the messages of one direction of the connection, modulo 2³². If a
// message is lost, repeated or out of order, the receiver detects this by the number of the
// next message. Either all payloads of a connection have checksums, or no payload has one.
const (
	headerBytes   = 64
	headerMagic   = 0x4d53
	versionAt     = 2
	flagsAt       = 3
	lengthAt      = 52
	trailerBytes  = 4
	flagAbsent    = 1 << 0
	flagChecksum  = 1 << 1
	flagTrailer   = 1 << 2 // the checksum follows the payload
	flagsKnown    = flagAbsent | flagChecksum | flagTrailer
	headerSumFrom = headerBytes - 4
)

// WireVersion is the version of the messages. A message of another version is refused.
const WireVersion = 4

// payloadSum has what a header says about the checksum of the payload: sum is the value of the
// checksum, or inTrailer says that the checksum follows the payload. Both are zero if payloads
// have no checksum.
type payloadSum struct {
	sum       uint32
	inTrailer bool
}

// fence has the values that all messages of a group must have, and the limits of messages.
// Messages that do not fit are refused.
type fence struct {
	attempt uint32
	group   uint64 // hash of the group's name
	limit   int    // length of the longest payload
	summed  bool   // payloads have checksums
}

// groupHash returns the hash of a group's name, which is in the header of messages.
func groupHash(name string) uint64 { return xxh3.HashString(name) }

// encode writes the header of the message with the given number to b.
func (f *fence) encode(b *[headerBytes]byte, h *Header, number uint32, s payloadSum) {
	var flags byte
	if h.Absent {
		flags |= flagAbsent
	}
	if f.summed {
		flags |= flagChecksum
	}
	if s.inTrailer {
		flags |= flagTrailer
	}
	le := binary.LittleEndian
	le.PutUint16(b[0:], headerMagic)
	b[versionAt], b[flagsAt] = WireVersion, flags
	le.PutUint16(b[4:], h.Lane)
	le.PutUint16(b[6:], h.Step)
	le.PutUint32(b[8:], f.attempt)
	le.PutUint32(b[12:], number)
	le.PutUint64(b[16:], f.group)
	le.PutUint64(b[24:], h.Seq)
	le.PutUint64(b[32:], h.Hash)
	le.PutUint64(b[40:], h.Offset)
	le.PutUint32(b[48:], h.Segment)
	le.PutUint32(b[lengthAt:], h.Length)
	le.PutUint32(b[56:], s.sum)
	le.PutUint32(b[headerSumFrom:], checksum.CRC32C(0, b[:headerSumFrom]))
}

// decode reads a header from b, which may have arbitrary bytes, and checks it. number is the
// message number that the header must have. The payload is read, and memory is allocated for
// it, only after the whole header has been checked. The header's checksum is checked first:
// errors about other fields make sense only if the header is undamaged.
func (f *fence) decode(b *[headerBytes]byte, h *Header, number uint32) (s payloadSum, err error) {
	le := binary.LittleEndian
	if got, want := checksum.CRC32C(0, b[:headerSumFrom]), le.Uint32(b[headerSumFrom:]); got != want {
		return payloadSum{}, fmt.Errorf("%w: its header has the checksum %#08x and says %#08x", membership.ErrDamaged, got, want)
	}
	if m := le.Uint16(b[0:]); m != headerMagic {
		return payloadSum{}, fmt.Errorf("%w: it begins with %#04x, not with %#04x: the peer speaks another protocol", ErrFrame, m, headerMagic)
	}
	if v := b[versionAt]; v != WireVersion {
		return payloadSum{}, fmt.Errorf("%w: version %d of the protocol, this is version %d: run the same build everywhere", ErrFrame, v, WireVersion)
	}
	if err := f.admit(le.Uint32(b[8:]), le.Uint64(b[16:])); err != nil {
		return payloadSum{}, err
	}
	if got := le.Uint32(b[12:]); got != number {
		return payloadSum{}, fmt.Errorf("%w: number %d came in its place: messages were lost, repeated or reordered", membership.ErrDamaged, got)
	}
	flags, length := b[flagsAt], le.Uint32(b[lengthAt:])
	s = payloadSum{le.Uint32(b[56:]), flags&flagTrailer != 0}
	switch {
	case flags&^flagsKnown != 0 || (flags&flagChecksum == 0 && s != payloadSum{}) || s.inTrailer && (s.sum != 0 || length == 0):
		return payloadSum{}, fmt.Errorf("%w: it has flags %#02x of no meaning", ErrFrame, flags)
	case flags&flagChecksum != 0 != f.summed:
		return payloadSum{}, fmt.Errorf("%w: its payload has a checksum: %t, agreed was: %t", ErrFrame, !f.summed, f.summed)
	case uint64(length) > uint64(f.limit):
		return payloadSum{}, fmt.Errorf("%w: it announces %d bytes, above the limit of %d", ErrFrame, length, f.limit)
	case flags&flagAbsent != 0 && length != 0:
		return payloadSum{}, fmt.Errorf("%w: an absent value comes with %d bytes", ErrFrame, length)
	}
	*h = Header{
		Seq: le.Uint64(b[24:]), Hash: le.Uint64(b[32:]),
		Lane: le.Uint16(b[4:]), Step: le.Uint16(b[6:]),
		Segment: le.Uint32(b[48:]), Offset: le.Uint64(b[40:]),
		Length: length, Absent: flags&flagAbsent != 0,
	}
	return s, nil
}

// admit returns an error if attempt or group differs from the attempt or group of f.
func (f *fence) admit(attempt uint32, group uint64) error {
	switch {
	case group != f.group:
		return fmt.Errorf("%w: it is of another group (hash %#016x, this one has %#016x): check the addresses", ErrFrame, group, f.group)
	case attempt < f.attempt:
		return fmt.Errorf("%w: it is of attempt %d, which is over: attempt %d runs", ErrFenced, attempt, f.attempt)
	case attempt > f.attempt:
		return fmt.Errorf("%w: it is of attempt %d, newer than attempt %d here, which is over", ErrFenced, attempt, f.attempt)
	}
	return nil
}
