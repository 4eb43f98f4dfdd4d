package mesh

import (
	"encoding/binary"
	"fmt"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

func (c *tcpConn) Next(h *Header) error {
	if err := c.ended(); err != nil {
		return err
	}
	if c.unread != 0 {
		return fmt.Errorf("mesh: Next was called while %d bytes of the previous message were unread", c.unread)
	}
	if err := c.fill(headerBytes, c.window); err != nil {
		return c.failed(err, c.hi > c.lo)
	}
	var err error
	copy(c.frame[:], c.buf[c.lo:])
	c.current = Header{}
	if c.want, err = c.t.fence.decode(&c.frame, &c.current, uint32(c.number)); err != nil {
		return c.failed(err, true)
	}
	*h = c.current
	c.lo += headerBytes
	c.unread, c.unsummed, c.arrived = int(h.Length), nil, 0
	c.sum.Reset()
	c.window = len(c.buf)
	if c.unread >= longPayload {
		c.window = min(shortWindow, len(c.buf))
	}
	if c.unread == 0 {
		return c.finish()
	}
	return nil
}

func (c *tcpConn) Read(dst []byte) error {
	if err := c.ended(); err != nil {
		return err
	}
	if len(dst) > c.unread {
		return fmt.Errorf("mesh: Read of %d bytes where %d are left of the message", len(dst), c.unread)
	}
	if len(dst) == 0 {
		return nil
	}
	if err := c.readFull(dst); err != nil {
		return c.failed(err, true)
	}
	c.unread -= len(dst)
	if c.unread == 0 {
		return c.finish()
	}
	c.sum.Leave(c.unsummed[:c.arrived])
	c.unsummed, c.arrived = nil, 0
	return nil
}

// finish checks the checksum of the payload that was read.
func (c *tcpConn) finish() error {
	sum := c.sum.End(c.unsummed[:c.arrived]).Bits()
	c.unsummed, c.arrived = nil, 0
	if c.want.inTrailer {
		if err := c.fill(trailerBytes, c.window); err != nil {
			return c.failed(err, true)
		}
		c.want.sum = binary.LittleEndian.Uint32(c.buf[c.lo:])
		c.lo += trailerBytes
	}
	if sum != c.want.sum {
		return c.failed(fmt.Errorf("%w: its payload has the checksum %#08x, the sender's was %#08x", membership.ErrDamaged, sum, c.want.sum), true)
	}
	c.number++
	return nil
}

// describeCurrent returns a text for errors that describes the message that is being received.
func (c *tcpConn) describeCurrent() string {
	h := &c.current
	if h.Seq == 0 {
		return ""
	}
	return fmt.Sprintf(" (operation %d, lane %d, step %d, segment %d, offset %d, %d bytes)", h.Seq, h.Lane, h.Step, h.Segment, h.Offset, h.Length)
}

// noteReceived records that n bytes of a payload were read. It adds n to the rank's progress,
// and adds the bytes to the checksum while they are in the cache.
func (c *tcpConn) noteReceived(n int) {
	c.node.tracker.payloadBytes.Add(uint64(n))
	if c.t.fence.summed {
		c.unsummed, c.arrived = c.sum.Arrived(c.unsummed, c.arrived+n)
	}
}

// readFull fills dst, first with bytes from the buffer. It counts bytes as progress of the rank
// as soon as they arrive, so that the progress also grows during a long message over a slow
// network.
func (c *tcpConn) readFull(dst []byte) error {
	if c.t.fence.summed {
		c.unsummed = dst
	}
	for {
		n := copy(dst, c.buf[c.lo:c.hi])
		c.lo += n
		c.noteReceived(n)
		dst = dst[n:]
		if len(dst) == 0 {
			return nil
		}
		if len(dst) >= min(directRead, len(c.buf)) {
			return c.readDirect(dst)
		}
		if err := c.fill(len(dst), len(c.buf)); err != nil {
			return err
		}
	}
}

// readDirect fills dst from the connection. If payloads have checksums, it reads piece by
// piece, so that most of a piece is still in the cache when it is summed.
func (c *tcpConn) readDirect(dst []byte) error {
	pieceLimit := len(dst)
	if c.t.fence.summed {
		pieceLimit = checksum.PieceBytes
	}
	for len(dst) > 0 {
		n, err := c.stream().Read(dst[:min(len(dst), pieceLimit)])
		c.noteReceived(n)
		dst = dst[n:]
		if err != nil && len(dst) > 0 {
			return err
		}
	}
	return nil
}

// fill reads until at least need bytes are in the buffer. It does not fill the buffer beyond
// window bytes, unless need is larger.
func (c *tcpConn) fill(need, window int) error {
	if c.hi-c.lo >= need {
		return nil
	}
	if c.lo > 0 {
		c.hi = copy(c.buf, c.buf[c.lo:c.hi])
		c.lo = 0
	}
	window = max(window, need)
	for c.hi < need {
		n, err := c.stream().Read(c.buf[c.hi:window])
		c.hi += n
		if err != nil && c.hi < need {
			return err
		}
	}
	return nil
}
