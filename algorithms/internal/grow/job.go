package grow

import "math"

// node is a node of a growing tree. All fields are the same on every subtask, except first and
// rows, and sums, which are over the features that the subtask owns.
type node struct {
	parent int32
	left   int32 // number of the left child; the right one is left+1; 0 at leaves
	depth  int32
	// path is 1 for the root, 2i and 2i+1 for the children of i, modulo 2^64.
	path uint64
	// The subtask's rows are job.rows[first:first+rows]; count is the number of rows of all
	// subtasks.
	first, rows int
	count       int64
	squares     int64   // g²/h of these rows, where categories are learnt
	lo, hi      float64 // bounds of its value
	worth, gain float64
	split       split   // the best split, if one was found
	open        bool    // the node was searched and may be split
	sums        []int64 // nil where they are not kept
}

// job is a growing tree.
type job struct {
	number int // within the ensemble
	target Target
	unit   scale // of its sums
	nodes  []node
	totals []int64 // width sums of each node
	leaves int

	rows   []int32 // rows of the subtask in the bag, by node; nil: all rows, in order
	bagged bool    // SetRows was called
	listed bool    // rows is set, grouped by node

	// Leaf by leaf: the nodes that wait for their turn, split or open, and the number of turns
	// so far.
	queue Queue[int32]
	turns int
	last  bool // all splits of the tree are made

	draws    draws
	features []int32   // of the tree
	levels   [][]int32 // of each level; nil: those of the tree

	grown grown
}

// takeTurns gives the nodes at the head of the queue that are split already their turns, as
// long as the tree may have more leaves. Then the head of the queue, if there is one, is still
// to be split.
func (j *job) takeTurns(maxLeaves int) {
	q := &j.queue
	if len(q.Nodes) == 0 && j.turns == 0 && (j.nodes[0].open || j.nodes[0].left != 0) {
		q.Push(0)
	}
	for len(q.Nodes) > 0 && j.turns < maxLeaves-1 && j.nodes[q.Nodes[0]].left != 0 {
		j.follow(q, q.Pop())
		j.turns++
	}
}

// newJob returns a job without a tree.
func newJob() *job {
	j := &job{}
	j.queue.Before = func(x, y *int32) bool { return j.before(*x, *y) }
	return j
}

// before tells whether x is split before y: the one of larger gain first, then the one further
// up, then the one further left.
func (j *job) before(x, y int32) bool {
	a, b := &j.nodes[x], &j.nodes[y]
	switch {
	case a.gain != b.gain:
		return a.gain > b.gain
	case a.depth != b.depth:
		return a.depth < b.depth
	case a.path != b.path:
		return a.path < b.path
	}
	for a.parent != b.parent { // paths of more than 64 splits may be equal modulo 2^64
		x, y = a.parent, b.parent
		a, b = &j.nodes[x], &j.nodes[y]
	}
	return x < y
}

// add appends a node and returns its number.
func (j *job) add(parent int32, depth int32, path uint64, width int) int32 {
	n := len(j.nodes)
	if n < cap(j.nodes) {
		j.nodes = j.nodes[:n+1]
		left, set := j.nodes[n].split.left, j.nodes[n].split.set
		j.nodes[n] = node{}
		j.nodes[n].split.left, j.nodes[n].split.set = left, set
	} else {
		j.nodes = append(j.nodes, node{})
	}
	for len(j.totals) < (n+1)*width {
		j.totals = append(j.totals, 0)
	}
	v := &j.nodes[n]
	v.parent, v.depth, v.path = parent, depth, path
	v.lo, v.hi = math.Inf(-1), math.Inf(1)
	return int32(n)
}

// total returns the sums of a node.
func (j *job) total(n int32, width int) []int64 { return j.totals[int(n)*width:][:width] }

// list returns the subtask's rows of a node, which must be listed.
func (j *job) list(n int32) []int32 {
	v := &j.nodes[n]
	return j.rows[v.first : v.first+v.rows]
}

// splits returns an upper bound of the splits in the future subtree of an open leaf.
func (j *job) splits(n int32, p *Params) int64 {
	v := &j.nodes[n]
	most := v.count/int64(p.minRows()) - 1
	if p.MaxDepth >= 0 {
		if left := p.MaxDepth - int(v.depth); left < 62 {
			most = min(most, 1<<left-1)
		}
	}
	return max(most, 1)
}

// follow pushes the children of a split node that are split or open.
func (j *job) follow(q *Queue[int32], n int32) {
	left := j.nodes[n].left
	for c := left; c <= left+1; c++ {
		if v := &j.nodes[c]; v.left != 0 || v.open {
			q.Push(c)
		}
	}
}
