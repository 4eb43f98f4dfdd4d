package copies

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// After the handshake, a connection carries frames in both directions. A frame has a head, the name
// of a queue and a body. Numbers are in little endian. The head is:
//
//	0  magic "SSPC"            12  superstep          24  length of the body
//	4  kind                    16  number of pieces   28  number of the frame in its direction
//	5  flags (flagEnded...)    20  piece                  of the connection, from 0
//	6  length of the name                             32  CRC-32C of the 32 bytes before
//
// The name is followed by the CRC-32C of the head and the name, and the body by the upper half of
// the chained XXH3 of the body (package checksum). A name or body of length 0 has no checksum. So no
// length is used before it has been checked, and a frame that is damaged, lost, repeated or out of
// order is noticed. The receiver then closes the connection, and the dialer sends everything again
// that was not acknowledged.
//
// The dialer sends messages, each of which is acknowledged, and fetches:
//
//	piece      a piece of a state, to be held                       body: the piece
//	report     the dialer has shared its pieces, or void: some not
//	outcome    the state is complete, or void
//	gather     the state is complete: the listener sends what it has shared of it to all workers
//	gathered   the dialer has done so
//	narrow     later states need not go to all workers
//	fetch      asks for pieces                                      body: their numbers, as varints
//
// The listener sends, in the order of the dialer's frames:
//
//	received   acknowledges a message
//	piece      a piece that was asked for                           body: the piece
//	missing    a piece that was asked for is not here
type kind byte

const (
	kindPiece kind = iota + 1
	kindReport
	kindOutcome
	kindFetch
	kindReceived
	kindMissing
	kindGather
	kindGathered
	kindNarrow
)

