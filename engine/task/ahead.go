package task

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// A process may take the rows of shards that it will own in the next run while this run goes on. They count in
// the budget of the run (Budget.HoldAhead), and give way if something else needs the room. When the run fails, or
// the process leaves it, they are kept for the next run as if the process had had the shards.

// aheadRows are rows that a process takes ahead of the next run. Its lock is the last that is taken.
type aheadRows struct {
	mu     sync.Mutex
	open   bool    // rows may be added
	budget *Budget // of the run; nil in a process that runs no subtasks
	most   int64   // limit in bytes where there is no budget
	bytes  int64   // that are reserved
	rows   queueRows
}

// openAhead begins to take rows for the run after r.
func (k *Retained) openAhead(r *run) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.current, k.whole = r, make(map[string]bool)
	k.mu.Unlock()
	a := &k.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open, a.budget, a.most, a.rows = true, r.budget, 0, make(queueRows)
	if r.part.gives() {
		a.budget, a.most = nil, cmp.Or(r.env.MemoryAhead, r.budget.Limit()/2)
	} else {
		r.budget.aheadYields = a.yield
	}
}

// RoomAhead reserves bytes for the rows of a shard that are taken ahead, and reports whether there is room for
// them. They are released by AddAhead if that fails, or by LeaveAhead.
func (k *Retained) RoomAhead(bytes int64) bool {
	a := &k.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.open || bytes < 0:
		return false
	case a.budget != nil && !a.budget.HoldAhead(bytes):
		return false
	case a.budget == nil && bytes > a.most-a.bytes:
		return false
	}
	a.bytes += bytes
	return true
}

// LeaveAhead gives up bytes that RoomAhead has reserved.
func (k *Retained) LeaveAhead(bytes int64) {
	k.ahead.mu.Lock()
	defer k.ahead.mu.Unlock()
	k.ahead.leave(bytes)
}

// leave releases bytes. mu is held.
func (a *aheadRows) leave(bytes int64) {
	a.bytes -= bytes
	if a.budget != nil {
		a.budget.GiveUpAhead(bytes)
	}
}

// HasAhead reports whether the rows of a shard were taken ahead. In a process that runs no subtasks, they may also be
// there from an earlier run.
func (k *Retained) HasAhead(queue string, shard int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ahead.mu.Lock()
	defer k.ahead.mu.Unlock()
	return k.ahead.rows[queue][shard] != nil || k.ahead.budget == nil && k.rows[queue][shard] != nil
}

// AddAhead keeps the rows of a shard for the next run, by data port, of which RoomAhead has reserved the bytes. It
// takes over the batches, also if it fails. It fails if they are not the rows of all data ports of the queue, or
// if the run has ended.
func (k *Retained) AddAhead(queue string, shard int, ports map[int]columnar.Batch, reserved int64) error {
	rows, bytes := make(map[int]portRows, len(ports)), int64(0)
	for port, of := range ports {
		rows[port] = portRows{batch: arrowrows.Record(of)}
		bytes += batch.Size(rows[port].batch)
	}
	err := k.checkAhead(queue, shard, rows)
	if err == nil && bytes > reserved {
		err = fmt.Errorf("shard %d of queue %q has %d bytes, and %d were announced", shard, queue, bytes, reserved)
	}
	a := &k.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil && !a.open:
		err = errors.New("the run has ended")
	case err == nil && a.rows[queue][shard] != nil:
		err = fmt.Errorf("shard %d of queue %q is here already", shard, queue)
	}
	if err != nil {
		keptRows{shard: rows}.dropAll()
		a.leave(reserved)
		return err
	}
	a.leave(reserved - bytes)
	a.rows.put(queue, shard, rows)
	return nil
}

// checkAhead returns an error if batches are not the rows of all data ports of a shard of a queue.
func (k *Retained) checkAhead(queue string, shard int, ports map[int]portRows) error {
	k.mu.Lock()
	r := k.current
	k.mu.Unlock()
	if r == nil {
		return errors.New("the run has not begun")
	}
	edges, _ := queueInputs(r.plan, queue)
	if len(edges) == 0 || len(edges) != len(ports) || shard < 0 || shard >= r.plan.Shards {
		return fmt.Errorf("there is no shard %d of %d data inputs of queue %q", shard, len(ports), queue)
	}
	for _, edge := range edges {
		e := &r.plan.Edges[edge]
		of, there := ports[e.Port]
		if !there {
			return fmt.Errorf("shard %d of queue %q lacks the rows of input %d", shard, queue, e.Port)
		}
		rows := of.batch
		wants, has := r.plan.Nodes[e.FromNode].Schema, batch.Columns(rows.Schema())
		if wants == nil {
			continue
		}
		if len(has) != len(wants) {
			return fmt.Errorf("input %d of queue %q has %d columns, where %d are due", e.Port, queue, len(has), len(wants))
		}
		for i := range has {
			if has[i].Name != wants[i].Name || has[i].Type != wants[i].Type || !wants[i].Nullable && rows.Column(i).NullN() > 0 {
				return fmt.Errorf("column %d of input %d of queue %q is not %q of type %s as declared", i+1, e.Port, queue, wants[i].Name, wants[i].Type)
			}
		}
	}
	return nil
}

// yield drops rows until at most so many bytes are held ahead. Memory that cannot be spilled needs the room.
func (a *aheadRows) yield(most int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rows := range a.rows {
		for shard, ports := range rows {
			if a.bytes <= most {
				return
			}
			a.leave(bytesOf(ports))
			rows.drop(shard)
		}
	}
}

// bytesOf returns the bytes of the rows of a shard.
func bytesOf(ports map[int]portRows) (bytes int64) {
	for _, rows := range ports {
		bytes += rows.bytes()
	}
	return bytes
}

// KeepAhead ends the taking of rows, and keeps those that were taken for the next run. A run that fails does that
// itself.
func (k *Retained) KeepAhead() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settleAhead()
}

// settleAhead ends the taking of rows, and keeps them for the next run. mu is held.
func (k *Retained) settleAhead() {
	a := &k.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open, k.current = false, nil
	for queue, rows := range a.rows {
		for shard, ports := range rows {
			a.leave(bytesOf(ports))
			if k.rows[queue][shard] != nil { // it has got the shard another way
				rows.drop(shard)
				continue
			}
			k.rows.put(queue, shard, ports)
		}
	}
	a.rows = nil
}

// DropAhead releases the rows that were taken ahead of shards for which wanted is false.
func (k *Retained) DropAhead(wanted func(queue string, shard int) bool) {
	a := &k.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	for queue, rows := range a.rows {
		for shard, ports := range rows {
			if !wanted(queue, shard) {
				a.leave(bytesOf(ports))
				rows.drop(shard)
			}
		}
	}
}
