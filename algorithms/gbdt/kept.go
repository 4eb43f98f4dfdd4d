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

// The state that decides how a training goes on after a round is under keys that are kept:
//
//	boosted   the trees, and the facts about all rows from the first superstep: on every subtask
//	measured  what subtask 0 measured and decided: kept with shard 0, which it always owns
//
// A state points to these objects, so that keeping them costs nothing. Everything else in it
// follows from them and from the rows, so a subtask that joins later can rebuild it. It adds
// the trees to the margins that rows start from, in the order of the training, so that the
// margins have the same bits. With DART this order subtracts dropped rounds and adds them
// again. Which rounds are dropped is drawn by seed and round, and their weights follow from the
// rounds before, so neither needs to be kept. Bags, held out rows and their weights are draws
// as well.
var (
	boostedTrees    = shared.Replicated[*boosted]("boosted trees", boostedCodec{})
	measurementsKey = shared.PerShard("measurements", shared.Msgpack[*measurements]())
)

// boosted is the model so far, the same on every subtask.
type boosted struct {
	base  []float64   // base margin of each output; nil before the prior is known
	most  float64     // largest weight of a row
	trees []tree.Tree // round by round, one for each output, of weight 1
}

// measurements has the metrics of the rounds so far and what follows from them; subtask 0 has it.
type measurements struct {
	Best int // round, from 1; 0 before the first
	Stop bool
	Log  [][][]Value // of each round, set and metric
}

// beginKeeping puts the objects that are kept.
func (q *boosting) beginKeeping(ctx *comqueue.ComContext) error {
	boostedTrees.Put(ctx, &boosted{})
	if ctx.TaskID() == 0 {
		measurementsKey.Put(ctx, 0, &measurements{})
	}
	return nil
}

// rejoin brings the state of a subtask that joins up to the current round.
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

// replay adds the trees so far to the margins that rows start from.
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

// boostedCodec writes the number of bases, the bases, the largest weight, and then the trees.
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
