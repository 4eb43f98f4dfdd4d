package grow

import "math"

// node is a node of a growing tree. All fields are the same on every subtask, except first,
// rows and sums.
type node struct {
	parent int32
	left   int32 // index of the left child, or 0 for a leaf; the right child is left+1
	depth  int32
	// path identifies the path from the root: it is 1 for the root, and 2i and 2i+1 for the
	// children of i, modulo 2^64.
	path uint64
	// The subtask's rows in the node are job.rows[first:first+rows]. count is the number of
	// rows of the node on all subtasks.
	first, rows int
	count       int64
	squares     int64   // sum of g²/h over the node's rows on all subtasks; set if State.learns
	lo, hi      float64 // bounds of the node's value
	worth, gain float64
	split       split   // the best split, if one was found
	open        bool    // whether the node is a leaf whose best split was found
	sums        []int64 // histogram of the features that the subtask owns; nil if it is not kept
}

// job is a growing tree.
type job struct {
	number int // number of the tree within the ensemble
	target Target
	unit   scale // units of the integers in totals and node.sums
	nodes  []node
	totals []int64 // the sums of each node over its rows, State.width words per node
	leaves int

	rows   []int32 // the subtask's rows in the bag; grouped by node if listed
	bagged bool    // whether SetRows was called
	listed bool    // whether rows is set and grouped by node

	// Growth leaf by leaf splits one leaf per turn, in the order of the queue. queue has the
	// nodes whose turn has not come; some of them may have been split ahead of their turn.
	// turns is the number of turns so far. last is set once every split of the tree has been
	// made or will be made by the current pass.
	queue Queue[int32]
	turns int
	last  bool

	draws    draws
	features []int32   // features that were drawn for the tree
	levels   [][]int32 // features that were drawn for each level; empty if all levels have the tree's features

	grown grown
}

// takeTurns takes nodes from the head of the queue while they have already been split and the
// tree may have more leaves. For each it counts a turn and pushes the children.
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

// newJob returns a job whose tree has no nodes yet.
func newJob() *job {
	j := &job{}
	j.queue.Before = func(x, y *int32) bool { return j.before(*x, *y) }
	return j
}

// before reports whether node x is split before node y. The node with the larger gain comes
// first. Of nodes with the same gain, the node with the smaller depth comes first; of nodes at
// the same depth, the leftmost one.
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

// total returns the sums over the rows of node n.
func (j *job) total(n int32, width int) []int64 { return j.totals[int(n)*width:][:width] }

// list returns the subtask's rows of node n. The rows of the job must be listed.
func (j *job) list(n int32) []int32 {
	v := &j.nodes[n]
	return j.rows[v.first : v.first+v.rows]
}

// splits returns an upper bound of the number of splits in the future subtree of open leaf n.
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

// follow pushes to q those children of the split node n that are split or open.
func (j *job) follow(q *Queue[int32], n int32) {
	left := j.nodes[n].left
	for c := left; c <= left+1; c++ {
		if v := &j.nodes[c]; v.left != 0 || v.open {
			q.Push(c)
		}
	}
}
