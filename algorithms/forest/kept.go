package forest

import (
	"bytes"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// These keys are checkpointed. Their objects have everything that training carries from one
// superstep to the next:
//
//	progressed    on every subtask: the number of trees, which of them use all rows, and the sums
//	              over rows out of the bag
//	writtenTrees  on subtask 0, stored with shard 0, which it always owns: the text of the trees
//	outOfBagSums  with OOBScore, for each shard: the sums of the trees for its rows. Subtasks
//	              do not keep the trees from which the sums could be computed again
//
// A state points to the same objects, so keeping them needs no copies. Everything else in a
// state follows from these objects and from the rows, also on a subtask that joins later. If
// subtasks have copies of all rows, all subtasks send their rows again in the superstep in
// which a subtask has no copy.
var (
	progressed   = shared.Replicated("progress", shared.Msgpack[*progress]())
	writtenTrees = shared.PerShard[*written]("text of the trees", writtenCodec{})
	outOfBagSums = shared.PerShard("sums out of bag", shared.Float64s())
)

// progress is the progress of a training. It is the same on every subtask.
type progress struct {
	Trees int   // number of trees so far, including those of Start
	Empty []int // sampler.empty

	// Measured has, with OOBScore, the sums over the rows out of the bag after the latest
	// superstep.
	Measured []float64
}

// beginKeeping creates the objects that are checkpointed.
func (g growing) beginKeeping(ctx *comqueue.ComContext) error {
	progressed.Put(ctx, &progress{Trees: g.first})
	if ctx.TaskID() == 0 {
		writtenTrees.Put(ctx, 0, &written{})
	}
	if !g.params.OOBScore {
		return nil
	}
	d := states.Get(ctx).data
	for _, span := range d.Shards {
		outOfBagSums.Put(ctx, span.Shard, make([]float64, span.Rows*outputsOf(d)))
	}
	return nil
}

// join updates the state of a subtask that joins a training that is already running.
func (g growing) join(ctx *comqueue.ComContext) error {
	s := states.Get(ctx)
	s.progress = progressed.Get(ctx)
	s.sampler.empty = s.Empty
	if ctx.TaskID() == 0 {
		s.written = writtenTrees.Get(ctx, 0)
		if err := g.write(s.written, s.data); err != nil {
			return err
		}
	}
	if !g.params.OOBScore {
		return nil
	}
	var sums [][]float64
	for _, span := range s.data.Shards {
		own := outOfBagSums.Get(ctx, span.Shard)
		if len(own) != span.Rows*outputsOf(s.data) {
			return fmt.Errorf("%d sums out of the bag were kept of shard %d, of %d rows with %d outputs", len(own), span.Shard, span.Rows, outputsOf(s.data))
		}
		sums = append(sums, own)
	}
	s.bag = newBag(s.data, s.loose, s.sampler, outputsOf(s.data), sums)
	if s.Trees > g.first { // otherwise the trees of Start are still to be added
		s.bag.count(s.Trees)
	}
	return nil
}

// outputsOf returns the number of values of a leaf.
func outputsOf(d *bins.Data) int { return max(1, len(d.Facts.Classes)) }

// writtenCodec encodes the list of trees as it is in the model's file.
type writtenCodec struct{}

// Append implements shared.Codec.
func (writtenCodec) Append(dst []byte, w *written) ([]byte, error) {
	if w.trees == nil {
		return append(dst, w.before...), nil
	}
	return w.trees.AppendTrees(dst), nil
}

// Decode implements shared.Codec. It does not parse the trees; growing.write does, because it
// knows their features.
func (writtenCodec) Decode(src []byte) (*written, error) {
	return &written{before: bytes.Clone(src)}, nil
}
