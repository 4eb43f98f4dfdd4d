package objective

import (
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// foldStack adds up the buffers of shards in the order of the canonical tree. Shards are pushed
// in ascending order. The stack has the sums of the complete subtrees whose right sibling is
// not complete yet. Buffers above the top are reused for later shards.
type foldStack struct {
	depth int
	first [24]uint32 // first shard of each subtree
	parts [][]float64
}

// push adds a shard, which must have a larger number than all earlier shards. It first adds up
// the subtrees on the stack whose common node is complete, because that node contains neither
// this shard nor a later one. It returns a buffer of the given length, to which the caller
// writes the sums of the shard.
func (l *foldStack) push(shard uint32, length int) []float64 {
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

// sibling returns the buffer on top of the stack if it belongs to the left sibling of a pair of
// shards, and otherwise nil. pair is the number of the first shard of the pair. The caller adds
// the sums of the pair to that buffer instead of pushing them.
func (l *foldStack) sibling(pair uint32) []float64 {
	if l.depth == 0 || l.first[l.depth-1]^pair > 3 {
		return nil
	}
	return l.parts[l.depth-1]
}

// total returns the sum of all shards, or nil if there were none, and empties the stack.
func (l *foldStack) total() []float64 {
	if l.depth == 0 {
		return nil
	}
	for ; l.depth > 1; l.depth-- {
		kernel.AddTo(l.parts[l.depth-2], l.parts[l.depth-1])
	}
	l.depth = 0
	return l.parts[0]
}

// wideWork adds up the sums of shards that are not narrow. Such a shard has a buffer for all
// parameters on the stack. With one margin, the sums of two neighbouring shards, by unscaled
// feature, are first computed in two other buffers, which stay in the cache. The sums of both
// shards are then added to the stack together.
type wideWork struct {
	foldStack
	buffers [2][]float64 // sums of the waiting shard, and of the current shard; zeros when not in use
	dirty   bool         // the buffer of the current shard may have sums of a pass that was interrupted
	waits   bool         // the sums of the first of two shards have been computed, and wait for the second shard
	waiting shardSums    // sums of the waiting shard
}

// shardSums has the number of a shard, and its sums except the sums by feature.
type shardSums struct {
	number       uint32
	loss, slopes float64
}

// bufferOf returns a buffer of zeros for the sums of a shard. If unscaled is true, the buffer
// has room only for the sums by unscaled feature.
func (e *evaluator) bufferOf(s *shardRows) (buffer []float64, unscaled bool) {
	w := &e.wide
	if e.k > 1 || e.centred {
		buffer = w.push(uint32(s.number), 1+e.parameters())
		clear(buffer)
		return buffer, false
	}
	if w.buffers[0] == nil {
		w.buffers[0], w.buffers[1] = make([]float64, e.d), make([]float64, e.d)
	}
	if w.waits && w.waiting.number^uint32(s.number) != 1 {
		e.pushWaiting()
	}
	buffer = w.current()
	if w.dirty {
		clear(buffer)
	}
	w.dirty = true
	return buffer, true
}

// current returns the buffer of the current shard.
func (w *wideWork) current() []float64 {
	if w.waits {
		return w.buffers[1]
	}
	return w.buffers[0]
}

// foldShard completes the current shard. If no shard waits, the current shard waits for the
// next one. Otherwise the sums of the waiting and of the current shard are added to the stack
// together.
func (e *evaluator) foldShard(s *shardRows, loss float64) {
	w := &e.wide
	own := shardSums{uint32(s.number), loss, e.sums[0]}
	w.dirty = false
	if !w.waits {
		w.waits, w.waiting = true, own
		return
	}
	loss, slopes := w.waiting.loss+own.loss, w.waiting.slopes+own.slopes
	if left := w.sibling(w.waiting.number); left != nil {
		kernel.DrainPairOnto(left[1:1+e.d], w.buffers[0], w.buffers[1], e.inverse)
		if loss = left[0] + loss; e.intercept {
			slopes = left[1+e.d] + slopes
		}
		e.setScalars(left, loss, slopes)
		return
	}
	to := w.push(w.waiting.number, 1+e.parameters())
	kernel.DrainPair(to[1:1+e.d], w.buffers[0], w.buffers[1], e.inverse)
	e.setScalars(to, loss, slopes)
}

// pushWaiting adds the sums of the waiting shard to the stack without a second shard.
func (e *evaluator) pushWaiting() {
	w := &e.wide
	to := w.push(w.waiting.number, 1+e.parameters())
	kernel.Drain(to[1:1+e.d], w.buffers[0], e.inverse)
	e.setScalars(to, w.waiting.loss, w.waiting.slopes)
}

// setScalars writes the loss and the sum of the slopes to a buffer of the stack. After the
// call, no shard waits.
func (e *evaluator) setScalars(to []float64, loss, slopes float64) {
	to[0] = loss
	if e.intercept {
		to[1+e.d] = slopes
	}
	e.wide.waits = false
}

// foldWide does what fold does, for shards that are not narrow. It adds up the sums of the
// shards that were evaluated since the last call of fold.
func (e *evaluator) foldWide(out []float64) {
	if e.wide.waits {
		e.pushWaiting()
	}
	copy(out, e.wide.total())
	positiveZeros(out) // a sum is −0 if all its terms are −0
}

// fold implements Fold of optim.Evaluator.
func (e *evaluator) fold(shards sharding.Range, out []float64) error {
	if e.folds {
		e.foldNarrow(shards, out)
	} else {
		e.foldWide(out)
	}
	return nil
}
