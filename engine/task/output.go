package task

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// output is the sending end of an edge in one subtask.
type output interface {
	// emit sends rows, borrowed, of a source shard.
	emit(ctx context.Context, shard int, rows arrow.Record) error
	// endShard ends a source shard, under which rows may have been emitted.
	endShard(ctx context.Context, shard int) error
	// release releases rows that are not sent yet.
	release()
}

// senders holds the senders of one subtask to the inboxes of an edge. A sender is made
// when it is first used, as there may be many inboxes that get nothing.
type senders struct {
	edge          int
	network       transport.Network
	gate          *transport.Gate // limits the bytes in flight
	waiter        *transport.Waiter
	byDestination map[destination]*shardSender
	last          *shardSender // the line that was used last
}

// destination is an inbox of an edge on a worker.
type destination struct{ inbox, worker int }

// shardSender is a sender, with the number of messages that it has sent for the current source
// shard.
type shardSender struct {
	transport.Sender
	to    destination
	shard int
	seq   int64
}

func newSenders(edge int, network transport.Network, gate *transport.Gate) senders {
	return senders{edge: edge, network: network, gate: gate, waiter: transport.NewWaiter(), byDestination: make(map[destination]*shardSender)}
}

// send sends m, the next message of its source shard, to an inbox. size is the number of bytes
// of its rows. send waits until these bytes fit in the limit of bytes in flight.
func (s *senders) send(ctx context.Context, to destination, m transport.Message, size int64) error {
	l := s.last
	if l == nil || l.to != to {
		l = s.byDestination[to]
	}
	if l == nil {
		sender, err := s.network.Dial(transport.Address{Edge: s.edge, Inbox: to.inbox, Worker: to.worker})
		if err != nil {
			m.Release()
			return err
		}
		l = &shardSender{Sender: sender, to: to, shard: -1}
		s.byDestination[to] = l
	}
	s.last = l
	if l.shard != m.Shard {
		l.shard, l.seq = m.Shard, 0
	}
	m.Seq = l.seq
	l.seq++
	if m.Rows != nil {
		cost := footprint(&m, size)
		if err := s.gate.Enter(ctx, s.waiter, cost); err != nil {
			m.Release()
			return err
		}
		m.Gate, m.Cost = s.gate, cost
	}
	return l.Send(ctx, m)
}

// directOutput sends batches without changing their order or their shard, and by reference if
// they are not too long. On a forward edge they go to the owner of the shard. On a broadcast edge
// they go to the receiver of the side input on each worker that has readers.
type directOutput struct {
	senders
	ranges  []sharding.Range // shards of each receiving subtask; nil for a broadcast edge
	hosts   []int            // worker of each receiving subtask
	target  int              // the receiving subtask that owns the current shard
	moved   bool             // the rows go to the inboxes of rows that move
	wanted  []bool           // shards whose rows the receivers read; nil if they read all
	workers int              // a broadcast goes to workers 0 to workers-1
	sent    int64            // number of messages with rows of the current source shard
	rows    int64            // number of rows of the current source shard

	mem          memory.Allocator
	messageBytes int64 // maximum size of a message on a forward edge
}

