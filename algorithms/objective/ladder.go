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

// meetOrJoin is meet, or where all that came of the other half of the node above the shard
// is one buffer, which nothing else is in, returns that, to be added to.
func (l *ladder) meetOrJoin(shard uint32, length int) (out []float64, joins bool) {
	if out = l.meet(shard, length); l.depth >= 2 && l.first[l.depth-2]^shard == 1 {
		l.depth--
		return l.parts[l.depth-1], true
	}
	return out, false
}

// wideWork is how shards that are not narrow are folded: each has a buffer of all parameters
// on the ladder. Of one margin sums by features as they are go there from a buffer that all
// shards make them in, which so stays in the cache.
type wideWork struct {
	ladder
	room  []float64 // sums of the shard at hand, else zeros
	begun bool      // there may be others
}

// roomOf returns the buffer for the sums of a shard, of zeros: for all of them, or with
// unscaled for those by features as they are.
func (e *Evaluator) roomOf(s *shardRows) (room []float64, unscaled bool) {
	w := &e.wide
	if e.k > 1 || e.centred {
		room = w.meet(uint32(s.number), 1+e.parameters())
		clear(room)
		return room, false
	}
	if w.room == nil {
		w.room = make([]float64, e.d)
	} else if w.begun { // a pass ended early
		clear(w.room)
	}
	w.begun = true
	return w.room, true
}

// leave takes what a shard has come to from its buffer to the ladder.
func (e *Evaluator) leave(s *shardRows, loss float64) {
	w := &e.wide
	to, joins := w.meetOrJoin(uint32(s.number), 1+e.parameters())
	gradient := to[1 : 1+e.d]
	if joins {
		kernel.DrainOnto(gradient, w.room, e.inverse)
		to[0] += loss
	} else {
		kernel.DrainTo(gradient, w.room, e.inverse)
		to[0] = loss
	}
	if e.intercept && joins {
		to[1+e.d] += e.sums[0]
	} else if e.intercept {
		to[1+e.d] = e.sums[0]
	}
	w.begun = false
}

// foldWide is Fold of shards that are not narrow: of those that were kept since the last one.
func (e *Evaluator) foldWide(out []float64) {
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
