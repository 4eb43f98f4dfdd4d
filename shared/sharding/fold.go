package sharding

import "fmt"

// Entry is the folded value of all present shards below a node.
type Entry[T any] struct {
	Node  Node
	Value T
}

// Folder folds the values of a range r of shards up the aligned tree, depth first. So it holds
// at most 2·log2(r.Len()) + 2 values at any moment.
//
// The order of merges depends only on the tree and on which shards were pushed. A shard that
// was not pushed is left out; it does not count as zero. A parent of which only one child has a
// value takes that child's value unchanged.
//
// Only one goroutine at a time may use a Folder.
type Folder[T any] struct {
	merge func(left, right T) T
	done  func(T)

	within  Range
	cover   []Node // Cover(within)
	filling int    // cover[filling] is the node being filled
	next    int    // the smallest shard that may still be pushed

	// stack[:base] holds the finished entries, one per node of cover[:filling] that has a
	// value. stack[base:] holds subtrees of cover[filling] that wait for their right
	// neighbours. The number of these subtrees is bounded: each two neighbours on the stack
	// have a lowest common ancestor, whose level decreases strictly towards the top of the
	// stack.
	stack []Entry[T]
	base  int
}

// NewFolder returns a Folder for the shards of r. merge combines the values of two neighbouring
// subtrees; it may accumulate into left, and returns the result. If done is not nil, the Folder
// calls done(right) after each merge. The Folder no longer needs right then, so done may reuse
// its buffer.
func NewFolder[T any](r Range, merge func(left, right T) T, done func(T)) *Folder[T] {
	f := &Folder[T]{merge: merge, done: done}
	f.Reset(r)
	return f
}

// Reset drops all values, without calling done, and starts over with the shards of r. It
// allocates only if r needs a longer stack or cover than all earlier ranges.
func (f *Folder[T]) Reset(r Range) {
	clear(f.stack)
	f.stack = f.stack[:0]
	f.within = Range{max(r.Lo, 0), r.Hi}
	f.cover = AppendCover(f.cover[:0], f.within)
	f.filling, f.base, f.next = 0, 0, f.within.Lo
}

// Push adds the value of one shard. Shards must be pushed in increasing order and lie within
// the range of the Folder; otherwise Push panics.
func (f *Folder[T]) Push(shard int, v T) {
	if shard < f.next || shard >= f.within.Hi {
		panic(fmt.Sprintf("sharding: Folder.Push(%d): want a shard in [%d,%d), in increasing order and before Forest", shard, f.next, f.within.Hi))
	}
	f.next = shard + 1
	for f.cover[f.filling].Range().Hi <= shard {
		f.finish()
	}
	f.settle(shard)
	f.stack = append(f.stack, Entry[T]{Leaf(shard), v})
	f.settle(f.next)
}

// Forest ends the folding and returns one entry for each node of Cover(r) that has a value,
// left to right. The slice belongs to the Folder and is valid until Reset; the values belong to
// the caller.
func (f *Folder[T]) Forest() []Entry[T] {
	for f.filling < len(f.cover) {
		f.finish()
	}
	f.next = f.within.Hi
	return f.stack
}

// settle merges the two topmost subtrees as long as their lowest common ancestor ends at or
// before shard limit, because no further shard can lie below that node.
func (f *Folder[T]) settle(limit int) {
	for len(f.stack)-f.base >= 2 {
		a, b := f.stack[len(f.stack)-2].Node.lo(), f.stack[len(f.stack)-1].Node.lo()
		level := ancestorLevel(a, b)
		if (a>>level+1)<<level > limit {
			return
		}
		f.join()
	}
}

// finish completes cover[filling]: it merges the values on the stack above base into the node's
// entry.
func (f *Folder[T]) finish() {
	for len(f.stack)-f.base >= 2 {
		f.join()
	}
	if len(f.stack) > f.base {
		f.stack[f.base].Node = f.cover[f.filling]
		f.base++
	}
	f.filling++
}

// join merges the two topmost subtrees of the stack.
func (f *Folder[T]) join() {
	top := len(f.stack) - 1
	left, right := &f.stack[top-1], f.stack[top]
	level := ancestorLevel(left.Node.lo(), right.Node.lo())
	left.Node = Node{level, left.Node.lo() >> level}
	left.Value = f.merge(left.Value, right.Value)
	f.stack[top] = Entry[T]{}
	f.stack = f.stack[:top]
	if f.done != nil {
		f.done(right.Value)
	}
}

