package precopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

var (
	errNotOffered = errors.New("its worker does not have the rows yet, or may not give them")
	errNoRoom     = errors.New("the memory budget has no room for it")
)

// takeFrom takes shards from a worker, one after the other.
func (n *Node) takeFrom(ctx context.Context, from Process, takes []Take, t *tally) {
	at := func(err error) error {
		return fmt.Errorf("from worker %d (%s): %w", from.Worker, from.Address, reason(ctx, err))
	}
	l, failed := n.dial(ctx, from, channelTake)
	if failed == nil {
		defer l.close()
	}
	for _, take := range takes {
		for _, shard := range take.Shards {
			if n.cfg.Rows.HasAhead(take.Queue, shard) { // because of an earlier order
				t.took(0)
				continue
			}
			if failed != nil {
				t.leave(1, at(failed))
				continue
			}
			bytes, err := n.takeShard(ctx, l, take.Queue, shard)
			switch {
			case err == nil:
				t.took(bytes)
				continue
			case !errors.As(err, new(*leftOut)):
				failed = err // of the connection
			}
			t.leave(1, at(err))
		}
	}
}

// leftOut is the error of a shard that is not taken although the connection is in order.
type leftOut struct{ error }

func (e *leftOut) Unwrap() error { return e.error }

// takeShard takes a shard, and returns its bytes.
func (n *Node) takeShard(ctx context.Context, l *line, queue string, shard int) (bytes int64, err error) {
	o, bytes, err := l.ask(ctx, queue, shard)
	switch {
	case err != nil:
		return 0, err
	case len(o.Ports) == 0:
		return 0, &leftOut{errNotOffered}
	case !n.cfg.Rows.RoomAhead(2 * bytes): // half of it for pieces that are joined, and for the bytes of messages
		if err := l.w.send(kindPass, nil); err != nil {
			return 0, err
		}
		return 0, &leftOut{errNoRoom}
	}
	ports, err := n.receive(l, o)
	if err != nil {
		n.cfg.Rows.LeaveAhead(2 * bytes)
		return 0, err
	}
	if err := n.cfg.Rows.AddAhead(queue, shard, ports, 2*bytes); err != nil {
		return 0, &leftOut{err}
	}
	return bytes, nil
}

// ask asks for a shard, and returns the offer and its bytes.
func (l *line) ask(ctx context.Context, queue string, shard int) (o offer, bytes int64, err error) {
	within := MaxWithin
	if deadline, some := ctx.Deadline(); some {
		within = min(within, time.Until(deadline))
	}
	if within <= 0 {
		return o, 0, errLate
	}
	body, err := wants.Append(nil, want{queue, shard, within})
	if err != nil {
		return o, 0, err
	}
	if err := l.w.send(kindWant, body); err != nil {
		return o, 0, err
	}
	k, body, err := l.r.next()
	if err == nil && k != kindOffer {
		err = peerlink.Violation("%v, where an offer is due", k)
	}
	if err != nil {
		return o, 0, err
	}
	return decodeOffer(body)
}

// receive says that the rows of an offer are wanted, and receives them. The caller owns them.
func (n *Node) receive(l *line, o offer) (map[int]columnar.Batch, error) {
	if err := l.w.send(kindGo, nil); err != nil {
		return nil, err
	}
	ports := make(map[int]columnar.Batch)
	for _, p := range o.Ports {
		rows, err := n.receivePort(l, p)
		if err != nil {
			for _, rows := range ports {
				rows.Release()
			}
			return nil, fmt.Errorf("input %d: %w", p.Port, err)
		}
		ports[p.Port] = arrowrows.Batch(rows)
	}
	return ports, nil
}

// receivePort receives the rows of a data port, and requires that they are as many as was said, and not larger.
func (n *Node) receivePort(l *line, p portSize) (rows arrow.Record, err error) {
	in := &rowReader{l: l, left: 2*p.Bytes + slackBytes}
	pieces, err := n.readStream(in)
	defer func() {
		for _, piece := range pieces {
			piece.Release()
		}
	}()
	if err == nil {
		err = in.drain()
	}
	if in.err != nil && in.err != io.EOF { // the decoder may have hidden it
		err = in.err
	}
	if err != nil {
		return nil, err
	}
	if len(pieces) == 1 {
		rows = pieces[0]
		rows.Retain()
	} else if rows, err = batch.Concat(n.cfg.Allocator, pieces); err != nil {
		return nil, err
	}
	if size := batch.Size(rows); rows.NumRows() != p.Rows || size > p.Bytes {
		err = peerlink.Violation("%d rows with %s came, where %d with %s were announced", rows.NumRows(), humanize.Bytes(size), p.Rows, humanize.Bytes(p.Bytes))
		rows.Release()
		return nil, err
	}
	return rows, nil
}

// slackBytes is how much longer a stream may be than twice the rows in it, for schemas and heads.
const slackBytes = 4 << 20

// readStream reads an Arrow stream of at least one batch. The caller owns the batches, also if it fails.
func (n *Node) readStream(in *rowReader) (pieces []arrow.Record, err error) {
	r, err := in.l.bufs.NewStreamReader(in, n.cfg.Allocator)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	for {
		rows, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return pieces, err
		}
		pieces = append(pieces, rows)
	}
	if len(pieces) == 0 {
		pieces = append(pieces, batch.Empty(r.Schema()))
	}
	return pieces, nil
}

// rowReader reads the bytes of an Arrow stream from frames.
type rowReader struct {
	l    *line
	left int64  // bytes that may come yet
	rest []byte // of the last frame
	err  error  // io.EOF after the end of the stream
}

// Read implements io.Reader.
func (r *rowReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.rest, r.err = r.next()
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next returns the body of the next frame.
func (r *rowReader) next() ([]byte, error) {
	k, body, err := r.l.r.next()
	switch {
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case k == kindEnd:
		return nil, io.EOF
	case k == kindFailed:
		return nil, &leftOut{fmt.Errorf("its worker cannot give the rows: %s", clip(string(body)))}
	case k != kindData:
		return nil, peerlink.Violation("%v, where rows are due", k)
	}
	if r.left -= int64(len(body)); r.left < 0 {
		return nil, peerlink.Violation("more bytes of rows than were announced")
	}
	return body, nil
}

// drain reads the end of the stream, behind which nothing may come.
func (r *rowReader) drain() error {
	if len(r.rest) > 0 {
		return peerlink.Violation("bytes after the end of rows")
	}
	for r.err == nil {
		if r.rest, r.err = r.next(); len(r.rest) > 0 {
			return peerlink.Violation("bytes after the end of rows")
		}
	}
	return nil
}
