package remote

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// The body of a frame, which follows the head, is sent in pieces of pieceBytes bytes; the last
// piece may be shorter. Each piece is followed by a checksum of the body up to the end of the
// piece. So no byte and no length is used before it has been checked, and at most one unchecked
// piece is buffered. With TLS, which authenticates the data, there are no checksums.
const (
	pieceBytes = checksum.PieceBytes
	sumBytes   = 4
)

// frameWriter appends a frame to a buffer.
type frameWriter struct {
	b      []byte
	start  int // index in b where the frame begins
	length int // number of bytes of the body, without checksums
	summed bool
	sum    checksum.Sum
}

// beginFrame appends the head of a frame to b, and returns a writer for its body.
func beginFrame(b []byte, k kind, summed bool) frameWriter {
	return frameWriter{b: appendHead(b, k, 0), start: len(b), summed: summed}
}

// Write appends p to the body. It never fails.
func (w *frameWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), pieceBytes-w.length%pieceBytes)
		w.b = append(w.b, p[:k]...)
		w.length += k
		if w.summed && w.length%pieceBytes == 0 {
			w.endPiece(pieceBytes)
		}
		p = p[k:]
	}
	return n, nil
}

// endPiece appends the checksum of the body so far. The last n bytes of the buffer are the
// piece that ends here.
func (w *frameWriter) endPiece(n int) {
	w.sum = w.sum.Add(w.b[len(w.b)-n:])
	w.b = binary.LittleEndian.AppendUint32(w.b, w.sum.Bits())
}

// end completes the frame, except for its number and the checksum of its head, and returns the
// buffer.
func (w *frameWriter) end() []byte {
	if n := w.length % pieceBytes; w.summed && n > 0 {
		w.endPiece(n)
	}
	binary.LittleEndian.PutUint32(w.b[w.start:], uint32(w.length))
	return w.b
}

// frame returns, in a new buffer, a frame of kind k whose body is the concatenation of the
// elements of body.
func frame(k kind, summed bool, body ...[]byte) []byte {
	n := 0
	for _, p := range body {
		n += len(p)
	}
	w := beginFrame(make([]byte, 0, headBytes+n+(n/pieceBytes+1)*sumBytes), k, summed)
	for _, p := range body {
		w.Write(p)
	}
	return w.end()
}

// frameReader reads and checks the body of a frame.
type frameReader struct {
	source    io.Reader
	summed    bool
	edgeName  func(edge int) string // returns the name of an edge; may be nil
	head      frameHead
	checked   int64  // number of bytes that were read and checked
	ready     []byte // checked bytes that Read has not returned yet
	sum       checksum.Sum
	piece     []byte // buffer for a piece; used if the caller's buffer is too short
	damageErr error  // error about damage that was detected
}

// begin prepares the reader for the body of the next frame, which has the given head.
func (r *frameReader) begin(head frameHead) { r.head, r.checked, r.sum = head, 0, 0 }

// title returns a text with the number of the frame, its kind and its edge.
func (r *frameReader) title() string {
	title := fmt.Sprintf("frame %d, a %v of %d bytes", r.head.number, r.head.kind, r.head.length)
	if r.head.edge < 0 {
		return title
	}
	title += fmt.Sprintf(" for edge %d", r.head.edge)
	if r.edgeName != nil {
		if name := r.edgeName(r.head.edge); name != "" {
			title += ", " + name
		}
	}
	return title
}

// rest returns the number of bytes of the body that Read has not returned yet.
func (r *frameReader) rest() int64 { return r.head.length - r.checked + int64(len(r.ready)) }

// Read returns checked bytes of the body, and io.EOF at its end.
func (r *frameReader) Read(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case r.rest() == 0:
		return 0, io.EOF
	case !r.summed:
		n, err := r.source.Read(p[:min(int64(len(p)), r.head.length-r.checked)])
		r.checked += int64(n)
		return n, err
	case len(r.ready) > 0:
		n := copy(p, r.ready)
		r.ready = r.ready[n:]
		return n, nil
	}
	n := int(min(pieceBytes, r.head.length-r.checked))
	if len(p) >= n {
		if err := r.check(p[:n]); err != nil {
			return 0, err
		}
		return n, nil
	}
	if cap(r.piece) < n {
		r.piece = make([]byte, n)
	}
	if err := r.check(r.piece[:n]); err != nil {
		return 0, err
	}
	r.ready = r.piece[copy(p, r.piece[:n]):n]
	return len(p), nil
}

// check reads the next piece and its checksum, stores the piece in p, and checks it.
func (r *frameReader) check(p []byte) error {
	var sum [sumBytes]byte
	if _, err := io.ReadFull(r.source, p); err != nil {
		return unexpectedEOF(err)
	}
	if _, err := io.ReadFull(r.source, sum[:]); err != nil {
		return unexpectedEOF(err)
	}
	r.sum = r.sum.Add(p)
	if want := binary.LittleEndian.Uint32(sum[:]); r.sum.Bits() != want {
		r.damageErr = peerlink.Damaged("%s: up to byte %d it has the checksum %#08x, and says %#08x", r.title(), r.checked+int64(len(p)), r.sum.Bits(), want)
		return r.damageErr
	}
	r.checked += int64(len(p))
	return nil
}

// unexpectedEOF returns err, which occurred in the middle of a frame, with io.EOF replaced by
// io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ErrDamaged is wrapped by errors that say that bytes from a worker were changed in transit.
var ErrDamaged = checksum.ErrDamaged
