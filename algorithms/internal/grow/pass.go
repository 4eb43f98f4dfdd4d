package grow

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// A pass computes the histograms of some nodes, exchanges them by ReduceScatter, searches the
// best splits of these nodes, exchanges the splits by AllGather, splits nodes, and counts the
// rows of the children. Each step is a function, and subtasks communicate between the
// functions.

const (
	// passBytes is the largest size of the histograms of a pass. keptBytes is the largest size
	// of the histograms that are kept from pass to pass.
	passBytes = 128 << 20
	keptBytes = 1 << 30
)

// mostOf returns the number of nodes whose histograms fit in the given number of bytes, at
// least 1. It is the same on every subtask.
func (s *State) mostOf(bytes int) int {
	return max(1, bytes/max(1, 8*s.width*s.data.Layout.Slots))
}

// alone reports whether this is the only subtask.
func (s *State) alone() bool { return s.tasks == 1 }

// makeHistograms removes from pending as many nodes as a pass may have, and computes their
// histograms.
func (s *State) makeHistograms() {
	n := min(len(s.pending), s.mostOf(s.passBytes))
	s.building = append(s.building[:0], s.pending[:n]...)
	s.pending = slices.Delete(s.pending, 0, n)
	if s.alone() {
		for _, b := range s.building {
			j := s.jobs[b.job]
			v := &j.nodes[b.node]
			v.sums = s.sumsOf()
			s.histogram(j, b.node, v.sums, func(int) int { return 0 })
		}
		return
	}
	s.buffers.sums = kernel.Sized(s.buffers.sums, n*s.data.Layout.Slots*s.width)
	for m, b := range s.building {
		s.histogram(s.jobs[b.job], b.node, s.buffers.sums, func(owner int) int {
			return s.slots.place(owner, 0, m, n) * s.width
		})
	}
	s.buffers.blocks = kernel.Sized(s.buffers.blocks, s.tasks)
	for o := range s.tasks {
		s.buffers.blocks[o] = n * s.slots.size(o) * s.width
	}
}

// takeSums sets the histograms of the nodes in s.building. block has their histograms for the
// features that the subtask owns, summed over all subtasks.
func (s *State) takeSums(block []int64) {
	size := s.slots.size(s.task) * s.width
	for m, b := range s.building {
		v := &s.jobs[b.job].nodes[b.node]
		v.sums = s.sumsOf()
		copy(v.sums, block[m*size:(m+1)*size])
	}
}

// lookFor finds the best splits, among the features that the subtask owns, of the nodes whose
// histograms were computed and of their siblings. It appends the records of the splits to
// buffers.found.
func (s *State) lookFor() {
	s.buffers.found = s.buffers.found[:0]
	for _, b := range s.building {
		j := s.jobs[b.job]
		if b.sibling >= 0 {
			s.subtract(j, b)
		}
		if b.search {
			s.lookAt(j, b.node)
		}
		if b.sibling >= 0 {
			s.lookAt(j, b.sibling)
		}
	}
}

// subtract computes the histogram of b.sibling: the histogram of the parent minus the histogram
// of b.node. It overwrites the histogram of the parent.
func (s *State) subtract(j *job, b build) {
	own, other := &j.nodes[b.node], &j.nodes[b.sibling]
	parent := &j.nodes[own.parent]
	other.sums, parent.sums = parent.sums, nil
	kernel.SubtractIntegers(other.sums, own.sums)
}

// lookAt finds the best split of node n and appends its record to buffers.found.
func (s *State) lookAt(j *job, n int32) {
	v := &j.nodes[n]
	s.search.begin(s.scorerOf(j, v), j.total(n, s.width))
	if s.search.rows = v.count; s.learns {
		s.search.squares = float64(v.squares) / j.target.bySquare
	}
	v.worth = s.search.worth
	lo := s.slots.cut[s.task]
	for _, f := range s.featuresOf(j, n) {
		feature := &s.data.Layout.Features[f]
		if feature.Slot < lo || feature.Slot >= s.slots.cut[s.task+1] {
			continue
		}
		at := (feature.Slot - lo) * s.width
		s.search.feature(f, v.sums[at:at+feature.Stored()*s.width])
	}
	s.buffers.found = appendRecord(s.buffers.found, &s.search.best, s.search.words, s.width)
}

// recordWords is the number of words of a split's record without the set and the sums.
const recordWords = 4

// appendRecord appends the record of the split b to out. In the record, the set has the given
// number of words, and the sums have width words.
func appendRecord(out []int64, b *split, words, width int) []int64 {
	if !b.found {
		for range recordWords + words + width {
			out = append(out, 0)
		}
		return out
	}
	flags := int64(1)
	if b.missingLeft {
		flags |= 2
	}
	if b.categorical {
		flags |= 4
	}
	out = append(out, flags, int64(b.feature), int64(b.place), int64(math.Float64bits(b.score)))
	if b.categorical {
		out = append(out, b.set[:words]...)
	} else {
		for range words {
			out = append(out, 0)
		}
	}
	return append(out, b.left[:width]...)
}

