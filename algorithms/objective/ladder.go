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

// beside returns the buffer of the two shards, or one of them, before a pair that have the
// node above the pair's in common with it, if they came last: what the pair comes to goes on
// top of that, and nothing between. It is nil where there are none.
func (l *ladder) beside(pair uint32) []float64 {
	if l.depth == 0 || l.first[l.depth-1]^pair > 3 {
		return nil
	}
	return l.parts[l.depth-1]
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
// on the ladder. Of one margin sums by features as they are go there from buffers of their
// own, those of two shards under one node together, whose sums are made in the same two
// again and again, which so stay in the cache.
type wideWork struct {
	ladder
	rooms   [2][]float64 // sums of the shard that waits, and of that at hand; else zeros
	begun   bool         // there may be others in the room of the shard at hand
	waits   bool         // the first of two shards for the second
	waiting shardSums    // it
}

// shardSums are what a shard comes to besides sums by features.
type shardSums struct {
	number       uint32
	loss, slopes float64
}

// roomOf returns the buffer for the sums of a shard, of zeros: for all of them, or with
// unscaled for those by features as they are.
func (e *evaluator) roomOf(s *shardRows) (room []float64, unscaled bool) {
	w := &e.wide
	if e.k > 1 || e.centred {
		room = w.meet(uint32(s.number), 1+e.parameters())
		clear(room)
		return room, false
	}
	if w.rooms[0] == nil {
		w.rooms[0], w.rooms[1] = make([]float64, e.d), make([]float64, e.d)
	}
	if w.waits && w.waiting.number^uint32(s.number) != 1 {
		e.climb()
	}
	room = w.at()
	if w.begun { // a pass ended early
		clear(room)
	}
	w.begun = true
	return room, true
}

// at returns the buffer of the shard at hand.
func (w *wideWork) at() []float64 {
	if w.waits {
		return w.rooms[1]
	}
	return w.rooms[0]
}

// leave takes what a shard has come to from its buffer to the ladder, with what waits for
// it, or has it wait for the next.
func (e *evaluator) leave(s *shardRows, loss float64) {
	w := &e.wide
	own := shardSums{uint32(s.number), loss, e.sums[0]}
	w.begun = false
	if !w.waits {
		w.waits, w.waiting = true, own
		return
	}
	loss, slopes := w.waiting.loss+own.loss, w.waiting.slopes+own.slopes
	if left := w.beside(w.waiting.number); left != nil {
		kernel.DrainPairOnto(left[1:1+e.d], w.rooms[0], w.rooms[1], e.inverse)
		if loss = left[0] + loss; e.intercept {
			slopes = left[1+e.d] + slopes
		}
		e.note(left, loss, slopes)
		return
	}
	to := w.meet(w.waiting.number, 1+e.parameters())
	kernel.DrainPair(to[1:1+e.d], w.rooms[0], w.rooms[1], e.inverse)
	e.note(to, loss, slopes)
}

// climb takes the shard that waits to the ladder alone.
func (e *evaluator) climb() {
	w := &e.wide
	to := w.meet(w.waiting.number, 1+e.parameters())
	kernel.Drain(to[1:1+e.d], w.rooms[0], e.inverse)
	e.note(to, w.waiting.loss, w.waiting.slopes)
}

// note writes the sums that are not by features.
func (e *evaluator) note(to []float64, loss, slopes float64) {
	to[0] = loss
	if e.intercept {
		to[1+e.d] = slopes
	}
	e.wide.waits = false
}

// foldWide is fold of shards that are not narrow: of those that were kept since the last one.
func (e *evaluator) foldWide(out []float64) {
	if e.wide.waits {
		e.climb()
	}
	copy(out, e.wide.total())
	positiveZeros(out) // where all parts are −0
}

// fold is Fold of optim.Evaluator.
func (e *evaluator) fold(shards shared.Range, out []float64) error {
	if e.folds {
		e.foldNarrow(shards, out)
	} else {
		e.foldWide(out)
	}
	return nil
}
