package gbdt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/algorithms/internal/treecode"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// These keys are kept in checkpoints. Their objects determine how training continues after a
// round:
//
//	boosted   on every subtask: the trees, and facts about all rows from the first superstep
//	measured  on subtask 0, stored with shard 0, which it always owns: its metrics and decisions
//
// A state points to these objects, so keeping them needs no copies. Everything else in a state
// follows from these objects and from the rows, so a subtask that joins later can rebuild its
// state. To do so, it adds the trees to the margins that rows start from, in the order of the
// training, so that the margins have the same bits. With DART it also repeats the subtractions
// and additions of dropped rounds. Which rounds are dropped is drawn by seed and round, and the
// weights of rounds follow from earlier rounds, so neither is kept. Which rows are in bags or
// held out, and their weights, are drawn in the same way.
var (
	boostedTrees    = shared.Replicated[*boosted]("boosted trees", boostedCodec{})
	measurementsKey = shared.PerShard("measurements", shared.Msgpack[*measurements]())
)

// boosted is the model so far, the same on every subtask.
type boosted struct {
	base  []float64   // base margin of each output; nil before the prior is known
	most  float64     // largest weight of a row
	trees []tree.Tree // round by round, one for each output; values not yet multiplied by the weights of DART
}

// measurements has the metrics of the rounds so far and what follows from them. Only subtask 0
// uses it.
type measurements struct {
	Best int // best round so far, from 1; 0 before the first round
	Stop bool
	Log  [][][]Value // Log[round][set][metric] is the value of a metric
}

// beginKeeping puts the kept objects into the session.
func (q *boosting) beginKeeping(ctx *comqueue.ComContext) error {
	boostedTrees.Put(ctx, &boosted{})
	if ctx.TaskID() == 0 {
		measurementsKey.Put(ctx, 0, &measurements{})
	}
	return nil
}

// rejoin rebuilds the state of a subtask that joins, up to the current round.
func (q *boosting) rejoin(s *state) error {
	if s.base == nil {
		return nil
	}
	if len(s.base) != s.outputs {
		return fmt.Errorf("the state kept of the training has %d outputs, and there are %d", len(s.base), s.outputs)
	}
	if q.quantiles != nil {
		s.countWeights()
	}
	s.startMargins()
	return s.replay()
}

// replay adds the trees made so far to the margins that rows start from.
func (s *state) replay() error {
	walker := grow.NewWalker(s.data.Layout)
	leaves := func(_ int, d *bins.Data, out []int32) []int32 { return walker.Route(d, out) }
	for step := 1; step*s.outputs <= len(s.trees); step++ {
		round, weight := s.params.round(step), 1.0
		if s.dropped != nil {
			s.drop(round)
			weight = s.restore(s.params.rate(round))
		}
		for k := range s.outputs {
			t := &s.trees[(step-1)*s.outputs+k]
			if err := walker.Open(t); err != nil {
				return fmt.Errorf("round %d, which was kept: %w", round, err)
			}
			s.addTree(t, weight, leaves)
		}
		if s.dropped != nil && step == s.Best {
			s.dropped.keepBest()
		}
	}
	return nil
}

// boostedCodec encodes a boosted as the number of base margins, the base margins, the largest
// weight, and then the trees.
type boostedCodec struct{}

// Append implements shared.Codec.
func (boostedCodec) Append(dst []byte, b *boosted) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.base)))
	for _, v := range b.base {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(b.most))
	for i := range b.trees {
		dst = treecode.Append(dst, &b.trees[i])
	}
	return dst, nil
}

// Decode implements shared.Codec.
func (boostedCodec) Decode(src []byte) (*boosted, error) {
	if len(src) < 4 {
		return nil, errBoosted
	}
	outputs, src := uint64(binary.LittleEndian.Uint32(src)), src[4:]
	if uint64(len(src)) < 8*outputs+8 {
		return nil, errBoosted
	}
	number := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(src))
		src = src[8:]
		return v
	}
	b := &boosted{}
	for range outputs {
		b.base = append(b.base, number())
	}
	b.most = number()
	for len(src) > 0 {
		t := tree.Tree{}
		var err error
		if src, err = treecode.Read(src, &t); err != nil {
			return nil, fmt.Errorf("boosted trees: tree %d: %w", len(b.trees), err)
		}
		if outputs > 0 {
			t.Output = int32(uint64(len(b.trees)) % outputs)
		}
		b.trees = append(b.trees, t)
	}
	if n := uint64(len(b.trees)); n > 0 && (outputs == 0 || n%outputs != 0) {
		return nil, fmt.Errorf("boosted trees: there are %d trees for %d outputs", n, outputs)
	}
	return b, nil
}

var errBoosted = errors.New("boosted trees: the bytes are cut short")
