package objective

import (
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// ladder is the way up the tree over shards from the one that came last: buffers with what
// the subtrees come to that wait for what lies to their right, and behind them room for the
// next shard. It is spine for buffers.
type ladder struct {
	depth int
	first [24]uint32 // shard of a subtree
	parts [][]float64
}

// meet merges the subtrees that nothing can come between any more once a shard comes, and
// returns a buffer of a length for what it gives, to be filled.
func (l *ladder) meet(shard uint32, length int) []float64 {
	for ; l.depth >= 2 && l.first[l.depth-2]^l.first[l.depth-1] < l.first[l.depth-1]^shard; l.depth-- {
		kernel.AddTo(l.parts[l.depth-2], l.parts[l.depth-1])
	}
	if len(l.parts) == l.depth {
		l.parts = append(l.parts, make([]float64, length))
	}
	out := l.parts[l.depth]
	l.first[l.depth] = shard
	l.depth++
	return out
}

// total returns what all come to, nil where none came, and begins anew.
func (l *ladder) total() []float64 {
	if l.depth == 0 {
		return nil
	}
	for ; l.depth > 1; l.depth-- {
		kernel.AddTo(l.parts[l.depth-2], l.parts[l.depth-1])
	}
	l.depth = 0
	return l.parts[0]
}

// wideWork is how shards that are not narrow are folded: each has a buffer of all parameters
// on the ladder. Where a buffer is not long eight shards have one each for their sums by
// features as they are: then scaling these and adding them up the tree is one way through
// memory.
type wideWork struct {
	ladder
	rooms  [kernel.LeafCount][]float64 // the buffers
	has    [kernel.LeafCount]bool      // which of them were filled
	loss   [kernel.LeafCount]float64   // of the shards that filled them
	slopes [kernel.LeafCount]float64   // ... sums of their slopes
	filled bool                        // some were
	node   int                         // number of the first shard of the eight
}

// mostTogether is up to how many parameters eight shards have buffers of their own, which
// then take 4 MB.
const mostTogether = 1 << 16

// allOnes are the coefficients of buffers.
var allOnes = [kernel.LeafCount]float64{1, 1, 1, 1, 1, 1, 1, 1}

// roomOf returns the buffer for the sums of a shard, of zeros: for all of them, or with
// together for those by features as they are.
func (e *Evaluator) roomOf(s *shardRows) (room []float64, together bool) {
	w := &e.wide
	if e.k > 1 || e.centred || e.parameters() > mostTogether {
		room = w.meet(uint32(s.number), 1+e.parameters())
		clear(room)
		return room, false
	}
	at := s.number % kernel.LeafCount
	if w.filled && s.number-at != w.node {
		e.foldTogether()
	}
	w.node = s.number - at
	return w.zeroed(at, e.d), true
}

// zeroed returns one of the buffers of eight shards, of zeros.
func (w *wideWork) zeroed(at, d int) []float64 {
	if w.rooms[at] == nil {
		w.rooms[at] = make([]float64, d)
	} else {
		clear(w.rooms[at])
	}
	return w.rooms[at]
}

// leave notes what a shard leaves besides the sums in its buffer.
func (e *Evaluator) leave(s *shardRows, loss float64) {
	w := &e.wide
	at := s.number % kernel.LeafCount
	w.filled, w.has[at], w.loss[at], w.slopes[at] = true, true, loss, e.sums[0]
}

// foldTogether takes what eight shards left up the tree. A buffer of zeros is as good as none.
func (e *Evaluator) foldTogether() {
	w := &e.wide
	for at, has := range w.has {
		if !has {
			w.zeroed(at, e.d)
		}
	}
	to := w.meet(uint32(w.node), 1+e.parameters())
	kernel.FoldLeaves(&w.rooms, &allOnes, nil, e.inverse, to[1:1+e.d])
	to[0] = kernel.FoldEight(&w.loss)
	if e.intercept {
		to[1+e.d] = kernel.FoldEight(&w.slopes)
	}
	w.filled = false
	clear(w.has[:])
	clear(w.loss[:])
	clear(w.slopes[:])
}

// foldWide is Fold of shards that are not narrow: of those that were kept since the last one.
func (e *Evaluator) foldWide(out []float64) {
	if e.wide.filled {
		e.foldTogether()
	}
	copy(out, e.wide.total())
	positiveZeros(out) // where all parts are −0
}

// Folds implements optim.FoldingEvaluator.
func (e *Evaluator) Folds() bool { return len(e.shards) <= mostFolded }

// Fold implements optim.FoldingEvaluator.
func (e *Evaluator) Fold(shards shared.Range, out []float64) error {
	if e.folds {
		e.foldNarrow(shards, out)
	} else {
		e.foldWide(out)
	}
	return nil
}
