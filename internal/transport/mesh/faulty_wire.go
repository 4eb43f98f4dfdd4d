package mesh

import (
	"context"
	"encoding/binary"
	"net"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// OnWire changes cfg so that the TCP connections of its mesh insert the faults of the plan into
// the bytes that this process writes, including headers. It does not affect connections in
// memory, within one process.
//
// A mesh detects a change of a header or a payload by its checksum, and missing and repeated
// messages by the number of the next message. It also detects the end of a connection. If all
// messages after some message are missing, the mesh detects nothing: the group makes no
// progress, and the membership ends it. With TCPConfig.NoChecksum, corrupted bytes of a payload
// are not detected and get into the result. If the end of a payload is missing with NoChecksum,
// bytes of the next message get into the result before the mesh detects that the next message
// is damaged.
func (p FaultPlan) OnWire(cfg *TCPConfig) error {
	if err := p.Check(); err != nil {
		return err
	}
	cfg.wire = func(ctx context.Context, conn net.Conn, from int, r Route) net.Conn {
		return &faultyWire{Conn: conn, ctx: ctx, faults: p.of(from, r.Peer, r.Channel)}
	}
	return nil
}

// wired returns conn, wrapped by cfg.wire in tests.
func (t *TCP) wired(conn net.Conn, n *node, r Route) net.Conn {
	if t.cfg.wire == nil {
		return conn
	}
	return t.cfg.wire(t.ctx, conn, n.rank, r)
}

// faultyWire is a connection that inserts the faults of a plan into written messages. Only one
// goroutine at a time may write. faultyWire collects bytes until a message is complete, and
// then writes the message according to the plan.
type faultyWire struct {
	net.Conn
	ctx    context.Context // delays end when ctx ends
	faults *faults
	buf    []byte
	broken error // error of all further writes; set when the connection is cut
}

func (w *faultyWire) Write(b []byte) (int, error) {
	if w.broken != nil {
		return 0, w.broken
	}
	w.buf = append(w.buf, b...)
	for len(w.buf) >= headerBytes {
		n := headerBytes + int(binary.LittleEndian.Uint32(w.buf[lengthAt:]))
		if w.buf[flagsAt]&flagTrailer != 0 {
			n += trailerBytes
		}
		if len(w.buf) < n {
			break
		}
		if err := w.pass(w.buf[:n]); err != nil {
			return 0, err
		}
		w.buf = append(w.buf[:0], w.buf[n:]...)
	}
	return len(b), nil
}

// pass writes a message according to the plan.
func (w *faultyWire) pass(message []byte) error {
	f := w.faults.next()
	if f.delay > 0 {
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.ctx.Done():
		}
	}
	header, payload := message[:headerBytes], message[headerBytes:]
	switch f.kind {
	case Drop:
		return nil
	case Cut:
		return w.cut(message[:f.shorter(len(message))])
	case Truncate:
		if f.header {
			header = shortened(header, f.shorter(len(payload)))
		} else {
			payload = payload[:f.shorter(len(payload))]
		}
	case Corrupt:
		if f.header {
			header = f.flip(header)
		} else {
			payload = f.flip(payload)
		}
	case Duplicate:
		if _, err := w.Conn.Write(message); err != nil {
			return err
		}
	}
	_, err := w.Conn.Write(append(append(make([]byte, 0, len(message)), header...), payload...))
	return err
}

// cut writes beginning, which has the first bytes of a message, and ends the connection.
func (w *faultyWire) cut(beginning []byte) error {
	w.broken = &net.OpError{Op: "write", Net: "tcp", Addr: w.RemoteAddr(), Err: syscall.ECONNRESET}
	if _, err := w.Conn.Write(beginning); err != nil {
		return err
	}
	_ = w.Close()
	return w.broken
}

// shortened returns a copy of the header with payload length n and a correct checksum.
func shortened(header []byte, n int) []byte {
	b := append([]byte(nil), header...)
	binary.LittleEndian.PutUint32(b[lengthAt:], uint32(n))
	binary.LittleEndian.PutUint32(b[headerSumFrom:], checksum.CRC32C(0, b[:headerSumFrom]))
	return b
}
