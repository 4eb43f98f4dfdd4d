package task

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// inbox stores the rows that one subtask receives over one edge. It accepts the rows of all
// source shards in the order in which they arrive, divided by destination shard. It passes on
// the rows of a destination shard ordered by source shard and, within a source shard, by the
// order of sending. Rows of the lowest source shard that is not settled are passed on as they
// arrive. Rows of later source shards are stored, in memory while the budget lasts, then in a
// file.
//
// The cost of an inbox grows with the number of rows and of destination shards: nothing is kept
// per pair of shards. Arriving pieces are appended to the list of their destination shard. They
// are sorted when that shard is read.
//
// Two goroutines use an inbox: the transport's goroutine calls Receive, and the subtask's
// goroutine calls the other methods. Receive may wait for the disk, but never for the subtask.
type inbox struct {
	dst       sharding.Range // destination shards, which are the shards of the subtask
	ends      *ends          // of the edge
	batchRows int
	joinBytes int64 // maximum number of bytes of the rows that next joins
	mem       memory.Allocator
	budget    *Budget
	spill     *spillFile
	fail      func(shard int, err error) // reports what goes wrong in Receive

	wake chan struct{} // has a token if the reader must check for rows again

	seq     map[int]*int64 // next sequence number, by source shard; only for Receive
	last    *int64         // seq[source]; only for Receive
	source  int            // source shard of the last message; only for Receive
	number  int64          // number of the next piece; only for Receive
	scratch []piece        // only for Receive

	mu      sync.Mutex
	waiting bool        // the reader waits for pieces of its shard
	filed   []pieceList // by destination shard, in the order of arrival
	dropped bool        // the subtask does not read any more

	sorted pieceQueue // pieces of shard

	shard int // destination shard being read, -1 before the first; changes under both mutexes
	need  int // the reader waits until ends.firstUnsettled has reached this value; under the mutex of ends

	// Only the reader's goroutine uses the following fields.
	pieces []*piece
	rows   []arrow.Record
}

// piece is the part of a message that goes to one destination shard.
type piece struct {
	message *heldMessage // the message, nil if the rows are in the file
	source  int          // source shard
	number  int64        // counts the pieces of the inbox in the order of arrival
	size    int64        // bytes of its rows
	lo, hi  int          // range of rows in the message; in the file lo is 0
	block   disk.Block
	next    *piece
}

// heldMessage is a message in memory whose pieces are not all read yet.
type heldMessage struct {
	rows   arrow.Record
	size   int64 // bytes reserved for the message
	unread int   // number of pieces not read; only the reader uses it once the pieces are in lists
}

// pieceList holds the pieces of one destination shard: a linked list of the pieces in memory,
// and small descriptions of the pieces in the file. No budget counts these descriptions.
type pieceList struct {
	head, tail *piece
	spilled    [][]spilledPiece // all slices except the last are full
}

// spilledPiece is the location of a piece in the file.
type spilledPiece struct {
	block        disk.Block
	number       int64
	source, rows int32
}

// add appends a piece.
func (l *pieceList) add(p *piece) {
	switch {
	case p.message == nil:
		last := len(l.spilled) - 1
		if last < 0 || len(l.spilled[last]) == cap(l.spilled[last]) {
			last++
			l.spilled = append(l.spilled, make([]spilledPiece, 0, 8<<min(last, 5)))
		}
		l.spilled[last] = append(l.spilled[last], spilledPiece{p.block, p.number, int32(p.source), int32(p.hi)})
	case l.tail == nil:
		l.head, l.tail = p, p
	default:
		l.tail.next, l.tail = p, p
	}
}

// moveTo moves all pieces to a queue.
func (l *pieceList) moveTo(q *pieceQueue) {
	for p := l.head; p != nil; {
		next := p.next
		p.next = nil
		q.push(p)
		p = next
	}
	for _, pieces := range l.spilled {
		for _, s := range pieces {
			q.push(&piece{source: int(s.source), number: s.number, size: int64(s.block.Length), hi: int(s.rows), block: s.block})
		}
	}
	*l = pieceList{}
}

// empty reports whether there is no piece.
func (l *pieceList) empty() bool { return l.head == nil && l.spilled == nil }

// newInbox makes an inbox that shares the ends of its edge.
func newInbox(dst sharding.Range, e *ends) *inbox {
	in := &inbox{
		dst: dst, ends: e,
		wake:  make(chan struct{}, 1),
		seq:   make(map[int]*int64),
		filed: make([]pieceList, dst.Len()),
		shard: -1, need: math.MaxInt,
	}
	e.inboxes = append(e.inboxes, in)
	return in
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
		in.fail(partAt(&m, 0).Shard, err)
		return
	}
	in.addToLists(&m, pieces)
	if err := in.ends.count(&m); err != nil {
		in.fail(-1, err)
	}
}

