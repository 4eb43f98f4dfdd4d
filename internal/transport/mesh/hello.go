package mesh

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// hello is the first thing on a connection: what it is for. The lower rank says it.
//
//	 0  magic "SSHi"          20  from rank
//	 4  version               24  to rank
//	 5  flags: 1 checksums    28  channel
//	 8  attempt               32  which of the lower rank's tries this is
//	12  hash of the group     36  CRC-32C of the 36 bytes before
type hello struct {
	attempt                uint32
	group                  uint64
	from, to, channel, try uint32
	summed                 bool // payloads have checksums
}

const (
	helloBytes = 40
	helloMagic = 0x69485353

	helloSummed = 1
)

func (m *hello) encode(b *[helloBytes]byte) {
	le := binary.LittleEndian
	*b = [helloBytes]byte{}
	le.PutUint32(b[0:], helloMagic)
	b[4] = WireVersion
	if m.summed {
		b[5] = helloSummed
	}
	le.PutUint32(b[8:], m.attempt)
	le.PutUint64(b[12:], m.group)
	le.PutUint32(b[20:], m.from)
	le.PutUint32(b[24:], m.to)
	le.PutUint32(b[28:], m.channel)
	le.PutUint32(b[32:], m.try)
	le.PutUint32(b[36:], crc32.Checksum(b[:36], castagnoli))
}

// verdict is the answer to a hello.
type verdict byte

const (
	accepted verdict = iota + 1
	refused          // and would be again
	notYet           // but may be accepted later: the answering process is of an attempt that ends
)

// decode reads a hello that may come from anybody. Where the error is no answer for
// the peer, because it does not speak this protocol, the verdict is 0.
func (m *hello) decode(b *[helloBytes]byte) (verdict, error) {
	le := binary.LittleEndian
	switch {
	case le.Uint32(b[0:]) != helloMagic:
		return 0, fmt.Errorf("%w: a connection begins with %q, which is no hello", ErrFrame, b[:4])
	case b[4] != WireVersion:
		v := refused
		if le.Uint32(b[36:]) != crc32.Checksum(b[:36], castagnoli) {
			v = notYet // another layout, or damaged: then another try does better
		}
		return v, fmt.Errorf("%w: a hello of version %d of the protocol, this is version %d: run the same build everywhere", ErrFrame, b[4], WireVersion)
	case le.Uint32(b[36:]) != crc32.Checksum(b[:36], castagnoli):
		return 0, fmt.Errorf("%w: a hello with a wrong checksum", ErrFrame)
	case b[5]&^helloSummed|b[6]|b[7] != 0:
		return 0, fmt.Errorf("%w: a hello with flags %#02x%02x%02x of no meaning", ErrFrame, b[5], b[6], b[7])
	}
	*m = hello{summed: b[5]&helloSummed != 0, attempt: le.Uint32(b[8:]), group: le.Uint64(b[12:]),
		from: le.Uint32(b[20:]), to: le.Uint32(b[24:]), channel: le.Uint32(b[28:]), try: le.Uint32(b[32:])}
	return accepted, nil
}

// answer is what comes back: a verdict, and where it is not accepted, why.
//
//	0  magic "SSOk"   5  verdict        8  CRC-32C of the 8 bytes before and the reason
//	4  version        6  length of the reason, which follows the 12 bytes
const (
	answerBytes = 12
	answerMagic = 0x6b4f5353
	maxReason   = 512
)

// writeAnswer answers a hello.
func writeAnswer(w io.Writer, v verdict, reason string) error {
	reason = reason[:min(len(reason), maxReason)]
	b := make([]byte, answerBytes, answerBytes+len(reason))
	le := binary.LittleEndian
	le.PutUint32(b[0:], answerMagic)
	b[4], b[5] = WireVersion, byte(v)
	le.PutUint16(b[6:], uint16(len(reason)))
	sum := crc32.Update(crc32.Checksum(b[:8], castagnoli), castagnoli, []byte(reason))
	le.PutUint32(b[8:], sum)
	_, err := w.Write(append(b, reason...))
	return err
}

// errAnswer says that nobody knows what the answer was.
var errAnswer = fmt.Errorf("its answer was %w", membership.ErrDamaged)

// readAnswer reads the answer to a hello, from what may be any kind of server.
func readAnswer(r io.Reader) (v verdict, reason string, err error) {
	var b [answerBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, "", err
	}
	le := binary.LittleEndian
	n := int(le.Uint16(b[6:]))
	v = verdict(b[5])
	switch {
	case le.Uint32(b[0:]) != answerMagic:
		return 0, "", fmt.Errorf("%w: the answer begins with %q: another program listens there, or it was damaged in transit", ErrFrame, b[:4])
	case n > maxReason:
		return 0, "", fmt.Errorf("%w: an answer with a reason of %d bytes: another program listens there, or it was damaged in transit", ErrFrame, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, "", err
	}
	switch {
	case crc32.Update(crc32.Checksum(b[:8], castagnoli), castagnoli, text) != le.Uint32(b[8:]):
		return 0, "", errAnswer
	case b[4] != WireVersion:
		return 0, "", fmt.Errorf("%w: an answer of version %d of the protocol, this is version %d: run the same build everywhere", ErrFrame, b[4], WireVersion)
	case v < accepted || v > notYet:
		return 0, "", fmt.Errorf("%w: an answer with verdict %d", ErrFrame, v)
	}
	return v, string(text), nil
}
