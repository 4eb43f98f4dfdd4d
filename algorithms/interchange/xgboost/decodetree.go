package xgboost

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// nodeArrays has the arrays that a file has for a tree, with an element for each node.
type nodeArrays struct {
	at                               *node
	left, right, feature             []float64
	value, gain, cover               []float64
	condition, defaultLeft, category []float64
	// sets has, for each categorical node, the index of its first category and the number of
	// its categories.
	sets       map[int][2]int
	categories []float64
}

// scalar refuses trees with vectors in their leaves. One such tree is a whole round, so the
// number of trees would be wrong.
func (r *reader) scalar(list *node, trees []any) {
	for i := range trees {
		n := &node{up: list, index: i, value: trees[i]}
		param := n.find("tree_param")
		if param == nil {
			continue // the error is reported when the tree is read
		}
		if leaf := param.find("size_leaf_vector"); leaf != nil && r.count(leaf, math.MaxInt32) > 1 {
			r.fail(n, "its leaves are vectors (multi_strategy multi_output_tree), which are not read: train with one_output_per_tree")
			return
		}
	}
}

// tree reads one tree into t.
func (r *reader) tree(t *tree.Tree, n *node, e *tree.Ensemble) {
	param := r.member(n, "tree_param")
	nodes := r.count(r.member(param, "num_nodes"), math.MaxInt32)
	deleted := 0
	if d := param.find("num_deleted"); d != nil {
		deleted = r.count(d, math.MaxInt32)
	}
	a := &nodeArrays{
		at:          n,
		left:        r.integers(r.member(n, "left_children"), nodes, -1, float64(nodes-1)),
		right:       r.integers(r.member(n, "right_children"), nodes, -1, float64(nodes-1)),
		feature:     r.integers(r.member(n, "split_indices"), nodes, math.MinInt32, math.MaxUint32),
		value:       r.numbers(r.member(n, "base_weights"), nodes),
		gain:        r.numbers(r.member(n, "loss_changes"), nodes),
		cover:       r.numbers(r.member(n, "sum_hessian"), nodes),
		condition:   r.numbers(r.member(n, "split_conditions"), nodes),
		defaultLeft: r.integers(r.member(n, "default_left"), nodes, 0, 1),
	}
	r.numbers(r.member(n, "parents"), nodes)
	if n.find("split_type") != nil {
		r.sets(a, nodes)
	}
	if r.err == nil && nodes == 0 {
		r.fail(n, "it has no nodes")
	}
	if r.err != nil {
		return
	}
	order := r.order(a, nodes, deleted)
	if r.err == nil {
		r.nodes(t, a, order, len(e.Features))
	}
}

// sets reads which nodes are categorical, and which categories are in their sets.
func (r *reader) sets(a *nodeArrays, nodes int) {
	n := a.at
	a.category = r.integers(r.member(n, "split_type"), nodes, 0, 1)
	a.categories = r.integers(r.member(n, "categories"), -1, 0, maxCategory-1)
	place := r.member(n, "categories_nodes")
	at := r.integers(place, -1, 0, float64(nodes-1))
	all := float64(len(a.categories))
	from := r.integers(r.member(n, "categories_segments"), len(at), 0, all)
	sizes := r.integers(r.member(n, "categories_sizes"), len(at), 1, all)
	if r.err != nil {
		return
	}
	a.sets = make(map[int][2]int, len(at))
	for i, v := range at {
		if a.category[int(v)] == 0 || i > 0 && v <= at[i-1] {
			r.fail(place, "node %.0f is not categorical, or not after those before", v)
			return
		}
		if from[i]+sizes[i] > all {
			r.fail(place, "the categories of node %.0f are %.0f to %.0f of %.0f", v, from[i], from[i]+sizes[i], all)
			return
		}
		a.sets[int(v)] = [2]int{int(from[i]), int(sizes[i])}
	}
}