func (o *directOutput) emit(ctx context.Context, shard int, rows arrow.Record) error {
	if o.wanted != nil && !o.wanted[shard] {
		return nil
	}
	o.rows += rows.NumRows()
	n, maxRows, size := int(rows.NumRows()), math.MaxInt, batch.Size(rows)
	if o.ranges != nil {
		maxRows = rowsOfSize(o.messageBytes, size, n)
	}
	if n <= maxRows {
		o.sent++
		return o.send(ctx, transport.Message{Shard: shard, Rows: rows}, size)
	}
	for lo := 0; lo < n; lo += maxRows {
		part, err := cut(o.mem, rows, lo, min(lo+maxRows, n))
		if err != nil {
			return err
		}
		o.sent++
		err = o.send(ctx, transport.Message{Shard: shard, Rows: part}, batch.Size(part))
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// cut returns rows lo to hi-1 of a batch. If they are less than half of the batch, cut returns a
// copy: a slice would keep the whole batch in memory, while the receiver counts only the bytes
// of the slice.
func cut(mem memory.Allocator, rows arrow.Record, lo, hi int) (arrow.Record, error) {
	part, err := batch.Slice(rows, lo, hi)
	if err != nil || 2*(hi-lo) >= int(rows.NumRows()) {
		return part, err
	}
	defer part.Release()
	return batch.Concat(mem, []arrow.Record{part})
}

// rowsOfSize returns how many rows fit in the given number of bytes, if n rows take size bytes.
// It returns at least 1.
func rowsOfSize(bytes, size int64, n int) int {
	if size <= bytes {
		return max(n, 1)
	}
	return int(max(float64(bytes)/float64(size)*float64(n), 1))
}

func (o *directOutput) endShard(ctx context.Context, shard int) error {
	err := o.send(ctx, transport.Message{Shard: shard, Last: true, Sent: o.sent, SentRows: o.rows}, 0)
	o.sent, o.rows = 0, 0
	return err
}

// send sends a message with borrowed rows of size bytes.
func (o *directOutput) send(ctx context.Context, m transport.Message, size int64) error {
	if o.ranges != nil {
		for !o.ranges[o.target].Contains(m.Shard) { // shards come in increasing order
			o.target++
		}
		m.To = m.Shard
		to := destination{inbox: o.target, worker: o.hosts[o.target]}
		if o.moved {
			to.inbox = transport.Moved(o.target)
		}
		return o.sendTo(ctx, to, m, size)
	}
	m.To = -1
	for worker := range o.workers {
		if err := o.sendTo(ctx, destination{worker: worker}, m, size); err != nil {
			return err
		}
	}
	return nil
}

func (o *directOutput) sendTo(ctx context.Context, to destination, m transport.Message, size int64) error {
	if m.Rows != nil {
		m.Rows.Retain()
	}
	return o.senders.send(ctx, to, m, size)
}

func (o *directOutput) release() {}

// placement computes the destination shard of every row of a batch.
type placement func(rows arrow.Record, shard int, first int64, dst []int32) error

// splitOutput sends each row of a source shard to the shard that a placement returns. Rows are
// kept back until there are enough to fill messages even if they go to many shards, or until
// the source shard ends. They are then sorted by destination, stably, and cut into messages of
// at most batchRows rows and messageBytes bytes. The rows that receivers pass on do not depend
// on where messages are cut. The work grows with the number of rows, not of shards.
type splitOutput struct {
	senders
	ranges    []sharding.Range // shards of each receiving subtask, contiguous
	hosts     []int            // worker of each receiving subtask
	shards    int
	wanted    []bool // shards whose rows the receivers read; nil if they read all
	place     placement
	mem       memory.Allocator
	batchRows int

	messageBytes int64 // maximum size of a message that has more than one row
	keepBytes    int64 // maximum size of the rows kept back

	rows  []arrow.Record // rows kept back, retained
	dst   []int32        // destination shard of each row kept back; the number of shards for a row that nobody reads
	drop  int            // number of the rows kept back that nobody reads
	bytes int64
	first int64  // number of rows of the source shard so far
	sent  []sent // what was sent of the source shard to each worker

	start []int32  // for counting sort: where each destination begins; shards+2 long
	keys  []uint64 // for sorting few rows: the destination and index of each row
	order []int32  // indices of the rows kept back, sorted by destination
	parts []transport.Part
	picks []batch.Pick
}

// sent counts messages with rows, and the rows in them.
type sent struct{ messages, rows int64 }

// Limits of the rows kept back, in batches and in bytes. With keepBatches, messages to 128
// shards hold a few hundred rows each. keepBytes limits the memory for wide rows; the limit is
// lower for small memory budgets.
const (
	keepBatches = 32
	keepBytes   = 4 << 20
)

func (o *splitOutput) emit(ctx context.Context, shard int, rows arrow.Record) error {
	size := batch.Size(rows)
	if o.bytes+size > o.keepBytes { // send the rows kept back first
		if err := o.flush(ctx, shard); err != nil {
			return err
		}
	}
	n := int(rows.NumRows())
	have := len(o.dst)
	o.dst = append(o.dst, make([]int32, n)...)
	if err := o.place(rows, shard, o.first, o.dst[have:]); err != nil {
		return err
	}
	o.first += int64(n)
	if o.wanted != nil {
		o.dropUnwanted(o.dst[have:])
	}
	rows.Retain()
	o.rows = append(o.rows, rows)
	o.bytes += size
	if len(o.dst) >= keepBatches*o.batchRows || o.bytes >= o.keepBytes {
		return o.flush(ctx, shard)
	}
	return nil
}

// dropUnwanted gives rows that nobody reads a destination behind all shards.
func (o *splitOutput) dropUnwanted(dst []int32) {
	for i, d := range dst {
		if !o.wanted[d] {
			dst[i] = int32(o.shards)
			o.drop++
		}
	}
}

// flush sends the rows kept back.
func (o *splitOutput) flush(ctx context.Context, shard int) error {
	if len(o.dst) == 0 {
		return nil
	}
	o.sort()
	if err := o.sendSorted(ctx, shard); err != nil {
		return err
	}
	o.release()
	return nil
}

// sort orders the rows kept back by destination.
func (o *splitOutput) sort() {
	if cap(o.order) < len(o.dst) {
		o.order = make([]int32, len(o.dst), cap(o.dst))
	}
	o.order = o.order[:len(o.dst)]
	if len(o.dst) < o.shards/sparse {
		o.sortFew()
	} else {
		o.sortMany()
	}
	o.order = o.order[:len(o.order)-o.drop] // they come last
	o.drop = 0
}

// sparse is the ratio of destinations to rows above which sorting by comparison is cheaper than
// counting. Sorting costs some ten comparisons per row, and counting costs one addition per
// destination.
const sparse = 16

// sortFew sorts by comparison, which is faster for few rows.
func (o *splitOutput) sortFew() {
	o.keys = o.keys[:0]
	for i, d := range o.dst {
		o.keys = append(o.keys, uint64(d)<<32|uint64(i))
	}
	slices.Sort(o.keys)
	for i, key := range o.keys {
		o.order[i] = int32(uint32(key))
	}
}

// sortMany sorts by counting, which is faster for many rows.
func (o *splitOutput) sortMany() {
	if o.start == nil {
		o.start = make([]int32, o.shards+2) // one more for rows that nobody reads
	}
	clear(o.start)
	for _, d := range o.dst {
		o.start[d+1]++
	}
	for d := range o.shards + 1 {
		o.start[d+1] += o.start[d]
	}
	for i, d := range o.dst {
		o.order[o.start[d]] = int32(i)
		o.start[d]++
	}
}

// sendSorted sends the rows kept back, in the sorted order. Each message goes to one
// receiving subtask.
func (o *splitOutput) sendSorted(ctx context.Context, shard int) error {
	next := func(i int) int { return int(o.dst[o.order[i]]) }
	rows := min(o.batchRows, rowsOfSize(o.messageBytes, o.bytes, len(o.dst)))
	for lo := 0; lo < len(o.order); {
		t := sharding.Owner(o.shards, len(o.ranges), next(lo))
		end := o.ranges[t].Hi
		o.parts = o.parts[:0]
		hi := lo
		for maxRows := min(lo+rows, len(o.order)); hi < maxRows && next(hi) < end; {
			part := transport.Part{Shard: next(hi)}
			for hi < maxRows && next(hi) == part.Shard {
				hi++
			}
			part.End = hi - lo
			o.parts = append(o.parts, part)
		}
		taken, err := o.take(lo, hi)
		if err != nil {
			return err
		}
		m := transport.Message{Shard: shard, Rows: taken, Parts: slices.Clone(o.parts)}
		count := &o.sent[o.hosts[t]]
		count.messages++
		count.rows += int64(hi - lo)
		if err := o.senders.send(ctx, destination{inbox: t, worker: o.hosts[t]}, m, batch.Size(taken)); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// take returns the rows o.order[lo:hi]. It overwrites this part of o.order with the indices of
// the rows within their batches.
func (o *splitOutput) take(lo, hi int) (arrow.Record, error) {
	o.picks = o.picks[:0]
	b, begin, end := 0, 0, int(o.rows[0].NumRows()) // a batch, and the range of its rows
	from := lo
	for i := lo; i < hi; i++ {
		row := int(o.order[i])
		if row < begin || row >= end {
			if i > from {
				o.picks = append(o.picks, batch.Pick{Batch: b, Rows: o.order[from:i]})
			}
			if from = i; row < begin { // rows of the next destination start from the first batch again
				b, begin, end = 0, 0, int(o.rows[0].NumRows())
			}
			for row >= end {
				b++
				begin, end = end, end+int(o.rows[b].NumRows())
			}
		}
		o.order[i] = int32(row - begin)
	}
	if len(o.picks) == 0 {
		if rows := o.order[from:hi]; batch.Consecutive(rows) {
			// The rows are consecutive already, as when all rows go to one shard.
			return cut(o.mem, o.rows[b], int(rows[0]), int(rows[0])+len(rows))
		}
	}
	o.picks = append(o.picks, batch.Pick{Batch: b, Rows: o.order[from:hi]})
	return batch.Gather(o.mem, o.rows, o.picks)
}

func (o *splitOutput) endShard(ctx context.Context, shard int) error {
	if err := o.flush(ctx, shard); err != nil {
		return err
	}
	o.first = 0
	for worker, count := range o.sent {
		o.sent[worker] = sent{}
		m := transport.Message{Shard: shard, Last: true, Sent: count.messages, SentRows: count.rows}
		if err := o.senders.send(ctx, destination{inbox: transport.Ends, worker: worker}, m, 0); err != nil {
			return err
		}
	}
	return nil
}

func (o *splitOutput) release() {
	for i, r := range o.rows {
		r.Release()
		o.rows[i] = nil
	}
	o.rows, o.dst, o.bytes = o.rows[:0], o.dst[:0], 0
}

// rebalancePlacement returns a placement that sends row j of shard s to shard (s+j) mod shards.
func rebalancePlacement(shards int) placement {
	return func(_ arrow.Record, shard int, first int64, dst []int32) error {
		d := int32((int64(shard) + first) % int64(shards))
		for i := range dst {
			dst[i] = d
			if d++; int(d) == shards {
				d = 0
			}
		}
		return nil
	}
}

// hashPlacement returns a placement that sends a row to the shard given by the
// documented hash of its keys.
func hashPlacement(shards int, keys []string) placement {
	var (
		hashes []uint64
		schema *arrow.Schema // the schema that cols refers to
		cols   []int
	)
	return func(rows arrow.Record, _ int, _ int64, dst []int32) error {
		if rows.Schema() != schema {
			cols = cols[:0]
			for _, key := range keys {
				col, err := batch.FindColumn(rows.Schema(), key)
				if err != nil {
					return err
				}
				cols = append(cols, col)
			}
			schema = rows.Schema()
		}
		hashes = kernel.Sized(hashes, len(dst))
		if err := batch.Hash(rows, cols, hashes); err != nil {
			return err
		}
		for i, h := range hashes {
			dst[i] = int32(batch.ShardOf(h, shards))
		}
		return nil
	}
}

// userPlacement returns a placement that calls a bound partition function and checks its result.
func userPlacement(shards int, partition Partition, name string) placement {
	return func(rows arrow.Record, shard int, first int64, dst []int32) error {
		if err := partition(arrowrows.Batch(rows), shard, first, shards, dst); err != nil {
			return err
		}
		for i, d := range dst {
			if d < 0 || int(d) >= shards {
				return fmt.Errorf("the partition function %s sends row %d of shard %d to shard %d; want 0 to %d",
					name, first+int64(i), shard, d, shards-1)
			}
		}
		return nil
	}
}

// placementOf returns the placement of an edge for one sending subtask. If checked is true, the
// placement fails if the edge's partition function changes the rows.
func placementOf(p *plan.Plan, e *plan.Edge, bind *Bindings, checked bool) placement {
	if partition := bind.Partitions[Port{Node: e.ToNode, Port: e.Port}]; partition != nil {
		if checked {
			partition = partition.keeping()
		}
		return userPlacement(p.Shards, partition, partitionName(p, e))
	}
	if e.Partitioner == plan.Hash {
		return hashPlacement(p.Shards, e.Keys)
	}
	return rebalancePlacement(p.Shards)
}

// partitionName returns the name of an edge's partition function in messages.
func partitionName(p *plan.Plan, e *plan.Edge) string {
	if f := p.Nodes[e.ToNode].Inputs[e.Port].Func; f != "" {
		return f
	}
	return fmt.Sprintf("of input %d", e.Port)
}
