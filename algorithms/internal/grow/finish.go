package grow

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// grown holds a finished tree and the rules that route binned rows through it. It is the same
// on every subtask.
type grown struct {
	// Tree has the splits, the values of all nodes, gains, covers and counts. Its weight is 1
	// and its output is 0; the caller may change both.
	Tree tree.Tree

	rules   []rule
	numbers []int32 // numbers[i] is the index in job.nodes of the node i of Tree
}

// sumLeaves computes the sums of the fine pairs of the subtask's rows in each leaf. It skips
// trees whose histograms use fine pairs, because growth has already computed their leaf sums.
func (s *State) sumLeaves() {
	out := s.buffers.leaves[:0]
	for _, j := range s.active() {
		if j.target.isWide {
			continue
		}
		for n := range j.nodes {
			if j.nodes[n].left != 0 {
				continue
			}
			s.listRows(j)
			g, h := j.target.sumPairs(j.list(int32(n)))
			out = append(out, g, h)
		}
	}
	s.buffers.leaves = out
}

// finish builds the trees of the batch. The slice all has the results of sumLeaves, summed over
// all subtasks.
func (s *State) finish(all []int64) {
	for _, j := range s.active() {
		unit := j.unit
		if !j.target.isWide {
			all = s.takeLeaves(j, all)
			unit = j.target.fine
		}
		s.make(j, unit)
		for n := range j.nodes {
			s.release(&j.nodes[n])
		}
	}
}

// takeLeaves replaces the sums of leaves by sums of fine pairs, which are the first elements of
// the slice all. It recomputes the sums of inner nodes from the sums of leaves, and returns the
// rest of the slice all.
func (s *State) takeLeaves(j *job, all []int64) []int64 {
	for n := range j.nodes {
		sums := j.total(int32(n), s.width)
		clear(sums[:2])
		if j.nodes[n].left == 0 {
			copy(sums[:2], all[:2])
			all = all[2:]
		}
	}
	for n := len(j.nodes) - 1; n > 0; n-- {
		own, up := j.total(int32(n), s.width), j.total(j.nodes[n].parent, s.width)
		up[0] += own[0]
		up[1] += own[1]
	}
	return all
}

// make builds the tree of a job. unit has the units of the sums in job.totals.
func (s *State) make(j *job, unit scale) {
	g := &j.grown
	g.numbers = s.numbering(j, g.numbers[:0])
	place := make([]int32, len(j.nodes))
	for i, n := range g.numbers {
		place[n] = int32(i)
	}
	// The memory of the nodes is new, as the caller may keep the tree after the batch.
	g.Tree = tree.Tree{Nodes: make([]tree.Node, len(g.numbers)), Weight: 1}
	g.rules = make([]rule, len(g.numbers))
	for i, n := range g.numbers {
		v, to := &j.nodes[n], &g.Tree.Nodes[i]
		sc := newScorer(&s.p, unit, s.width)
		sc.lo, sc.hi = v.lo, v.hi
		sums := j.total(n, s.width)
		to.Count, to.Cover = v.count, sc.weight(sums)
		to.Value = sc.value(float64(float64(sums[0])*unit.g), float64(float64(sums[1])*unit.h)) + 0 // adding 0 turns −0 into +0
		if v.left == 0 {
			continue
		}
		to.Left, to.Right, to.Gain = place[v.left], place[v.left+1], v.gain
		g.rules[i] = v.split.rule()
		g.rules[i].set = nil
		if v.split.categorical {
			g.rules[i].set = slices.Clone(v.split.set)
		}
		s.describe(to, &g.Tree, &v.split)
	}
}

// describe sets the fields of the node to, which belongs to the tree t, that describe the split
// p.
func (s *State) describe(to *tree.Node, t *tree.Tree, p *split) {
	f := &s.data.Layout.Features[p.feature]
	to.Feature = int32(f.Number)
	if p.missingLeft {
		to.Flags |= tree.DefaultLeft
	}
	switch {
	case p.categorical:
		r := p.rule()
		words, setRight := f.Set(func(bin int) bool { return r.left(bin, f.Bins) }, p.missingLeft)
		to.Flags |= tree.Categorical
		if setRight {
			to.Flags |= tree.SetRight
		}
		to.Set, to.SetWords = int32(len(t.Sets)), int32(len(words))
		t.Sets = append(t.Sets, words...)
	case p.place < 0:
		to.Threshold = math.Inf(-1) // only missing values go left
	default:
		to.Threshold = float64(f.Cuts[p.place])
	}
}

