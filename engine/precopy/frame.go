package precopy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// After the handshake, a connection carries frames in both directions. A frame has a head and a body. Numbers are
// in little endian. The head is:
//
//	0  magic "SSPP"         8  length of the body                            16  upper half of the chained
//	4  kind                 12 number of the frame in its direction              XXH3 of the body
//	5  zero                    of the connection, from 0                     20  CRC-32C of the 20 bytes before
//
// So no length is used before it has been checked, and a frame that is damaged, lost, repeated or out of order is
// noticed before any of its bytes are used. The connection is then given up.
//
//	order      worker 0 → taker    message: shards to take, from which workers
//	outcome    taker → worker 0    message: what was taken
//	want       taker → giver       message: a shard
//	offer      giver → taker       message: the sizes of its rows by data port; none if it cannot be given
//	go, pass   taker → giver       whether the taker wants the rows
//	data       giver → taker       part of an Arrow stream with the rows of a data port
//	end        giver → taker       the stream of a data port is complete; once for each port, in the order of the offer
//	failed     giver → taker       in place of data or end: the rows cannot be given after all, and why
type kind byte

const (
	kindOrder kind = iota + 1
	kindOutcome
	kindWant
	kindOffer
	kindGo
	kindPass
	kindData
	kindEnd
	kindFailed
)

// String returns the name of the kind with its article, for errors.
func (k kind) String() string {
	names := [...]string{"no frame", "an order", "an outcome", "a request for a shard", "an offer", "a go", "a pass", "rows", "the end of rows", "word of a failure"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("a frame of kind %d", byte(k))
}

const (
	frameMagic = "SSPP"
	headBytes  = 24
	sumBytes   = 4

	// dataBytes is the largest body of a frame with rows. It is a multiple of checksum.PieceBytes.
	dataBytes = 8 * checksum.PieceBytes
	// messageBytes is the largest body of any other frame.
	messageBytes = 1 << 20
)

// most returns the largest length of the body of a frame.
func (k kind) most() int {
	switch k {
	case kindData:
		return dataBytes
	case kindGo, kindPass, kindEnd:
		return 0
	}
	return messageBytes
}

// frameWriter writes frames.
type frameWriter struct {
	w      *bufio.Writer
	step   func() // called before each write that may wait
	number uint32 // of the next frame
	head   [headBytes]byte
}

func newFrameWriter(w io.Writer, step func()) *frameWriter {
	return &frameWriter{w: bufio.NewWriter(w), step: step}
}

// write writes a frame.
func (w *frameWriter) write(k kind, body []byte) error {
	if len(body) > k.most() {
		return fmt.Errorf("%v of %d bytes, where at most %d are sent", k, len(body), k.most())
	}
	le, b := binary.LittleEndian, w.head[:]
	copy(b, frameMagic)
	b[4] = byte(k)
	le.PutUint32(b[8:], uint32(len(body)))
	le.PutUint32(b[12:], w.number)
	le.PutUint32(b[16:], checksum.Of(body).Bits())
	le.PutUint32(b[20:], checksum.CRC32C(0, b[:20]))
	w.number++
	w.step()
	if _, err := w.w.Write(b); err != nil {
		return err
	}
	_, err := w.w.Write(body)
	return err
}

// send writes a frame, and sends all that was written.
func (w *frameWriter) send(k kind, body []byte) error {
	if err := w.write(k, body); err != nil {
		return err
	}
	w.step()
	return w.w.Flush()
}

// frameReader reads frames. After an error it cannot be used.
type frameReader struct {
	r      io.Reader
	step   func() // called before each read
	number uint32 // of the next frame
	head   [headBytes]byte
	body   []byte // of the last frame
}

func newFrameReader(r io.Reader, step func()) *frameReader {
	return &frameReader{r: r, step: step}
}

// next reads the next frame. The body is valid until the next call. The error is io.EOF only if the connection ends
// between two frames.
func (r *frameReader) next() (kind, []byte, error) {
	r.step()
	b := r.head[:]
	if _, err := io.ReadFull(r.r, b); err != nil {
		return 0, nil, err
	}
	le := binary.LittleEndian
	if checksum.CRC32C(0, b[:headBytes-sumBytes]) != le.Uint32(b[headBytes-sumBytes:]) {
		return 0, nil, peerlink.Damaged("the head of frame %d has a wrong checksum", r.number)
	}
	if got := le.Uint32(b[12:]); got != r.number {
		return 0, nil, peerlink.Damaged("frame %d came in the place of frame %d: frames were lost, repeated or reordered", got, r.number)
	}
	k, length := kind(b[4]), le.Uint32(b[8:])
	if string(b[:4]) != frameMagic || b[5] != 0 || b[6] != 0 || b[7] != 0 || k < kindOrder || k > kindFailed || length > uint32(k.most()) {
		return 0, nil, peerlink.Violation("a frame begins with %x", b)
	}
	if int(length) > cap(r.body) {
		r.body = make([]byte, max(int(length), dataBytes))
	}
	r.body = r.body[:length]
	r.step()
	if _, err := io.ReadFull(r.r, r.body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	if checksum.Of(r.body).Bits() != le.Uint32(b[16:]) {
		return 0, nil, peerlink.Damaged("the body of frame %d has a wrong checksum", r.number)
	}
	r.number++
	return k, r.body, nil
}
