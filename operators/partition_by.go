package operators

import (
	"fmt"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// PartitionByHash sends rows with equal keys to one shard, which a hash of the named columns
// chooses. Integers hash by value whatever their width, -0 as +0, and all nulls alike.
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

// PartitionByCustom sends every row to the shard that f names: f gets the row and the number of
// shards and returns a number from 0 to shards-1.
//
// f must depend on its arguments alone. Anything outside the range fails the run.
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

// customPartition places rows by a user's function. The subtasks of a process share it, so each
// call takes a reader of its own from a pool.
type customPartition[In any] struct {
	codec   *batch.Codec[In]
	f       func(In, int) int
	readers sync.Pool // of *rowReader[In]
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
