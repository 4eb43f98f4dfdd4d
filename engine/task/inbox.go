package task

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared"
)

// inbox is the store of one receiving subtask of one exchange. It takes the rows
// of all source shards as they come, one run per (destination shard, source
// shard), and hands those of a destination shard on by source shard and, within
// it, as they were sent. Rows of the lowest source shard that is still open pass
// on as they arrive; those of later ones wait here, in memory while the budget
// lasts, then in a file.
//
// Two goroutines use an inbox: the transport's calls Receive, the subtask's the
// other methods. Receive waits for the disk at most, never for the subtask.
type inbox struct {
	dst shared.Range // destination shards: those of the subtask
	src shared.Range // source shards that send to it
	// aligned says that a destination shard gets rows from the source shard of the
	// same number only.
	aligned   bool
	batchRows int
	mem       memory.Allocator
	budget    *Budget
	spill     *spillFile
	fail      func(shard int, err error) // reports what goes wrong in Receive

	mu      sync.Mutex
	wake    chan struct{} // holds a token after the reader was told to look again
	waiting bool          // the reader waits for source shard src.Lo+source
	ended   []bool        // by source shard
	seq     []int64       // next sequence number, by source shard
	// runs are by destination shard, then by source shard, or just one where
	// aligned. The inner slice is nil until the first piece and after the last.
	runs    [][]pieceList
	dropped bool // nobody will read any more

	// Only the reader's goroutine uses these; shard and source change under mu.
	shard   int // destination shard being read, -1 before the first
	source  int // source shard being read, minus src.Lo
	pieces  []*piece
	rows    []arrow.Record
	scratch []byte
}

// pieceList is a run: the pieces of one source shard for one destination shard,
// in the order sent.
type pieceList struct{ head, tail *piece }

// piece is the part of a message that goes to one destination shard.
type piece struct {
	of     *held
	lo, hi int   // rows of the message, where it is in memory
	at     block // place in the file, where it is not
	next   *piece
}

// held is a message whose pieces are not all read yet.
type held struct {
	rows arrow.Record // nil when it is in the file
	size int64        // bytes reserved for it
	left int          // pieces not read; the reader's once they are linked
}

func newInbox(dst, src shared.Range, aligned bool) *inbox {
	return &inbox{
		dst: dst, src: src, aligned: aligned,
		wake:  make(chan struct{}, 1),
		ended: make([]bool, src.Len()),
		seq:   make([]int64, src.Len()),
		runs:  make([][]pieceList, dst.Len()),
		shard: -1,
	}
}

var _ transport.Receiver = (*inbox)(nil)