// check returns an error for a message that a correct sender never sends. It protects the order
// of rows from transports that lose, repeat or reorder messages.
func (in *inbox) check(m *transport.Message) error {
	if !in.ends.src.Contains(m.Shard) {
		return fmt.Errorf("received rows of source shard %d, want one of %v", m.Shard, in.ends.src)
	}
	want := in.expect(m.Shard)
	if m.Seq != *want {
		return fmt.Errorf("received message %d of source shard %d, want message %d: the transport lost or reordered messages", m.Seq, m.Shard, *want)
	}
	*want++
	if m.Last {
		delete(in.seq, m.Shard)
		in.last = nil
	}
	if m.Rows == nil {
		return nil
	}
	rows, before, good := int(m.Rows.NumRows()), transport.Part{Shard: in.dst.Lo - 1}, true
	for i := range partsOf(m) {
		p := partAt(m, i)
		good = good && p.Shard > before.Shard && p.Shard < in.dst.Hi && p.End > before.End &&
			(!in.ends.aligned || p.Shard == m.Shard)
		before = p
	}
	if !good || before.End != rows {
		return fmt.Errorf("received %d rows for shards up to %d from source shard %d, want all %d rows placed within %v",
			before.End, before.Shard, m.Shard, rows, in.dst)
	}
	return nil
}

// expect returns a pointer to the next sequence number of a source shard.
func (in *inbox) expect(shard int) *int64 {
	if in.last != nil && in.source == shard {
		return in.last
	}
	next := in.seq[shard]
	if next == nil {
		next = new(int64)
		in.seq[shard] = next
	}
	in.last, in.source = next, shard
	return next
}

// footprint returns the number of bytes of memory that a message takes. rows is the size of its
// rows in bytes. footprint adds a quarter of rows, which the allocator needs for alignment and
// size classes of buffers of some thousand bytes, and the sizes of the objects that describe
// columns and parts.
func footprint(m *transport.Message, rows int64) int64 {
	const column, part = 384, 88
	return rows + rows/4 + m.Rows.NumCols()*column + int64(partsOf(m))*part
}

// partsOf returns the number of parts of a message with rows, and partAt returns one of them.
func partsOf(m *transport.Message) int { return max(len(m.Parts), 1) }

func partAt(m *transport.Message, i int) transport.Part {
	if len(m.Parts) == 0 {
		return transport.Part{Shard: m.To, End: int(m.Rows.NumRows())}
	}
	return m.Parts[i]
}

// store keeps the rows of a message in memory or, beyond the budget, on disk. It
// returns one piece per part.
func (in *inbox) store(m *transport.Message) (pieces []piece, err error) {
	if m.Rows == nil {
		return nil, nil
	}
	defer func() {
		// Rows that are not a valid batch must fail the run. On this goroutine, the transport's,
		// a panic would end the process.
		if v := recover(); v != nil {
			pieces, err = nil, recovered(v)
		}
	}()
	h := &heldMessage{size: m.Cost, unread: partsOf(m)}
	if m.Gate == nil { // the message is from another process, and its cost is not counted yet
		h.size = footprint(m, batch.Size(m.Rows))
	}
	if !in.budget.TryReserve(h.size) {
		return in.spillAll(m)
	}
	pieces = make([]piece, h.unread)
	perRow := float64(h.size) / float64(m.Rows.NumRows())
	lo := 0
	for i := range pieces {
		hi := partAt(m, i).End
		pieces[i] = piece{message: h, source: m.Shard, number: in.number, size: int64(float64(hi-lo) * perRow), lo: lo, hi: hi}
		in.number++
		lo = hi
	}
	h.rows = m.Rows
	h.rows.Retain()
	return pieces, nil
}

// spillAll writes the rows of a message to the file. The pieces are valid until the next
// call.
func (in *inbox) spillAll(m *transport.Message) ([]piece, error) {
	in.scratch = in.scratch[:0]
	lo := 0
	for i := range partsOf(m) {
		hi := partAt(m, i).End
		at, err := in.spill.write(m.Rows, lo, hi)
		if err != nil {
			return nil, err
		}
		in.scratch = append(in.scratch, piece{source: m.Shard, number: in.number, hi: hi - lo, block: at})
		in.number++
		lo = hi
	}
	return in.scratch, in.spill.flush()
}

// addToLists appends the pieces of a message to the lists of their shards, and wakes a reader
// that waits for them.
func (in *inbox) addToLists(m *transport.Message, pieces []piece) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range pieces {
		p, shard := &pieces[i], partAt(m, i).Shard
		if in.dropped {
			in.discard(p)
			continue
		}
		in.filed[shard-in.dst.Lo].add(p)
		if in.waiting && shard == in.shard {
			in.waiting = false
			in.wakeReader()
		}
	}
}

// wakeReader wakes the reader, so that it checks for rows again.
func (in *inbox) wakeReader() {
	select {
	case in.wake <- struct{}{}:
	default: // it has a token already
	}
}

