package grow

import "math"

// node is a node of a growing tree. Everything but rows is the same on every subtask, and
// but sums, which are those of the features that the subtask looks at.
type node struct {
	parent int32
	left   int32 // number of the left child, which the right one follows; 0 at leaves
	depth  int32
	// path is 1 for the root, 2i and 2i+1 for the children of i, modulo 2^64.
	path uint64
	// The subtask's rows are job.rows[first:first+rows]; count are those of all subtasks.
	first, rows int
	count       int64
	squares     int64   // g²/h of these rows, where categories are learnt
	lo, hi      float64 // bounds of its value
	worth, gain float64
	split       split   // the best, if one was found
	open        bool    // it may be split, and was searched
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

	rows   []int32 // of the subtask in the bag, by node; nil where all are, in order
	bagged bool    // rows were given
	listed bool    // rows are listed, those of each node together

	// Leaf by leaf: what waits for its turn, split or open, and how many had theirs.
	queue Queue[int32]
	turns int
	last  bool // all splits of the tree are made

	draws    draws
	features []int32   // that the tree looks at
	levels   [][]int32 // that each level looks at; nil where all of them

	grown grown
}

// takeTurns gives the leaves that are split already their turns, as long as there are leaves
// left. What waits is then headed by one that is still to be split.
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

// before tells which of two open leaves is split first: that of larger gain, then the one
// further up, then further left.
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
	for a.parent != b.parent { // the paths of more than 64 splits end alike
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

// list returns the subtask's rows of a node, and whether they are listed.
func (j *job) list(n int32) []int32 {
	v := &j.nodes[n]
	return j.rows[v.first : v.first+v.rows]
}

// splits bounds the splits that the subtree of an open leaf may come to have.
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

// follow adds the children of a node that was split, as far as they are or may be split.
func (j *job) follow(q *Queue[int32], n int32) {
	left := j.nodes[n].left
	for c := left; c <= left+1; c++ {
		if v := &j.nodes[c]; v.left != 0 || v.open {
			q.Push(c)
		}
	}
}
