package precopy

import (
	"io"
	"time"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// giveAll answers the requests that come over a connection.
func (n *Node) giveAll(l *line) error {
	for {
		k, body, err := l.r.next()
		if err == io.EOF {
			return nil
		}
		if err == nil && k != kindWant {
			err = peerlink.Violation("%v, where a request for a shard is due", k)
		}
		if err != nil {
			return err
		}
		w, err := decodeWant(body)
		if err != nil {
			return err
		}
		if l.until.IsZero() {
			l.until = time.Now().Add(w.Within)
		}
		if err := n.giveShard(l, w); err != nil {
			return err
		}
	}
}

// giveShard offers the rows of a shard, and sends them if the other side wants them.
func (n *Node) giveShard(l *line, w want) error {
	o := offerOf(n.cfg.Rows.Offer(w.Queue, w.Shard))
	body, err := offers.Append(nil, o)
	if err != nil {
		return err
	}
	if err := l.w.send(kindOffer, body); err != nil || len(o.Ports) == 0 {
		return err
	}
	switch k, _, err := l.r.next(); {
	case err != nil:
		return err
	case k == kindPass:
		return nil
	case k != kindGo:
		return peerlink.Violation("%v, where a go or pass is due", k)
	}
	for _, p := range o.Ports {
		out := &rowWriter{l: l, buf: make([]byte, 0, dataBytes)}
		if err := n.givePort(out, w, p); err != nil {
			if out.err != nil {
				return out.err
			}
			return l.w.send(kindFailed, []byte(clip(err.Error())))
		}
	}
	return nil
}

// givePort sends the rows of a data port, as an Arrow stream in frames.
func (n *Node) givePort(out *rowWriter, w want, p portSize) error {
	var stream *batch.StreamWriter
	err := n.cfg.Rows.Give(w.Queue, p.Port, w.Shard, func(given columnar.Batch) error {
		rows := arrowrows.Record(given)
		if stream == nil {
			stream = batch.NewStreamWriter(out, rows.Schema(), n.cfg.Allocator)
		}
		if err := stream.Write(rows); err != nil {
			return err
		}
		return out.flush() // the rows may be released now
	})
	if stream != nil {
		if closed := stream.Close(); err == nil {
			err = closed
		}
	}
	if err == nil {
		err = out.flush()
	}
	if err == nil {
		out.err = out.l.w.send(kindEnd, nil)
		err = out.err
	}
	return err
}

// rowWriter writes the bytes of an Arrow stream in frames.
type rowWriter struct {
	l   *line
	buf []byte
	err error // of the connection
}

// Write implements io.Writer.
func (w *rowWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if w.err != nil {
			return 0, w.err
		}
		if len(w.buf) == 0 && len(b) >= dataBytes { // without a copy
			w.err = w.l.w.write(kindData, b[:dataBytes])
			b = b[dataBytes:]
			continue
		}
		k := min(len(b), dataBytes-len(w.buf))
		w.buf, b = append(w.buf, b[:k]...), b[k:]
		if len(w.buf) == dataBytes {
			w.err = w.l.w.write(kindData, w.buf)
			w.buf = w.buf[:0]
		}
	}
	return n, w.err
}

// flush sends what was written.
func (w *rowWriter) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		w.err = w.l.w.write(kindData, w.buf)
		w.buf = w.buf[:0]
	}
	if w.err == nil {
		w.l.w.step()
		w.err = w.l.w.w.Flush()
	}
	return w.err
}
