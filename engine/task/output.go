package task

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared"
)

// output is the sending end of an edge in one subtask.
type output interface {
	// emit sends rows, borrowed, of a source shard.
	emit(ctx context.Context, shard int, rows arrow.Record) error
	// endShard ends the source shard that rows were emitted under, or an empty one.
	endShard(ctx context.Context, shard int) error
	// release gives up rows that are not sent yet.
	release()
}

// directOutput sends batches as they are, by reference: of a forward edge to the
// owner of the shard, of a broadcast edge to the one inbox of the process.
type directOutput struct {
	senders   []transport.Sender // by receiving subtask, or just one
	ranges    []shared.Range     // of the receiving subtasks
	broadcast bool
	target    int // the owner of the last shard
	seq       int64
}

func (o *directOutput) emit(ctx context.Context, shard int, rows arrow.Record) error {
	rows.Retain()
	return o.send(ctx, transport.Message{Shard: shard, Rows: rows, First: shard})
}

func (o *directOutput) endShard(ctx context.Context, shard int) error {
	err := o.send(ctx, transport.Message{Shard: shard, First: shard, Last: true})
	o.seq = 0
	return err
}

func (o *directOutput) send(ctx context.Context, m transport.Message) error {
	m.Seq = o.seq
	o.seq++
	if o.broadcast {
		m.First = -1
	} else {
		for !o.ranges[o.target].Contains(m.Shard) { // shards come in increasing order
			o.target++
		}
	}
	return o.senders[o.target].Send(ctx, m)
}

func (o *directOutput) release() {}

// placement computes the destination shard of every row of a batch.
type placement func(rows arrow.Record, shard int, first int64, dst []int32) error

// splitOutput sends the rows of a source shard to the shards that a placement
// names. Rows are kept back until there are enough to fill messages even when
// they go to many shards, and at most to the end of the source shard; then they
// are sorted by destination in one counting sort, which keeps their order within
// a destination, and cut into messages of batchRows rows. Where messages end has
// no influence on what receivers hand on.
type splitOutput struct {
	senders   []transport.Sender
	ranges    []shared.Range // of the receiving subtasks, contiguous
	shards    int
	place     placement
	mem       memory.Allocator
	batchRows int

	rows  []arrow.Record // kept back, retained
	dst   []int32        // their destinations
	bytes int64
	first int64 // rows of the source shard so far

	seq   []int64 // by receiving subtask
	start []int32 // counting sort: where each destination begins; shards+1 long
	order []int32 // counting sort: row indices by destination
}

// What is kept back: enough that messages to 128 shards hold a few hundred rows
// each, yet bounded for wide rows.
const (
	keepBatches = 32
	keepBytes   = 4 << 20
)

func (o *splitOutput) emit(ctx context.Context, shard int, rows arrow.Record) error {
	n := int(rows.NumRows())
	have := len(o.dst)
	o.dst = append(o.dst, make([]int32, n)...)
	if err := o.place(rows, shard, o.first, o.dst[have:]); err != nil {
		return err
	}
	o.first += int64(n)
	rows.Retain()
	o.rows = append(o.rows, rows)
	o.bytes += batch.Size(rows)
	if len(o.dst) >= keepBatches*o.batchRows || o.bytes >= keepBytes {
		return o.flush(ctx, shard)
	}
	return nil
}

// flush sends what is kept back.
func (o *splitOutput) flush(ctx context.Context, shard int) error {
	if len(o.dst) == 0 {
		return nil
	}
	all := o.rows[0]
	if len(o.rows) > 1 {
		var err error
		if all, err = batch.Concat(o.mem, o.rows); err != nil {
			return err
		}
		defer all.Release()
	}
	o.sort()
	for t, r := range o.ranges {
		if err := o.sendRange(ctx, shard, t, r, all); err != nil {
			return err
		}
	}
	o.release()
	return nil
}

