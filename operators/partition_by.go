package operators

import (
	"fmt"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// PartitionByHash sends every row to the shard that a hash of the given columns chooses, so
// that rows with equal keys are in one shard. The hash of integers does not depend on their
// width, -0 has the hash of +0, and all nulls have the same hash.
func PartitionByHash(d *engine.Dataset, keys ...string) *engine.Dataset {
	const op = "PartitionByHash"
	b := builderOf(op, d)
	seen := map[string]bool{}
	for _, key := range keys {
		if seen[key] {
			b.Errorf("%s: key %q is named twice", op, key)
			return b.Poisoned(op)
		}
		seen[key] = true
	}
	return addExchange(op, d, engine.Port{Partitioner: engine.Hash, Keys: keys})
}

// PartitionByCustom sends every row to the shard that f chooses: f gets the row and the number
// of shards, and returns the number of a shard, from 0 to shards-1.
//
// The result must depend only on the arguments. A number outside of this range fails the run.
func PartitionByCustom[In any](d *engine.Dataset, f func(row In, shards int) int) *engine.Dataset {
	const op = "PartitionByCustom"
	b := builderOf(op, d)
	codec, ok := inputRows[In](op, d)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	p := &customPartition[In]{codec: codec, f: f}
	return addExchange(op, d, engine.Port{Partitioner: engine.Custom, Partition: p.place, Func: f, Use: reads(codec.Schema())})
}

// customPartition chooses the shards of rows by a user's function. The subtasks of a process
// share it, so each call takes a separate reader from a pool.
type customPartition[In any] struct {
	codec   *batch.Codec[In]
	f       func(In, int) int
	readers sync.Pool // pool of *rowReader[In]
}

func (p *customPartition[In]) place(placed engine.Batch, _ int, first int64, shards int, dst []int32) error {
	rows := arrowrows.Record(placed)
	in, _ := p.readers.Get().(*rowReader[In])
	if in == nil {
		in = &rowReader[In]{codec: p.codec}
	}
	defer p.readers.Put(in)
	defer in.endShard()
	if err := in.reset(rows); err != nil {
		return err
	}
	in.index.first = first
	for i := range dst {
		row, err := in.read(i)
		if err != nil {
			return err
		}
		shard := p.f(*row, shards)
		if shard < 0 || shard >= shards || shard > math.MaxInt32 {
			return in.fail(i, fmt.Errorf("the function names shard %d; want 0 to %d", shard, shards-1))
		}
		dst[i] = int32(shard)
	}
	return nil
}
