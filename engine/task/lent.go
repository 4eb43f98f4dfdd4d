package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// While a queue runs, its loops lend the rows of their shards (GangSpec.Lend), so that another process can copy
// them ahead of the next run. The rows belong to the session of the queue, which counts them in the budget and
// releases them. So whoever reads them takes a reference for one piece of them at a time, and asks again for the
// next piece: the queue may have ended meanwhile. Before the first loop of a gang is closed, the run takes all
// rows of the gang back, and nobody finds them any more.

// The sizes of the pieces in which rows are given. A piece in memory is not copied. One in a file is, as its pages
// may be damaged.
const (
	memoryPiece = 16 << 20
	filePiece   = 1 << 20
)

// errNotLent says that rows cannot be given now.
var errNotLent = errors.New("the rows are not there any more")

// lender returns the function with which the loops of a queue lend rows, or nil if nobody wants them.
func (k *Retained) lender(queue string) func(port, shard int, rows KeptRows) {
	if k == nil {
		return nil
	}
	return func(port, shard int, rows KeptRows) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lent.putPort(queue, port, shard, rows)
	}
}

// takeBack ends the lending of the rows of a queue.
func (k *Retained) takeBack(queue string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.lent, queue)
}

// borrowLent returns rows that are lent, and the allocator of the run. The caller owns the batch, and releases it
// soon.
func (k *Retained) borrowLent(queue string, port, shard int) (portRows, memory.Allocator, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rows, there := k.lent[queue][shard][port]
	if !there || k.current == nil {
		return portRows{}, nil, errNotLent
	}
	rows.batch.Retain()
	return rows, k.current.env.Allocator, nil
}

// PortSize says how many rows of a shard a data port of a queue has, and their bytes.
type PortSize struct {
	Port        int
	Rows, Bytes int64
}

// Offer returns the sizes of the rows of a shard of a queue that runs here, by data port in increasing order. It
// returns nil if the rows are not here, or if they may depend on how shards are divided among subtasks: because
// an operator before the queue has emitted rows in Finish, or because that is not known here.
func (k *Retained) Offer(queue string, shard int) (sizes []PortSize) {
	k.mu.Lock()
	r, whole := k.current, k.whole[queue]
	for port, rows := range k.lent[queue][shard] {
		sizes = append(sizes, PortSize{port, rows.batch.NumRows(), batch.Size(rows.batch)})
	}
	k.mu.Unlock()
	if sizes == nil || r == nil || !whole && !r.finishesWithout(queue) {
		return nil
	}
	if edges, _ := queueInputs(r.plan, queue); len(edges) != len(sizes) {
		return nil
	}
	k.mu.Lock()
	if k.current == r {
		k.whole[queue] = true
	}
	k.mu.Unlock()
	slices.SortFunc(sizes, func(a, b PortSize) int { return a.Port - b.Port })
	return sizes
}

// finishesWithout reports whether all operators before a queue are known to have emitted no rows in Finish.
func (r *run) finishesWithout(queue string) bool {
	for _, t := range r.allSubtasks() {
		if t.vertex.Queue != "" {
			continue
		}
		for _, l := range t.links {
			if l.operator == nil || l.node.Single || !slices.Contains(queuesBehind(r.plan, l.node.ID), queue) {
				continue
			}
			if !r.endedWithout(t, l) {
				return false
			}
		}
	}
	return true
}

// endedWithout reports whether an operator is known to have emitted no rows in Finish, in this process or before.
func (r *run) endedWithout(t *subtask, l *link) bool {
	k := r.env.Retained
	k.mu.Lock()
	emitted, known := k.ends[l.node.ID]
	k.mu.Unlock()
	if t.makesNothing() {
		return known && !emitted
	}
	return !emitted && t.finished.Load() && l.ended && !l.last
}

// Give calls give with the rows of a data port of a shard, in pieces in order, each valid during the call. The
// pieces of a file are to be used only after Give has returned without an error, as the file is verified last.
func (k *Retained) Give(queue string, port, shard int, give func(rows columnar.Batch) error) error {
	for lo, n := 0, 1; lo < n; {
		rows, mem, err := k.borrowLent(queue, port, shard)
		if err != nil {
			return err
		}
		n = int(rows.batch.NumRows())
		size, most := batch.Size(rows.batch), int64(memoryPiece)
		if rows.file != nil {
			most = filePiece
		}
		hi := min(lo+rowsOfSize(most, size, n), n)
		if hi > lo || n == 0 { // also if there are none, which have a schema
			err = rows.givePiece(mem, lo, hi, give)
		}
		if lo = hi; err == nil && lo == n && rows.file != nil {
			if err = rows.file.Verify(); err != nil {
				err = fmt.Errorf("rows of a queue in a file: %w", err)
			}
		}
		rows.batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// givePiece gives rows lo to hi.
func (rows portRows) givePiece(mem memory.Allocator, lo, hi int, give func(rows columnar.Batch) error) error {
	part := rows.batch.NewSlice(int64(lo), int64(hi))
	defer part.Release()
	if rows.file == nil {
		return give(arrowrows.Batch(part))
	}
	var piece arrow.Record
	err := rows.file.Read(func() (err error) {
		piece, err = batch.Concat(mem, []arrow.Record{part})
		return err
	})
	if err != nil {
		return err
	}
	defer piece.Release()
	return give(arrowrows.Batch(piece))
}