// sort orders the rows kept back by destination.
func (o *splitOutput) sort() {
	clear(o.start)
	for _, d := range o.dst {
		o.start[d+1]++
	}
	for d := range o.shards {
		o.start[d+1] += o.start[d]
	}
	if cap(o.order) < len(o.dst) {
		o.order = make([]int32, len(o.dst), cap(o.dst))
	}
	o.order = o.order[:len(o.dst)]
	// Placing rows moves start[d] to the beginning of d+1; moving it back after
	// saves a second array.
	for i, d := range o.dst {
		o.order[o.start[d]] = int32(i)
		o.start[d]++
	}
	copy(o.start[1:], o.start[:o.shards])
	o.start[0] = 0
}

// sendRange sends the rows for the shards of one receiving subtask.
func (o *splitOutput) sendRange(ctx context.Context, shard, t int, r shared.Range, all arrow.Record) error {
	end := int(o.start[r.Hi])
	d := r.Lo
	for lo := int(o.start[r.Lo]); lo < end; {
		hi := min(lo+o.batchRows, end)
		for int(o.start[d+1]) <= lo {
			d++
		}
		m := transport.Message{Shard: shard, Seq: o.seq[t], First: d}
		for ; ; d++ {
			m.Ends = append(m.Ends, min(int(o.start[d+1]), hi)-lo)
			if int(o.start[d+1]) >= hi {
				break
			}
		}
		var err error
		if m.Rows, err = o.take(all, lo, hi); err != nil {
			return err
		}
		o.seq[t]++
		if err := o.senders[t].Send(ctx, m); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// take returns the rows at places lo to hi of the order.
func (o *splitOutput) take(all arrow.Record, lo, hi int) (arrow.Record, error) {
	if first := int(o.order[lo]); int(o.order[hi-1])-first == hi-1-lo && increasing(o.order[lo:hi]) {
		// Neighbours already, as when all rows go to one shard: nothing to copy.
		return batch.Slice(all, first, first+hi-lo)
	}
	return batch.Take(o.mem, all, o.order[lo:hi])
}

// increasing reports whether every index is one more than that before it.
func increasing(order []int32) bool {
	for i, x := range order {
		if x != order[0]+int32(i) {
			return false
		}
	}
	return true
}

func (o *splitOutput) endShard(ctx context.Context, shard int) error {
	if err := o.flush(ctx, shard); err != nil {
		return err
	}
	for t, s := range o.senders {
		if err := s.Send(ctx, transport.Message{Shard: shard, Seq: o.seq[t], First: -1, Last: true}); err != nil {
			return err
		}
		o.seq[t] = 0
	}
	o.first = 0
	return nil
}

func (o *splitOutput) release() {
	for i, r := range o.rows {
		r.Release()
		o.rows[i] = nil
	}
	o.rows, o.dst, o.bytes = o.rows[:0], o.dst[:0], 0
}

// rebalancePlacement sends row j of shard s to shard (s+j) mod shards.
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

// hashPlacement sends a row to the shard that the documented hash of its keys
// names.
func hashPlacement(shards int, keys []string) placement {
	var (
		hashes []uint64
		schema *arrow.Schema // that cols are of
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
		if cap(hashes) < len(dst) {
			hashes = make([]uint64, len(dst))
		}
		hashes = hashes[:len(dst)]
		if err := batch.Hash(rows, cols, hashes); err != nil {
			return err
		}
		for i, h := range hashes {
			dst[i] = int32(batch.ShardOf(h, shards))
		}
		return nil
	}
}

// userPlacement calls a bound partition function and checks what it says.
func userPlacement(shards int, partition Partition, name string) placement {
	return func(rows arrow.Record, shard int, first int64, dst []int32) error {
		if err := partition(rows, shard, first, shards, dst); err != nil {
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

// placementOf returns the placement of an edge for one sending subtask.
func placementOf(p *plan.Plan, e *plan.Edge, bind *Bindings) placement {
	if partition := bind.Partitions[Port{Node: e.ToNode, Port: e.Port}]; partition != nil {
		return userPlacement(p.Shards, partition, partitionName(p, e))
	}
	if e.Partitioner == plan.Hash {
		return hashPlacement(p.Shards, e.Keys)
	}
	return rebalancePlacement(p.Shards)
}

// partitionName is how messages call the partition function of an edge.
func partitionName(p *plan.Plan, e *plan.Edge) string {
	if f := p.Nodes[e.ToNode].Inputs[e.Port].Func; f != "" {
		return f
	}
	return fmt.Sprintf("of input %d", e.Port)
}