// readRecord returns the split whose record is the slice in. The split's set and sums share the
// memory of the record.
func readRecord(in []int64, words, width int) (b split) {
	b.found = in[0]&1 == 1
	b.missingLeft, b.categorical = in[0]&2 != 0, in[0]&4 != 0
	b.feature, b.place = int32(in[1]), int32(in[2])
	b.score = math.Float64frombits(uint64(in[3]))
	b.set = in[recordWords:][:words]
	b.left = in[recordWords+words:][:width]
	return b
}

// choose sets the split of each node that was searched to the best of the splits that the
// subtasks found. records has the records of all subtasks, in the order of the subtasks.
func (s *State) choose(records []int64) {
	size := recordWords + s.search.words + s.width
	n := len(records) / size / s.tasks
	i := 0
	take := func(j *job, number int32) {
		best := split{}
		for o := range s.tasks {
			if r := readRecord(records[(o*n+i)*size:][:size], s.search.words, s.width); r.better(&best) {
				best = r
			}
		}
		i++
		v := &j.nodes[number]
		if best.found {
			best.copyTo(&v.split)
			v.gain, v.open = best.score-v.worth, true
			if s.kept++; s.kept > s.mostOf(s.keptBytes) {
				s.release(v) // without the parent's histogram, both children's histograms are computed from rows
			}
			return
		}
		s.release(v)
	}
	for _, b := range s.building {
		j := s.jobs[b.job]
		if b.search {
			take(j, b.node)
		} else {
			s.release(&j.nodes[b.node])
		}
		if b.sibling >= 0 {
			take(j, b.sibling)
		}
	}
	s.building = s.building[:0]
}

// close marks an open leaf as one that will not be split.
func (s *State) close(v *node) {
	v.open = false
	s.kept--
	s.release(v)
}

// splitNodes splits the open leaves that pick chooses, if all leaves have been searched, and
// counts the subtask's rows of their left children. In the first pass it instead computes the
// sums of the roots.
func (s *State) splitNodes() error {
	s.splits, s.buffers.counts = s.splits[:0], s.buffers.counts[:0]
	if s.phase == starting {
		return s.sumRoots()
	}
	if len(s.pending) > 0 {
		return nil
	}
	for k, j := range s.active() {
		s.pick(j)
		for _, n := range s.picked {
			s.split(j, n)
			s.splits = append(s.splits, task{int32(k), n})
			v := &j.nodes[n]
			left := &j.nodes[v.left]
			s.buffers.counts = append(s.buffers.counts, int64(left.rows))
			if s.learns {
				s.buffers.counts = append(s.buffers.counts, j.target.sumSquares(j.list(v.left)))
			}
		}
	}
	return nil
}

// pick lists, in s.picked, the open leaves of a job that are split next.
func (s *State) pick(j *job) {
	s.picked = s.picked[:0]
	if s.p.LeafWise && s.p.MaxLeaves > 0 {
		s.pickFirst(j)
		return
	}
	for n := range j.nodes {
		if j.nodes[n].open {
			s.picked = append(s.picked, int32(n))
		}
	}
	left := s.p.MaxLeaves - j.leaves
	if s.p.MaxLeaves == 0 || len(s.picked) <= left {
		return
	}
	slices.SortFunc(s.picked, func(x, y int32) int {
		if j.before(x, y) {
			return -1
		}
		return 1
	})
	for _, n := range s.picked[left:] {
		s.close(&j.nodes[n])
	}
	s.picked = s.picked[:left]
	slices.Sort(s.picked)
}

// pickFirst picks leaves for a growth that splits one leaf at a time: it picks the leaf with
// the largest gain. It also picks the next leaves in the order of gains if they are certain to
// be split. A leaf is certain to be split if the tree stays within MaxLeaves even when the
// subtrees of all leaves before it become as large as possible. With several subtasks, each
// pass costs a round of communication. pickFirst then also speculates for a part of the
// remaining splits: it picks the leaves that would be split next if no child of an earlier leaf
// had a larger gain. The resulting tree is the same as without speculation: children are queued
// only when the turn of their parent has come, and splits whose turn never comes are undone
// (see numbering).
func (s *State) pickFirst(j *job) {
	j.takeTurns(s.p.MaxLeaves)
	budget := int64(s.p.MaxLeaves - 1 - j.turns)
	ahead := int64(0)
	if !s.alone() {
		ahead = min(budget/aheadShare, int64(s.mostOf(aheadBytes)))
	}
	q := Queue[int32]{append(s.looked[:0], j.queue.Nodes...), j.queue.Before}
	// need is the largest number of splits that may come before the split of the next leaf.
	// certain is the number of splits that are certain to be in the tree.
	need, certain := int64(0), int64(0)
	for turn := int64(0); len(q.Nodes) > 0 && (need < budget || turn < ahead); turn++ {
		if need < budget {
			certain++
		}
		n := q.Pop()
		if j.nodes[n].left != 0 {
			j.follow(&q, n)
			need++
			continue
		}
		s.picked = append(s.picked, n)
		need += j.splits(n, &s.p)
	}
	j.last = certain == budget
	s.looked = q.Nodes
	slices.Sort(s.picked)
}