// Receive stores a message.
func (in *inbox) Receive(m transport.Message) {
	defer m.Release()
	if err := in.check(&m); err != nil {
		in.fail(-1, err)
		return
	}
	pieces, err := in.store(&m)
	if err != nil {
		in.fail(m.First, err)
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.dropped {
		for _, p := range pieces {
			in.discard(p)
		}
		return
	}
	source := m.Shard - in.src.Lo
	for i := range pieces {
		in.link(m.First, source, pieces[i])
		m.First++
	}
	in.ended[source] = in.ended[source] || m.Last
	if in.waiting && in.source == source {
		in.waiting = false
		in.wake <- struct{}{}
	}
}

// check refuses what a correct sender never sends; it guards the order of rows
// against transports that lose, repeat or reorder messages.
func (in *inbox) check(m *transport.Message) error {
	if !in.src.Contains(m.Shard) {
		return fmt.Errorf("received rows of source shard %d, want one of %v", m.Shard, in.src)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	source := m.Shard - in.src.Lo
	if in.ended[source] {
		return fmt.Errorf("received message %d of source shard %d after its end", m.Seq, m.Shard)
	}
	if m.Seq != in.seq[source] {
		return fmt.Errorf("received message %d of source shard %d, want message %d: the transport lost or reordered messages", m.Seq, m.Shard, in.seq[source])
	}
	in.seq[source]++
	if m.Rows == nil {
		return nil
	}
	last, rows := m.First, int(m.Rows.NumRows())
	if m.Ends != nil {
		last, rows = m.First+len(m.Ends)-1, m.Ends[len(m.Ends)-1]
	}
	if m.First < in.dst.Lo || last >= in.dst.Hi || rows != int(m.Rows.NumRows()) ||
		in.aligned && (m.First != m.Shard || last != m.Shard) {
		return fmt.Errorf("received %d rows for shards %d to %d from source shard %d, want all %d rows placed within %v",
			rows, m.First, last, m.Shard, m.Rows.NumRows(), in.dst)
	}
	return nil
}

// store keeps the rows of a message in memory or, beyond the budget, on disk. It
// returns one piece per destination shard from First on, nil where the shard
// gets no rows.
func (in *inbox) store(m *transport.Message) (pieces []*piece, err error) {
	if m.Rows == nil {
		return nil, nil
	}
	defer func() {
		// Rows that are no proper batch must fail the run, not the process: this is
		// the transport's goroutine.
		if v := recover(); v != nil {
			pieces, err = nil, recovered(v)
		}
	}()
	ends := m.Ends
	if ends == nil {
		ends = []int{int(m.Rows.NumRows())}
	}
	h := &held{size: batch.Size(m.Rows)}
	inMemory := in.budget.TryReserve(h.size)
	if !inMemory {
		h.size = 0
	}
	made, lo := make([]piece, len(ends)), 0
	pieces = make([]*piece, len(ends))
	for i, hi := range ends {
		if hi == lo {
			continue
		}
		p := &made[i]
		p.of, p.lo, p.hi = h, lo, hi
		if !inMemory {
			if p.at, err = in.spill.write(m.Rows, lo, hi); err != nil {
				return nil, err
			}
		}
		pieces[i] = p
		h.left++
		lo = hi
	}
	if inMemory {
		h.rows = m.Rows
		h.rows.Retain()
		return pieces, nil
	}
	return pieces, in.spill.flush()
}

// link appends a piece to its run; mu is held.
func (in *inbox) link(shard, source int, p *piece) {
	if p == nil {
		return
	}
	runs := &in.runs[shard-in.dst.Lo]
	switch {
	case *runs != nil:
	case in.aligned:
		*runs = make([]pieceList, 1)
	default:
		*runs = make([]pieceList, in.src.Len())
	}
	if in.aligned {
		source = 0
	}
	r := &(*runs)[source]
	if r.tail == nil {
		r.head = p
	} else {
		r.tail.next = p
	}
	r.tail = p
}

// discard gives up a piece.
func (in *inbox) discard(p *piece) {
	if p == nil {
		return
	}
	p.of.left--
	if p.of.left == 0 && p.of.rows != nil {
		p.of.rows.Release()
		p.of.rows = nil
		in.budget.Release(p.of.size)
	}
}

// next returns the next rows of a destination shard, owned by the caller, or
// io.EOF at its end. Shards are asked for in increasing order, and each to its
// end. waited grows by the time spent waiting for senders.
//
// Small pieces that are there already are joined to about batchRows rows, so
// that operators get few batches even from many small source shards; what is
// returned never waits for more than the first row.
func (in *inbox) next(ctx context.Context, shard int, waited *time.Duration) (arrow.Record, error) {
	for {
		if ctx.Err() != nil {
			return nil, errStopped
		}
		in.mu.Lock()
		if shard != in.shard {
			in.shard, in.source = shard, 0
			if in.aligned {
				in.source = shard - in.src.Lo
			}
		}
		more := in.gather()
		in.waiting = more && len(in.pieces) == 0
		in.mu.Unlock()
		if len(in.pieces) > 0 {
			return in.open()
		}
		if !more {
			return nil, io.EOF
		}
		began := time.Now()
		select {
		case <-in.wake:
			*waited += time.Since(began)
		case <-ctx.Done():
			*waited += time.Since(began)
			return nil, errStopped
		}
	}
}

// gather takes the pieces to return next off their runs, as far as they are
// there, and reports whether the shard may have more after them; mu is held.
func (in *inbox) gather() (more bool) {
	rows := 0
	runs := in.runs[in.shard-in.dst.Lo]
	end := in.src.Len()
	if in.aligned {
		end = in.shard - in.src.Lo + 1
	}
	for in.source < end {
		var r *pieceList
		if runs != nil {
			if in.aligned {
				r = &runs[0]
			} else {
				r = &runs[in.source]
			}
		}
		if r == nil || r.head == nil {
			if !in.ended[in.source] {
				return true
			}
			in.source++
			continue
		}
		p := r.head
		n := p.hi - p.lo
		if rows > 0 && rows+n > in.batchRows {
			return true
		}
		if r.head = p.next; r.head == nil {
			r.tail = nil
		}
		p.next = nil
		in.pieces = append(in.pieces, p)
		if rows += n; rows >= in.batchRows/2 {
			return true
		}
	}
	in.runs[in.shard-in.dst.Lo] = nil
	return false
}

// open turns the gathered pieces into one batch.
func (in *inbox) open() (rec arrow.Record, err error) {
	defer func() {
		for i, r := range in.rows {
			r.Release()
			in.rows[i] = nil
		}
		for i, p := range in.pieces {
			in.discard(p)
			in.pieces[i] = nil
		}
		in.rows, in.pieces = in.rows[:0], in.pieces[:0]
	}()
	for _, p := range in.pieces {
		rows, err := in.load(p)
		if err != nil {
			return nil, err
		}
		in.rows = append(in.rows, rows)
	}
	if len(in.rows) == 1 {
		in.rows[0].Retain()
		return in.rows[0], nil
	}
	return batch.Concat(in.mem, in.rows)
}

// load returns the rows of a piece, owned by the caller.
func (in *inbox) load(p *piece) (arrow.Record, error) {
	h := p.of
	switch {
	case h.rows == nil:
		return in.spill.read(p.at, &in.scratch)
	case p.lo == 0 && p.hi == int(h.rows.NumRows()):
		h.rows.Retain()
		return h.rows, nil
	}
	return batch.Slice(h.rows, p.lo, p.hi)
}

// drop gives up all rows, those still to come included.
func (in *inbox) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dropped = true
	for i := range in.runs {
		for j := range in.runs[i] {
			for p := in.runs[i][j].head; p != nil; p = p.next {
				in.discard(p)
			}
		}
		in.runs[i] = nil
	}
}

// close gives up all rows and the file. Nobody uses the inbox any more, but
// perhaps an abandoned subtask, which will be told that the run has ended.
func (in *inbox) close() error {
	in.drop()
	return in.spill.close()
}