// numbering appends to out the numbers of the job's nodes, in the order that the nodes have in
// the finished tree. Trees that grew level by level are listed level by level. In trees that
// grew leaf by leaf, pairs of children are in the order of the splits of their parents; for
// such trees, numbering also undoes speculative splits that are not part of the tree.
func (s *State) numbering(j *job, out []int32) []int32 {
	out = append(out, 0)
	if !s.p.LeafWise {
		for i := 0; i < len(out); i++ {
			if v := &j.nodes[out[i]]; v.left != 0 {
				out = append(out, v.left, v.left+1)
			}
		}
		return out
	}
	q, most := &j.queue, math.MaxInt
	if s.p.MaxLeaves > 0 {
		most = 2*s.p.MaxLeaves - 1
	}
	q.Nodes = q.Nodes[:0]
	for next := int32(0); ; next = q.Pop() {
		switch left := j.nodes[next].left; {
		case left != 0 && len(out) < most:
			out = append(out, left, left+1)
			j.follow(q, next)
		case left != 0:
			s.undo(j, next)
		}
		if len(q.Nodes) == 0 {
			return out
		}
	}
}

// undo turns node n into a leaf again, and merges its rows into ascending order.
func (s *State) undo(j *job, n int32) {
	v := &j.nodes[n]
	if v.left == 0 {
		return
	}
	s.undo(j, v.left)
	s.undo(j, v.left+1)
	rows := j.list(n)
	s.spare = append(s.spare[:0], rows...)
	cut := j.nodes[v.left].rows
	left, right := s.spare[:cut], s.spare[cut:]
	for i := range rows {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			rows[i], left = left[0], left[1:]
		} else {
			rows[i], right = right[0], right[1:]
		}
	}
	v.left = 0
}

// Tree returns tree k of the batch. The caller may change its weight, its output and the values
// of its nodes.
func (s *State) Tree(k int) *tree.Tree { return &s.active()[k].grown.Tree }

// EachLeaf calls f for each leaf of tree k. node is the index of the leaf in the tree, and rows
// has the subtask's rows in the bag that end in this leaf, in ascending order. f must not keep
// or modify rows.
func (s *State) EachLeaf(k int, f func(node int32, rows []int32)) {
	j := s.active()[k]
	s.listRows(j)
	for i, n := range j.grown.numbers {
		if j.nodes[n].left == 0 {
			f(int32(i), j.list(n))
		}
	}
}

// Leaves writes to out[r] the leaf of tree k in which row r of the subtask ends, also for rows
// outside of the bag. It returns out, which it reallocates if it is too short.
func (s *State) Leaves(k int, out []int32) []int32 {
	j := s.active()[k]
	out = kernel.Sized(out, s.data.Rows)
	if j.bagged {
		s.routed = kernel.Sized(s.routed, s.data.Rows)
		for i := range s.routed {
			s.routed[i] = int32(i)
		}
		s.spread(&j.grown, 0, s.routed, out)
		return out
	}
	s.EachLeaf(k, func(node int32, rows []int32) {
		for _, row := range rows {
			out[row] = node
		}
	})
	return out
}

// spread routes rows of the subtask from a node down to the leaves, and reorders rows. It
// partitions all rows by one split at a time. This reads columns sequentially and is faster
// than routing row by row.
func (s *State) spread(g *grown, node int32, rows, out []int32) {
	v := &g.Tree.Nodes[node]
	if v.Left == 0 {
		for _, row := range rows {
			out[row] = node
		}
		return
	}
	left := s.partition(&g.rules[node], rows)
	s.spread(g, v.Left, rows[:left], out)
	s.spread(g, v.Right, rows[left:], out)
}
