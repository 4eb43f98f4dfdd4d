package task

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// memberInput reads the data ports of a queue.
type memberInput member

// Next returns the next rows of a shard.
func (in *memberInput) Next(number, shard int) (columnar.Batch, error) {
	p, err := in.port(number)
	if err != nil {
		return columnar.Batch{}, err
	}
	from := p.inbox
	if in.gang.generation == 0 && in.run.movedFrom(in.gang.queue.Name, shard) >= 0 {
		from = p.moved
	}
	if from == nil || !from.dst.Contains(shard) || shard < from.shard {
		return columnar.Batch{}, fmt.Errorf("read shard %d of input %d after shard %d: want the shards of %v in increasing order", shard, number, p.inbox.shard, p.inbox.dst)
	}
	rows, err := from.next(in.context, shard, &in.waiting)
	if err != nil {
		return columnar.Batch{}, err // io.EOF is the shard's end
	}
	in.rowsIn += rows.NumRows()
	in.advance(rows.NumRows())
	return arrowrows.Batch(rows), nil
}

// Skip drops the remaining rows of a port.
func (in *memberInput) Skip(number int) error {
	p, err := in.port(number)
	if err == nil {
		p.inbox.drop()
	}
	if err == nil && p.moved != nil {
		p.moved.drop()
	}
	return err
}

func (in *memberInput) port(number int) (port, error) {
	for _, p := range in.ports {
		if p.number == number {
			return p, nil
		}
	}
	return port{}, fmt.Errorf("input %d is not a data input of queue %q", number, in.gang.queue.Name)
}

var _ Input = (*memberInput)(nil)

// memberOutput emits the rows of a queue, shard by shard.
type memberOutput struct {
	m    *member
	next int // the current shard
}

// Emit ends the shards before shard, and emits rows under shard.
func (o *memberOutput) Emit(shard int, rows columnar.Batch) error {
	if r := o.m.vertex.Ranges[o.m.index]; shard < o.next || shard >= r.Hi {
		return o.m.failAt(o.m.tail, fmt.Errorf("emit under shard %d after shard %d: want the shards of %v in increasing order", shard, o.next, r))
	}
	if err := o.endUntil(shard); err != nil {
		return err
	}
	o.m.shard.Store(int32(shard))
	return o.m.tail.Emit(shard, rows)
}

// endUntil ends all shards before shard.
func (o *memberOutput) endUntil(shard int) error {
	hi := o.m.vertex.Ranges[o.m.index].Hi
	for ; o.next < shard; o.next++ {
		o.m.shard.Store(int32(o.next))
		if err := o.m.tail.endShard(o.next, o.next == hi-1); err != nil {
			return err
		}
		o.m.shardDone()
	}
	return nil
}
