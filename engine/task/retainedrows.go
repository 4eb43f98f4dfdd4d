package task

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// keptRows are the rows of the inputs of a queue that a process has kept, by shard and then by data port. A
// shard that is there has the rows of all data ports. Each batch has all rows of its shard and port.
type keptRows map[int]map[int]portRows

// portRows are the rows of a shard and a data port, in memory or in a file, as KeptRows.
type portRows struct {
	batch  arrow.Record
	file   *mapped.Region
	memory int64
}

// bytes returns how many bytes of memory the rows take.
func (rows portRows) bytes() int64 {
	if rows.file != nil {
		return rows.memory
	}
	return batch.Size(rows.batch)
}

// release releases the rows of the shards for which drop is true.
func (rows keptRows) release(drop func(shard int) bool) {
	for shard, ports := range rows {
		if !drop(shard) {
			continue
		}
		for _, held := range ports {
			held.batch.Release()
		}
		delete(rows, shard)
	}
}

// keeper returns the function with which the loops of a queue say which rows are kept for the next run, or
// nil if nothing is kept.
func (k *Retained) keeper(queue string) func(port, shard int, rows KeptRows) {
	if k == nil {
		return nil
	}
	return func(port, shard int, rows KeptRows) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.rows[queue] == nil {
			k.rows[queue] = make(keptRows)
		}
		ports := k.rows[queue][shard]
		if ports == nil {
			ports = make(map[int]portRows)
			k.rows[queue][shard] = ports
		}
		if before, there := ports[port]; there {
			before.batch.Release()
		}
		rows.Rows.Retain()
		ports[port] = portRows{arrowrows.Record(rows.Rows), rows.File, rows.Memory}
	}
}

// giver returns the function that gives the rows of the shards of a queue for which kept is true to its
// loops, which own them from then on.
func (k *Retained) giver(queue string, kept func(shard int) bool) func(port, shard int) (KeptRows, bool) {
	return func(port, shard int) (KeptRows, bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		ports := k.rows[queue][shard]
		rows, there := ports[port]
		if !there || !kept(shard) {
			return KeptRows{}, false
		}
		if delete(ports, port); len(ports) == 0 {
			delete(k.rows[queue], shard)
		}
		return KeptRows{arrowrows.Batch(rows.batch), rows.file, rows.memory}, true
	}
}

// borrow returns the rows of a data port of a shard, whose batch is owned by the caller, and leaves them
// where they are. It returns false if they are not there.
func (k *Retained) borrow(queue string, port, shard int) (portRows, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rows, there := k.rows[queue][shard][port]
	if there {
		rows.batch.Retain()
	}
	return rows, there
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
				n += rows.batch.NumRows()
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
