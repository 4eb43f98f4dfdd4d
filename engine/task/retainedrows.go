package task

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// keptRows are the rows of the inputs of a queue that a process has kept, by shard and then by data port. A
// shard that is there has the rows of all data ports. Each batch has all rows of its shard and port.
type keptRows map[int]map[int]arrow.Record

// release releases the rows of the shards for which drop is true.
func (rows keptRows) release(drop func(shard int) bool) {
	for shard, ports := range rows {
		if !drop(shard) {
			continue
		}
		for _, batch := range ports {
			batch.Release()
		}
		delete(rows, shard)
	}
}

// keeper returns the function with which the loops of a queue say which rows are kept for the next run, or
// nil if nothing is kept.
func (k *Retained) keeper(queue string) func(port, shard int, rows columnar.Batch) {
	if k == nil {
		return nil
	}
	return func(port, shard int, rows columnar.Batch) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.rows[queue] == nil {
			k.rows[queue] = make(keptRows)
		}
		ports := k.rows[queue][shard]
		if ports == nil {
			ports = make(map[int]arrow.Record)
			k.rows[queue][shard] = ports
		}
		if before := ports[port]; before != nil {
			before.Release()
		}
		rows.Retain()
		ports[port] = arrowrows.Record(rows)
	}
}

// giver returns the function that gives the rows of the shards of a queue for which kept is true to its
// loops, which own them from then on.
func (k *Retained) giver(queue string, kept func(shard int) bool) func(port, shard int) (columnar.Batch, bool) {
	return func(port, shard int) (columnar.Batch, bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		ports := k.rows[queue][shard]
		rows, there := ports[port]
		if !there || !kept(shard) {
			return columnar.Batch{}, false
		}
		if delete(ports, port); len(ports) == 0 {
			delete(k.rows[queue], shard)
		}
		return arrowrows.Batch(rows), true
	}
}

// borrow returns the rows of a data port of a shard, owned by the caller, and leaves them where they are. It
// returns nil if they are not there.
func (k *Retained) borrow(queue string, port, shard int) arrow.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	rows := k.rows[queue][shard][port]
	if rows != nil {
		rows.Retain()
	}
	return rows
}

// counted returns how many rows a queue has in the shards for which in is true, over all data ports.
func (k *Retained) counted(queue string, in func(shard int) bool) (n int64) {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for shard, ports := range k.rows[queue] {
		for _, rows := range ports {
			if in(shard) {
				n += rows.NumRows()
			}
		}
	}
	return n
}

// releaseRows releases the rows of the shards of all queues for which needed is false.
func (k *Retained) releaseRows(needed func(queue string, shard int) bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for queue, rows := range k.rows {
		if rows.release(func(shard int) bool { return !needed(queue, shard) }); len(rows) == 0 {
			delete(k.rows, queue)
		}
	}
}
