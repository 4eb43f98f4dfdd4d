package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Send sends buf to the rank with number to. That rank calls Recv with the same tag and length.
// Send returns when the caller may overwrite buf. It may not return before the receiver calls
// Recv. Messages with the same tag arrive in the order in which they were sent. Messages with
// different tags can be received in any order. Send is not a collective: only the sender and
// the receiver take part. It may be called between any two collectives.
func Send[T Number](c *Comm, to, tag int, buf []T, opts ...Option) error {
	dtype, _ := typeOf[T]()
	conn, err := c.direct(to, opts)
	if err != nil {
		return err
	}
	defer c.watch.stop()
	h := &conn.sendHeader
	*h = mesh.Header{Hash: uint64(tag), Seq: uint64(dtype)}
	for data, off := bytesOf(buf), 0; ; {
		n := min(len(data)-off, maxDirectBytes)
		h.Offset, h.Length = uint64(off), uint32(n)
		h.Segment = 0
		if off+n < len(data) {
			h.Segment = 1 // more of this message follows
		}
		if err := conn.conn.Send(h, data[off:off+n]); err != nil {
			return c.broken(err)
		}
		if off += n; h.Segment == 0 {
			return nil
		}
	}
}

// maxDirectBytes is the largest number of bytes of a message that are sent with one header;
// longer messages are sent in segments. maxUnexpected bounds the bytes of messages from one peer
// that a rank keeps while it waits for a message from that peer with another tag.
const (
	maxDirectBytes = 1 << 20
	maxUnexpected  = 64 << 20
)

// Recv fills buf with the next message with the given tag from the rank with number from. See
// Send. Messages with other tags that arrive earlier are kept, up to 64 MiB from each rank. If
// they exceed 64 MiB, the group ends with an error.
func Recv[T Number](c *Comm, from, tag int, buf []T, opts ...Option) error {
	dtype, _ := typeOf[T]()
	conn, err := c.direct(from, opts)
	if err != nil {
		return err
	}
	defer c.watch.stop()
	if err := conn.receive(uint64(tag), uint64(dtype), bytesOf(buf)); err != nil {
		return c.broken(fmt.Errorf("receiving from rank %d with tag %d: %w", from, tag, err))
	}
	return nil
}

// directConn carries the messages of Send and Recv between two ranks.
type directConn struct {
	conn       mesh.Conn
	unexpected []message // messages that have arrived but were not yet received, in order of arrival
	size       int

	sendHeader, recvHeader mesh.Header // headers of the current messages; they are fields so that no call allocates them
}

// message is a message that has arrived and is kept for a later Recv.
type message struct {
	tag, dtype uint64
	data       []byte
}

// direct returns the connection to a peer. The first call for a peer makes it. direct also
// starts watching the context of opts. The caller stops the watch.
func (c *Comm) direct(peer int, opts []Option) (*directConn, error) {
	if err := c.group.Err(); err != nil {
		return nil, err
	}
	if c.state == closed {
		return nil, ErrClosed
	}
	if peer < 0 || peer >= c.Size() || peer == c.Rank() {
		return nil, c.fail(fmt.Errorf("a message to or from rank %d in a group of %d", peer, c.Size()))
	}
	k, err := c.messages()
	if err != nil {
		return nil, err
	}
	ctx := merge(opts).ctx
	if ctx == nil {
		ctx = context.Background()
	}
	c.watch.start(c, ctx)
	if d := c.directs[peer]; d != nil {
		return d, nil
	}
	conns, err := k.node.Open(ctx, []mesh.Route{{Peer: peer, Channel: directChannel}})
	if err != nil {
		c.watch.stop()
		return nil, c.broken(err)
	}
	if c.directs == nil {
		c.directs = map[int]*directConn{}
	}
	d := &directConn{conn: conns[0]}
	c.directs[peer] = d
	return d, nil
}

// receive fills buf with the next message with the given tag, and keeps messages with other
// tags in d.unexpected.
func (d *directConn) receive(tag, dtype uint64, buf []byte) error {
	for i, l := range d.unexpected {
		if l.tag != tag {
			continue
		}
		d.unexpected = slices.Delete(d.unexpected, i, i+1)
		d.size -= len(l.data)
		if err := fits(l.dtype, dtype, len(l.data), len(buf)); err != nil {
			return err
		}
		copy(buf, l.data)
		return nil
	}
	for {
		h := &d.recvHeader
		if err := d.conn.Next(h); err != nil {
			return err
		}
		if h.Hash == tag {
			return d.receiveInto(h, dtype, buf)
		}
		if err := d.keepUnexpected(h); err != nil {
			return err
		}
	}
}

// receiveInto reads the message that begins with header h directly into buf.
func (d *directConn) receiveInto(h *mesh.Header, dtype uint64, buf []byte) error {
	for at := 0; ; {
		n := int(h.Length)
		if h.Seq != dtype || n > len(buf)-at || h.Segment == 0 && at+n < len(buf) {
			return fits(h.Seq, dtype, at+n, len(buf))
		}
		if err := d.conn.Read(buf[at : at+n]); err != nil {
			return err
		}
		if at += n; h.Segment == 0 {
			return nil
		}
		if err := d.conn.Next(h); err != nil {
			return err
		}
	}
}

// keepUnexpected reads the message that begins with header h and appends it to d.unexpected.
func (d *directConn) keepUnexpected(h *mesh.Header) error {
	l := message{tag: h.Hash, dtype: h.Seq}
	for {
		if d.size+int(h.Length) > maxUnexpected {
			return fmt.Errorf("more than %d MiB of messages with other tags wait to be received", maxUnexpected>>20)
		}
		at := len(l.data)
		l.data = append(l.data, make([]byte, h.Length)...)
		d.size += int(h.Length)
		if err := d.conn.Read(l.data[at:]); err != nil {
			return err
		}
		if h.Segment == 0 {
			d.unexpected = append(d.unexpected, l)
			return nil
		}
		if err := d.conn.Next(h); err != nil {
			return err
		}
	}
}

// fits returns an error if a message does not have the expected element type and length. sent
// and expected are the element types; bytes and room are the lengths in bytes of the message
// and of the buffer.
func fits(sent, expected uint64, bytes, room int) error {
	if sent != expected || bytes != room {
		name := func(d uint64) string {
			if d < uint64(numTypes) {
				return typeNames[d]
			}
			return "unknown"
		}
		return fmt.Errorf("the message holds %d bytes of %s where %d bytes of %s are expected", bytes, name(sent), room, name(expected))
	}
	return nil
}