const (
	// In a pass, at most 1/aheadShare of the remaining splits are made speculatively. More
	// speculation would mean fewer passes, but more splits that are undone.
	aheadShare = 4
	// aheadBytes is the largest total size of the histograms of a pass's speculative splits.
	// Larger histograms would cost more time than the saved passes.
	aheadBytes = 4 << 20
)

// split adds the children of node n and partitions its rows among them.
func (s *State) split(j *job, n int32) {
	s.listRows(j)
	v := &j.nodes[n]
	v.open = false
	left := j.add(n, v.depth+1, 2*v.path, s.width)
	right := j.add(n, v.depth+1, 2*v.path+1, s.width)
	v = &j.nodes[n]
	v.left = left
	j.leaves++
	l, r := &j.nodes[left], &j.nodes[right]
	copy(j.total(left, s.width), v.split.left)
	for k, all := range j.total(n, s.width) {
		j.total(right, s.width)[k] = all - v.split.left[k]
	}
	s.bound(j, v, l, r)
	rows := j.list(n)
	where := v.split.rule()
	l.first, l.rows = v.first, s.partition(&where, rows)
	r.first, r.rows = v.first+l.rows, v.rows-l.rows
}

// bound sets the bounds of the children's values under monotone constraints.
func (s *State) bound(j *job, v, l, r *node) {
	l.lo, l.hi, r.lo, r.hi = v.lo, v.hi, v.lo, v.hi
	if s.p.Monotone == nil || v.split.categorical {
		return
	}
	direction := s.p.Monotone[s.data.Layout.Features[v.split.feature].Number]
	if direction == 0 {
		return
	}
	sc := s.scorerOf(j, v)
	value := func(child *node, n int32) float64 {
		sums := j.total(n, s.width)
		return sc.value(float64(float64(sums[0])*j.unit.g), float64(float64(sums[1])*j.unit.h))
	}
	middle := (value(l, v.left) + value(r, v.left+1)) / 2
	if direction > 0 {
		l.hi, r.lo = middle, middle
	} else {
		l.lo, r.hi = middle, middle
	}
}

// counted sets the row counts of the children, and appends the histograms that must be computed
// to pending. The slice all has the counts of splitNodes, summed over all subtasks.
func (s *State) counted(all []int64) error {
	if s.phase == starting {
		return s.plantRoots(all)
	}
	for i, t := range s.splits {
		j := s.jobs[t.job]
		v := &j.nodes[t.node]
		l, r := &j.nodes[v.left], &j.nodes[v.left+1]
		if !s.learns {
			l.count, r.count = all[i], v.count-all[i]
			continue
		}
		l.count, r.count = all[2*i], v.count-all[2*i]
		l.squares, r.squares = all[2*i+1], v.squares-all[2*i+1]
	}
	for _, t := range s.splits {
		s.plan(t)
	}
	s.endIfDone()
	return nil
}

// endIfDone ends the growth if no node can be split any more.
func (s *State) endIfDone() {
	if len(s.pending) > 0 {
		return
	}
	for _, j := range s.active() {
		if s.p.LeafWise && s.p.MaxLeaves > 0 {
			if j.takeTurns(s.p.MaxLeaves); j.turns < s.p.MaxLeaves-1 && len(j.queue.Nodes) > 0 {
				return
			}
			continue
		}
		if s.p.MaxLeaves > 0 && j.leaves >= s.p.MaxLeaves {
			continue
		}
		for n := range j.nodes {
			if j.nodes[n].open {
				return
			}
		}
	}
	s.phase = grownUp
}

// plan appends to pending the histograms that must be computed for the children of a node. If
// the child with more rows must be searched and the parent's histogram was kept, only the
// histogram of the child with fewer rows is computed from rows.
func (s *State) plan(t task) {
	j := s.jobs[t.job]
	v := &j.nodes[t.node]
	small, large := v.left, v.left+1
	if j.nodes[large].count < j.nodes[small].count {
		small, large = large, small
	}
	lookSmall, lookLarge := s.worthLooking(j, small), s.worthLooking(j, large)
	s.kept--
	if lookLarge && v.sums != nil {
		s.pending = append(s.pending, build{task{t.job, small}, large, lookSmall})
		return
	}
	s.release(v)
	if lookLarge {
		s.pending = append(s.pending, build{task{t.job, large}, -1, true})
	}
	if lookSmall {
		s.pending = append(s.pending, build{task{t.job, small}, -1, true})
	}
}

// worthLooking reports whether the limits in Params allow a split of the new leaf n.
func (s *State) worthLooking(j *job, n int32) bool {
	v := &j.nodes[n]
	if s.p.MaxDepth >= 0 && int(v.depth) >= s.p.MaxDepth || v.count < 2*int64(s.p.minRows()) {
		return false
	}
	if s.p.LeafWise && j.last || !s.p.LeafWise && s.p.MaxLeaves > 0 && j.leaves >= s.p.MaxLeaves {
		return false
	}
	return true
}