// discard drops a piece. After the last piece of a message in memory it releases the message.
func (in *inbox) discard(p *piece) {
	if p.message == nil {
		return
	}
	p.message.unread--
	if p.message.unread == 0 {
		p.message.rows.Release()
		p.message.rows = nil
		in.budget.Release(p.message.size)
	}
}

// next returns the next rows of a destination shard, owned by the caller, or io.EOF at its end.
// The caller reads shards in increasing order, and each to its end. The time spent waiting for
// senders is added to waited.
//
// Small pieces that have already arrived are joined into batches of about batchRows rows and at
// most joinBytes bytes, so that operators get few batches even from many small source shards.
// next waits only for the first rows of a batch, and not for rows to join with them.
func (in *inbox) next(ctx context.Context, shard int, waited *time.Duration) (arrow.Record, error) {
	if shard != in.shard {
		in.begin(shard)
	}
	for {
		if ctx.Err() != nil {
			return nil, errStopped
		}
		// limit must be read before the pieces are gathered. As the rows of a source shard are
		// filed before the shard is settled, gather then finds all rows of settled shards.
		limit := in.ends.firstUnsettled(shard)
		need := in.gather(limit)
		if len(in.pieces) > 0 {
			return in.joinPieces()
		}
		if limit >= need {
			return nil, io.EOF
		}
		if !in.ends.wakeAt(in, need) || !in.wakeAtPiece() {
			continue
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

// begin begins to read another destination shard.
func (in *inbox) begin(shard int) {
	in.ends.mu.Lock()
	defer in.ends.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.shard, in.need = shard, math.MaxInt
	for _, p := range in.sorted { // pieces of a shard that was not read to its end
		in.discard(p)
	}
	in.sorted = in.sorted[:0]
}

// wakeAtPiece arranges that the reader is woken at the next piece of its shard. It returns
// false if there is a piece already.
func (in *inbox) wakeAtPiece() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.waiting = in.filed[in.shard-in.dst.Lo].empty()
	return in.waiting
}

// gather appends to in.pieces the pieces to return next: pieces of source shards not above
// limit, as many as fit in a batch. It returns the value that limit must reach before more
// pieces can be returned. This is the lowest source shard of the remaining pieces or, if no
// piece remains, the end of the range of source shards.
func (in *inbox) gather(limit int) (need int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.waiting = false
	in.filed[in.shard-in.dst.Lo].moveTo(&in.sorted)
	rows, bytes := 0, int64(0)
	for len(in.sorted) > 0 && in.sorted[0].source <= limit {
		n, size := in.sorted[0].hi-in.sorted[0].lo, in.sorted[0].size
		if rows > 0 && (rows+n > in.batchRows || bytes+size > in.joinBytes) {
			break
		}
		bytes += size
		in.pieces = append(in.pieces, in.sorted.pop())
		if rows += n; rows >= in.batchRows/2 {
			break
		}
	}
	if len(in.sorted) > 0 {
		return in.sorted[0].source
	}
	return in.ends.sourcesEnd(in.shard)
}

// joinPieces turns the gathered pieces into one batch.
func (in *inbox) joinPieces() (rec arrow.Record, err error) {
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
	h := p.message
	switch {
	case h == nil:
		return in.spill.read(p.block, p.hi)
	case p.lo == 0 && p.hi == int(h.rows.NumRows()):
		h.rows.Retain()
		return h.rows, nil
	}
	return batch.Slice(h.rows, p.lo, p.hi)
}

// drop releases all rows, and makes the inbox release rows that arrive later. It is called when
// the subtask does not read any more.
func (in *inbox) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dropped = true
	for i := range in.filed {
		for p := in.filed[i].head; p != nil; p = p.next {
			in.discard(p)
		}
		in.filed[i] = pieceList{}
	}
	for _, p := range in.sorted {
		in.discard(p)
	}
	in.sorted = nil
}

// close releases all rows and removes the file. If an abandoned subtask still uses the inbox, it
// gets the error that the run has ended.
func (in *inbox) close() error {
	in.drop()
	return in.spill.close()
}

// pieceQueue is a binary heap of pieces, ordered by source shard, then by arrival. As
// pieces mostly come in this order, pushing a piece usually costs one comparison.
type pieceQueue []*piece

func (q pieceQueue) less(i, j int) bool {
	if q[i].source != q[j].source {
		return q[i].source < q[j].source
	}
	return q[i].number < q[j].number
}

func (q *pieceQueue) push(p *piece) {
	*q = append(*q, p)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *pieceQueue) pop() *piece {
	h := *q
	top, n := h[0], len(h)-1
	h[0], h[n] = h[n], nil
	h = h[:n]
	*q = h
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			return top
		}
		if down+1 < n && h.less(down+1, down) {
			down++
		}
		if !h.less(down, i) {
			return top
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}