// order returns the numbers of the reachable nodes, parents before children. It keeps the order
// of the file, on which the numbers of leaves depend, if the file has parents before children.
// Otherwise, which is possible after pruning, it orders the nodes by depth.
func (r *reader) order(a *nodeArrays, nodes, deleted int) []int32 {
	seen := make([]bool, nodes)
	seen[0] = true
	order := append(make([]int32, 0, nodes), 0)
	sorted := true
	for at := 0; at < len(order); at++ {
		i := order[at]
		left, right := int32(a.left[i]), int32(a.right[i])
		if left < 0 && right < 0 {
			continue
		}
		for _, child := range [2]int32{left, right} {
			if child < 0 {
				r.fail(a.at, "node %d has one child", i)
				return nil
			}
			if seen[child] {
				r.fail(a.at, "node %d is a child of node %d, and has a parent already or is the root", child, i)
				return nil
			}
			seen[child] = true
			sorted = sorted && child > i
			order = append(order, child)
		}
	}
	if len(order)+deleted != nodes {
		r.fail(a.at, "it has %d nodes: %d can be reached and %d are deleted", nodes, len(order), deleted)
		return nil
	}
	if sorted {
		order = order[:0]
		for i, ok := range seen {
			if ok {
				order = append(order, int32(i))
			}
		}
	}
	return order
}

// nodes sets the nodes of t in the given order.
func (r *reader) nodes(t *tree.Tree, a *nodeArrays, order []int32, features int) {
	number := make([]int32, len(a.left)) // for each node of the file, its number among the kept nodes
	for i, from := range order {
		number[from] = int32(i)
	}
	t.Nodes = make([]tree.Node, len(order))
	for i, from := range order {
		n := &t.Nodes[i]
		// Values that are not finite are replaced, because predictions do not depend on these
		// fields.
		n.Gain, n.Cover = finite(a.gain[from]), max(0, finite(a.cover[from]))
		if a.left[from] < 0 {
			n.Value = a.condition[from]
			continue
		}
		n.Value = finite(a.value[from])
		n.Left, n.Right = number[int(a.left[from])], number[int(a.right[from])]
		if f := a.feature[from]; f < 0 || f >= float64(features) {
			r.fail(a.at, "node %d splits on feature %.0f: there are %d", from, f, features)
			return
		}
		n.Feature = int32(a.feature[from])
		if a.defaultLeft[from] != 0 {
			n.Flags |= tree.DefaultLeft
		}
		if a.category == nil || a.category[from] == 0 {
			if n.Threshold = a.condition[from]; math.IsNaN(n.Threshold) {
				r.fail(a.at, "the split condition of node %d is NaN", from)
				return
			}
			continue
		}
		set, ok := a.sets[int(from)]
		if !ok {
			r.fail(a.at, "node %d is categorical and has no categories", from)
			return
		}
		n.Flags |= tree.Categorical | tree.SetRight
		r.set(t, n, a.at, a.categories[set[0]:set[0]+set[1]])
	}
}

// set sets the set of a node. A few bytes of the file can name a large category, whose set
// takes up to 2 MiB. So the total number of words of all sets is bounded in terms of the size
// of the file.
func (r *reader) set(t *tree.Tree, n *tree.Node, at *node, categories []float64) {
	most := 0
	for _, c := range categories {
		most = max(most, int(c))
	}
	words := most/32 + 1
	if r.words -= words; r.words < 0 {
		r.fail(at, "the largest categories of the nodes are too large for a file of this size")
		return
	}
	n.Set, n.SetWords = int32(len(t.Sets)), int32(words)
	t.Sets = append(t.Sets, make([]uint32, words)...)
	for _, c := range categories {
		t.Sets[int(n.Set)+int(c)/32] |= 1 << (int(c) % 32)
	}
}

// finite returns v, or 0 if v is infinite or NaN.
func finite(v float64) float64 {
	if v-v != 0 {
		return 0
	}
	return v
}