// String returns the name of the kind with its article, for errors.
func (k kind) String() string {
	names := [...]string{"no frame", "a piece", "a report", "an outcome", "a fetch", "an acknowledgement", "word of a missing piece", "a request to gather", "a report of a gathered state", "the end of a gathering"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("a frame of kind %d", byte(k))
}

const (
	frameMagic = "SSPC"
	headBytes  = 32
	sumBytes   = 4
	flagVoid   = 2
	flagWide   = 4 // of a report: the copies went to all workers

	// stepBytes is the number of bytes that are read or written at a time. It is a multiple of
	// checksum.PieceBytes.
	stepBytes = 4 * checksum.PieceBytes
	// firstRoom is the memory that is taken for a body before its bytes arrive.
	firstRoom = 1 << 20
)

// head is the content of the head of a frame, and of its name.
type head struct {
	Message
	length int64 // of the body
}

// most returns the largest length of the body of a frame.
func (k kind) most() int64 {
	switch k {
	case kindPiece:
		return MaxPiece
	case kindFetch:
		return MaxPieces * binary.MaxVarintLen32
	}
	return 0
}

// frameWriter writes frames.
type frameWriter struct {
	w      *bufio.Writer
	step   func() // called before each write that may wait
	number uint32 // of the next frame
	small  []byte // buffer of the head and the name
}

func newFrameWriter(w io.Writer, step func()) *frameWriter {
	return &frameWriter{w: bufio.NewWriter(w), step: step}
}

// write writes a frame whose body has the given checksum.
func (w *frameWriter) write(m Message, body []byte, sum checksum.Sum) error {
	le := binary.LittleEndian
	var flags byte
	if m.Ended {
		flags |= flagEnded
	}
	if m.void {
		flags |= flagVoid
	}
	if m.wide {
		flags |= flagWide
	}
	b := append(w.small[:0], frameMagic...)
	b = append(b, byte(m.kind), flags)
	b = le.AppendUint16(b, uint16(len(m.Queue)))
	for _, v := range [...]int{m.Superstep, m.Of, m.piece, len(body)} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = le.AppendUint32(b, w.number)
	b = le.AppendUint32(b, checksum.CRC32C(0, b))
	if len(m.Queue) > 0 {
		b = append(b, m.Queue...)
		b = le.AppendUint32(b, checksum.CRC32C(0, b))
	}
	w.small = b
	w.number++
	w.step()
	if _, err := w.w.Write(b); err != nil {
		return err
	}
	for rest := body; len(rest) > 0; {
		n := min(len(rest), stepBytes)
		w.step()
		if _, err := w.w.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if len(body) > 0 {
		w.small = le.AppendUint32(w.small[:0], sum.Bits())
		w.step()
		if _, err := w.w.Write(w.small); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what has been written.
func (w *frameWriter) flush() error {
	w.step()
	return w.w.Flush()
}

// frameReader reads frames. After an error it cannot be used.
type frameReader struct {
	r      *bufio.Reader
	step   func() // called before each read within a frame, but not before the first; may be nil
	number uint32 // of the next frame
	small  [headBytes]byte
	name   []byte // buffer of a name
	queue  string // name of the last frame that has one
}

func newFrameReader(r io.Reader, step func()) *frameReader {
	if step == nil {
		step = func() {}
	}
	return &frameReader{r: bufio.NewReader(r), step: step}
}

// next reads the head and the name of the next frame. If its body is not empty, the caller reads it
// before it calls next again. The error is io.EOF only if the connection ends between two frames.
func (r *frameReader) next() (head, error) {
	if _, err := r.r.Peek(1); err != nil {
		return head{}, err
	}
	b := r.small[:]
	if err := r.read(b); err != nil {
		return head{}, err
	}
	le := binary.LittleEndian
	if checksum.CRC32C(0, b[:headBytes-sumBytes]) != le.Uint32(b[headBytes-sumBytes:]) {
		return head{}, peerlink.Damaged("the head of frame %d has a wrong checksum", r.number)
	}
	if got := le.Uint32(b[24:]); got != r.number {
		return head{}, peerlink.Damaged("frame %d came in the place of frame %d: frames were lost, repeated or reordered", got, r.number)
	}
	h := head{length: int64(le.Uint32(b[20:]))}
	h.kind, h.Ended, h.void, h.wide = kind(b[4]), b[5]&flagEnded != 0, b[5]&flagVoid != 0, b[5]&flagWide != 0
	h.Superstep, h.Of, h.piece = int(le.Uint32(b[8:])), int(le.Uint32(b[12:])), int(le.Uint32(b[16:]))
	if string(b[:4]) != frameMagic || b[5]&^(flagEnded|flagVoid|flagWide) != 0 || h.kind < kindPiece || h.kind > kindNarrow || h.length > h.kind.most() {
		return head{}, peerlink.Violation("a frame begins with %x", b)
	}
	if n := int(le.Uint16(b[6:])); n > 0 {
		if err := r.readName(n); err != nil {
			return head{}, err
		}
		h.Queue = r.queue
	}
	r.number++
	return h, h.check()
}

// more reports whether the next frame has begun to arrive.
func (r *frameReader) more() bool { return r.r.Buffered() >= headBytes }

// readName reads a name of n bytes into queue.
func (r *frameReader) readName(n int) error {
	r.name = append(r.name[:0], make([]byte, n+sumBytes)...)
	if err := r.read(r.name); err != nil {
		return err
	}
	name, sum := r.name[:n], binary.LittleEndian.Uint32(r.name[n:])
	if checksum.CRC32C(checksum.CRC32C(0, r.small[:]), name) != sum {
		return peerlink.Damaged("the name of the queue in frame %d has a wrong checksum", r.number)
	}
	if string(name) != r.queue {
		r.queue = string(name)
	}
	return nil
}

// check returns an error if the frame says something that has no meaning.
func (h head) check() error {
	if h.kind == kindReceived {
		return nil
	}
	if err := h.checkPiece(h.piece, int(h.length)); err != nil {
		return fmt.Errorf("%w: %v: %w", peerlink.ErrProtocol, h.kind, err)
	}
	return nil
}

// body reads a body of n bytes, which it appends to b. It takes further memory only when bytes have
// arrived that fill what it has. It returns the checksum of the body too.
func (r *frameReader) body(b []byte, n int64) ([]byte, checksum.Sum, error) {
	var sum checksum.Sum
	for n > 0 {
		k := int(min(n, stepBytes))
		b = grown(b, k, n)
		part := b[len(b) : len(b)+k]
		if err := r.read(part); err != nil {
			return b, 0, err
		}
		b, sum, n = b[:len(b)+k], sum.AddAll(part), n-int64(k)
		if n == 0 {
			if err := r.bodyEnd(sum); err != nil {
				return b, 0, err
			}
		}
	}
	return b, sum, nil
}

// bodyEnd reads the checksum behind a body.
func (r *frameReader) bodyEnd(sum checksum.Sum) error {
	end := r.small[:sumBytes]
	if err := r.read(end); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(end) != sum.Bits() {
		return peerlink.Damaged("the body of frame %d has a wrong checksum", r.number-1)
	}
	return nil
}

// skip reads and checks a body of n bytes that nobody wants.
func (r *frameReader) skip(n int64) error {
	if n == 0 {
		return nil
	}
	var sum checksum.Sum
	for b := make([]byte, min(n, stepBytes)); n > 0; n -= int64(len(b)) {
		b = b[:min(n, stepBytes)]
		if err := r.read(b); err != nil {
			return err
		}
		sum = sum.AddAll(b)
	}
	return r.bodyEnd(sum)
}

// grown returns b with room for k more bytes. n is how many bytes are still to come at all.
func grown(b []byte, k int, n int64) []byte {
	if cap(b)-len(b) >= k {
		return b
	}
	room := max(2*cap(b), firstRoom)
	if whole := len(b) + int(n); room >= whole {
		room = roomFor(whole)
	}
	return append(make([]byte, 0, room), b...)
}

// read fills b, in the middle of a frame.
func (r *frameReader) read(b []byte) error {
	r.step()
	_, err := io.ReadFull(r.r, b)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
