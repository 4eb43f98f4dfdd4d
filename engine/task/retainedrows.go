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

// drop releases the rows of a shard.
func (rows keptRows) drop(shard int) {
	for _, held := range rows[shard] {
		held.batch.Release()
	}
	delete(rows, shard)
}

// dropAll releases all rows.
func (rows keptRows) dropAll() {
	for shard := range rows {
		rows.drop(shard)
	}
}

// queueRows are the rows of queues, by queue.
type queueRows map[string]keptRows

// put adds the rows of a shard of a queue, by data port.
func (all queueRows) put(queue string, shard int, ports map[int]portRows) {
	if all[queue] == nil {
		all[queue] = make(keptRows)
	}
	all[queue][shard] = ports
}

// putPort adds the rows of a data port of a shard.
func (all queueRows) putPort(queue string, port, shard int, rows KeptRows) {
	if all[queue][shard] == nil {
		all.put(queue, shard, make(map[int]portRows))
	}
	all[queue][shard][port] = portRows{arrowrows.Record(rows.Rows), rows.File, rows.Memory}
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
		if before, there := k.rows[queue][shard][port]; there {
			before.batch.Release()
		}
		rows.Rows.Retain()
		k.rows.putPort(queue, port, shard, rows)
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
		for shard := range rows {
			if !needed(queue, shard) {
				rows.drop(shard)
			}
		}
		if len(rows) == 0 {
			delete(k.rows, queue)
		}
	}
}