// MergeForests folds the forests of all subtasks, concatenated in shard order, up the tree over
// the given number of shards. The result equals the result of one Folder over all shards, for
// every split of the shards into subtasks. ok is false if there is no entry. The caller must
// not use the values of entries afterwards, because merge may accumulate into its left
// argument.
//
// If entries overlap, are out of order, or lie outside 0..shards-1, MergeForests returns an
// error and merges nothing.
func MergeForests[T any](shards int, entries []Entry[T], merge func(left, right T) T) (result T, ok bool, err error) {
	if err := ValidShards(shards); err != nil {
		return result, false, err
	}
	end := 0
	for i := range entries {
		if end, err = checkFollows(entries[i].Node, end, i); err != nil {
			return result, false, err
		}
		if end > shards {
			return result, false, fmt.Errorf("sharding: entry %d, node %v, covers %v, outside the %d shards", i, entries[i].Node, entries[i].Node.Range(), shards)
		}
	}
	if len(entries) == 0 {
		return result, false, nil
	}
	var s schedule
	step := func(left, right int) {
		entries[left].Value = merge(entries[left].Value, entries[right].Value)
	}
	for i := range entries {
		s.push(i, entries[i].Node.lo(), step)
	}
	s.finish(step)
	return entries[0].Value, true, nil
}

// FoldStep is one merge of a fold: the slot at index Left accumulates the slot
// at index Right, which is not used again.
type FoldStep struct{ Left, Right int }

// FoldSchedule appends to dst the merges that fold a list of disjoint nodes, in order, up the
// aligned tree: bottom-up and depth first. After the last step the result is in slot 0. The
// schedule depends only on the nodes, so it can be applied to any number of buffers, or to each
// block of long buffers. MergeForests merges in the same order.
//
// If nodes overlap or are out of order, FoldSchedule returns dst unchanged and an error.
func FoldSchedule(nodes []Node, dst []FoldStep) ([]FoldStep, error) {
	end, err := 0, error(nil)
	for i, n := range nodes {
		if end, err = checkFollows(n, end, i); err != nil {
			return dst, err
		}
	}
	var s schedule
	step := func(left, right int) { dst = append(dst, FoldStep{left, right}) }
	for i, n := range nodes {
		s.push(i, n.lo(), step)
	}
	s.finish(step)
	return dst, nil
}

// checkFollows checks that n is a valid node that begins at or after shard end, and returns the
// shard at which n ends. i is the index of n in its list, for the error.
func checkFollows(n Node, end, i int) (int, error) {
	if !n.valid() {
		return end, fmt.Errorf("sharding: entry %d: %v is not a node of a tree over shards", i, n)
	}
	r := n.Range()
	if r.Lo < end {
		return end, fmt.Errorf("sharding: entry %d, node %v, begins at shard %d, but the entries before it reach to shard %d: want them disjoint and in order", i, n, r.Lo, end)
	}
	return r.Hi, nil
}

// schedule orders the merges of a sequence of disjoint subtrees. It keeps a stack of the
// subtrees that still wait for their right neighbour. Each two neighbours on the stack have a
// lowest common ancestor, whose level decreases strictly towards the top. So maxLevel+2
// elements are enough.
type schedule struct {
	depth int
	slot  [maxLevel + 2]int // index of the subtree's value
	lo    [maxLevel + 2]int // first shard of the subtree
}

// push adds the subtree with index i, which begins at shard lo. Before that it merges the
// topmost two subtrees as long as their lowest common ancestor is below the lowest common
// ancestor of the topmost and the new subtree.
func (s *schedule) push(i, lo int, step func(left, right int)) {
	for s.depth >= 2 && ancestorLevel(s.lo[s.depth-2], s.lo[s.depth-1]) < ancestorLevel(s.lo[s.depth-1], lo) {
		s.join(step)
	}
	s.slot[s.depth], s.lo[s.depth] = i, lo
	s.depth++
}

// finish merges all remaining subtrees.
func (s *schedule) finish(step func(left, right int)) {
	for s.depth >= 2 {
		s.join(step)
	}
}

func (s *schedule) join(step func(left, right int)) {
	s.depth--
	step(s.slot[s.depth-1], s.slot[s.depth])
}
