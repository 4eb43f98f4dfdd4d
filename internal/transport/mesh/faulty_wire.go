package mesh

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"net"
	"syscall"
	"time"
)

// OnWire has the TCP connections that a mesh will make carry out the plan on what this
// process writes to them, headers and all. Ranks of one process are connected in
// memory, and not concerned.
//
// What a mesh finds out there: any change of a header or a payload, by its checksum;
// messages that are missing or come twice, by the number of the next one; connections
// that end. What is missing behind the last message that comes at all is a standstill,
// which the membership ends. With TCPConfig.NoChecksum, bytes of payloads that were
// corrupted behind TCP's own 16-bit checksum go into the result, and so do those of the
// next message where the end of a payload is missing, before that message is found to
// be broken.
func (p FaultPlan) OnWire(cfg *TCPConfig) error {
	if err := p.Check(); err != nil {
		return err
	}
	cfg.wire = func(ctx context.Context, conn net.Conn, from int, r Route) net.Conn {
		return &faultyWire{Conn: conn, ctx: ctx, faults: p.of(from, r.Peer, r.Channel)}
	}
	return nil
}

// wired is what is written and read in the place of a new connection.
func (t *TCP) wired(conn net.Conn, n *node, r Route) net.Conn {
	if t.cfg.wire == nil {
		return conn
	}
	return t.cfg.wire(t.ctx, conn, n.rank, r)
}

// faultyWire is a connection that writes by plan. One goroutine at a time writes. What
// is written is gathered until a message is complete, and sent as the plan has it.
type faultyWire struct {
	net.Conn
	ctx    context.Context // ends the waiting of delays
	faults *faults
	buf    []byte
	broken error // it is cut
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

// pass writes a message as the plan has it.
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

// cut ends the connection behind the beginning of a message.
func (w *faultyWire) cut(beginning []byte) error {
	w.broken = &net.OpError{Op: "write", Net: "tcp", Addr: w.RemoteAddr(), Err: syscall.ECONNRESET}
	if _, err := w.Conn.Write(beginning); err != nil {
		return err
	}
	_ = w.Close()
	return w.broken
}

// shortened is a valid header that announces n bytes.
func shortened(header []byte, n int) []byte {
	b := append([]byte(nil), header...)
	binary.LittleEndian.PutUint32(b[lengthAt:], uint32(n))
	binary.LittleEndian.PutUint32(b[headerSumFrom:], crc32.Update(0, castagnoli, b[:headerSumFrom]))
	return b
}
