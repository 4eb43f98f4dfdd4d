package xgboost

import (
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// placed describes a tree of the file, which is a tree of the ensemble for one of its outputs.
// If field tree is nil, the tree of the file is a single leaf.
type placed struct {
	tree   *tree.Tree
	number int // number of the tree in the ensemble, for errors
	output int
	scale  float64 // factor by which leaf values are multiplied
	add    float64 // number that is added to each leaf value after scaling
}

// baseScore returns base_score, and for each output the rest of its base, which is added to
// leaf values.
func baseScore(e *tree.Ensemble, o objective) (float32, []float64) {
	base := e.Base[0]
	for _, b := range e.Base {
		if b != base {
			base = 0 // one base_score cannot represent different bases
		}
	}
	score, margin := o.link.score(base)
	rest := make([]float64, e.Outputs)
	for i, b := range e.Base {
		// Ignore a difference that would vanish in sums of float32.
		if d := b - margin; math.Abs(d) > 1e-7*max(1, math.Abs(b)) {
			rest[i] = d
		}
	}
	return score, rest
}

// place returns the trees in the order of XGBoost's rounds, and their weights, which are nil if
// all are 1. Within a round, the trees of an output are consecutive. Incomplete rounds are
// filled up with trees of a single leaf with the value 0. The trees of each output keep their
// order.
func (m *Model) place(rest []float64) ([]placed, []any, error) {
	e := m.Ensemble
	of := make([][]placed, e.Outputs)
	for i := range e.Trees {
		t := &e.Trees[i]
		first, last := int(t.Output), int(t.Output)
		if t.Values != nil {
			first, last = 0, e.Outputs-1
		}
		for o := first; o <= last; o++ {
			of[o] = append(of[o], placed{tree: t, number: i, output: o, scale: 1})
		}
	}
	most := 0
	for o := range of {
		if e.Average {
			for i := range of[o] {
				of[o][i].scale = 1 / float64(len(of[o]))
			}
		}
		of[o] = withRest(of[o], o, rest[o])
		most = max(most, len(of[o]))
	}
	parallel := m.parallel()
	if parallel > max(1, most) {
		return nil, nil, fmt.Errorf("a round has %d trees for each output, and there are %d", parallel, most)
	}
	rounds := (most + parallel - 1) / parallel
	if rounds*parallel > math.MaxInt32/e.Outputs {
		return nil, nil, fmt.Errorf("the file would have more than %d trees", math.MaxInt32)
	}
	var all []placed
	var weights []any
	dart := false
	for round := range rounds {
		for o := range of {
			for i := round * parallel; i < (round+1)*parallel; i++ {
				p := placed{output: o}
				if i < len(of[o]) {
					p = of[o][i]
				}
				weight := float32(1)
				if p.tree != nil {
					weight = float32(p.tree.Weight)
				}
				dart = dart || weight != 1
				all, weights = append(all, p), append(weights, weight)
			}
		}
	}
	if !dart {
		weights = nil
	}
	return all, weights, nil
}

// withRest adds rest, the rest of an output's base, to the leaves of the output's first tree
// whose weight is not close to 0. If there is no such tree, it appends one.
func withRest(list []placed, output int, rest float64) []placed {
	if rest == 0 {
		return list
	}
	for i := range list {
		// XGBoost multiplies leaf values by the weight.
		if w := list[i].tree.Weight; math.Abs(w) > 1e-3 {
			list[i].add = rest / w
			return list
		}
	}
	return append(list, placed{output: output, add: rest})
}

// arrays has the arrays that the file has for a tree.
type arrays struct {
	left, right, parent, feature []int32
	condition, weight            []float32
	gain, cover                  []float32
	defaultLeft, category        []uint8
	categories, nodes            []int32
	segments, sizes              []int64
}

// value returns a tree as a value of the file.
func (p *placed) value(id int, e *tree.Ensemble) (members, error) {
	nodes := []tree.Node{{}}
	if p.tree != nil {
		nodes = p.tree.Nodes
	}
	order := siblings(nodes)
	number := make([]int32, len(nodes)) // number in the file of each node
	for i, from := range order {
		number[from] = int32(i)
	}
	n := len(nodes)
	a := &arrays{
		left: make([]int32, n), right: make([]int32, n), parent: make([]int32, n), feature: make([]int32, n),
		condition: make([]float32, n), weight: make([]float32, n), gain: make([]float32, n), cover: make([]float32, n),
		defaultLeft: make([]uint8, n), category: make([]uint8, n),
	}
	a.parent[0] = noParent
	for i, from := range order {
		if err := p.node(a, i, int(from), number, e); err != nil {
			return nil, fmt.Errorf("tree %d: node %d: %w", p.number, from, err)
		}
	}
	return members{
		{"base_weights", a.weight},
		{"categories", a.categories},
		{"categories_nodes", a.nodes},
		{"categories_segments", a.segments},
		{"categories_sizes", a.sizes},
		{"default_left", a.defaultLeft},
		{"id", id},
		{"left_children", a.left},
		{"loss_changes", a.gain},
		{"parents", a.parent},
		{"right_children", a.right},
		{"split_conditions", a.condition},
		{"split_indices", a.feature},
		{"split_type", a.category},
		{"sum_hessian", a.cover},
		{"tree_param", members{
			{"num_deleted", "0"}, {"num_feature", strconv.Itoa(len(e.Features))},
			{"num_nodes", strconv.Itoa(n)}, {"size_leaf_vector", "1"},
		}},
	}, nil
}

// children returns the children of a node that are left and right in the file. XGBoost sends
// the categories in the set right and all others left. If the node does the opposite, the
// children are swapped.
func children(n *tree.Node) (int32, int32) {
	if n.Flags&(tree.Categorical|tree.SetRight) == tree.Categorical {
		return n.Right, n.Left
	}
	return n.Left, n.Right
}

// siblings returns the numbers of the nodes in an order in which each right child is directly
// after the left child, as XGBoost's predictor requires. It keeps the current order if this is
// already true. Otherwise the order is by depth.
func siblings(nodes []tree.Node) []int32 {
	order := make([]int32, 0, len(nodes))
	kept := true
	for i := range nodes {
		left, right := children(&nodes[i])
		order = append(order, int32(i))
		kept = kept && (nodes[i].Leaf() || right == left+1)
	}
	if kept {
		return order
	}
	order = order[:1]
	for at := 0; at < len(order); at++ {
		if n := &nodes[order[at]]; !n.Leaf() {
			left, right := children(n)
			order = append(order, left, right)
		}
	}
	return order
}

// node writes a node of the tree to the arrays, as node i. from is its number in the tree.
func (p *placed) node(a *arrays, i, from int, number []int32, e *tree.Ensemble) error {
	a.left[i], a.right[i] = -1, -1
	var n tree.Node
	if p.tree != nil {
		n = p.tree.Nodes[from]
		if p.tree.Values != nil {
			n.Value = p.tree.Values[from*e.Outputs+p.output]
		}
	}
	v := float64(n.Value * p.scale)
	if p.add != 0 { // not adding 0 keeps −0
		v += p.add
	}
	value, err := single("value", v)
	if err != nil {
		return err
	}
	a.weight[i], a.gain[i], a.cover[i] = value, clamp(n.Gain), clamp(n.Cover)
	if n.Leaf() {
		a.condition[i] = value
		return nil
	}
	left, right := children(&n)
	a.left[i], a.right[i], a.feature[i] = number[left], number[right], n.Feature
	a.parent[number[left]], a.parent[number[right]] = int32(i), int32(i)
	missing, err := p.missing(&n, from, e)
	if err != nil {
		return err
	}
	if missing == left {
		a.defaultLeft[i] = 1
	}
	a.condition[i] = n.SingleThreshold()
	if n.Flags&tree.Categorical != 0 {
		return p.categories(a, i, &n)
	}
	return nil
}

// missing returns the child of rows in which the feature of a node is missing.
func (p *placed) missing(n *tree.Node, from int, e *tree.Ensemble) (int32, error) {
	x := math.NaN()
	if n.Flags&tree.ZeroMissing != 0 {
		// This node sends zeros, like NaN, the way of missing values. XGBoost compares zeros
		// with the threshold, so this comparison must send them the same way.
		valued := tree.Tree{Nodes: []tree.Node{*n}, Sets: p.tree.Sets}
		valued.Nodes[0].Flags &^= tree.ZeroMissing
		near := n.Flags&tree.Categorical == 0 && math.Abs(n.Threshold) <= tiny
		if near || valued.Left(0, 0, e.Single) != p.tree.Left(int32(from), 0, e.Single) {
			return 0, fmt.Errorf("it takes zeros of feature %q as missing, which XGBoost cannot express", e.Features[n.Feature])
		}
	}
	if p.tree.Left(int32(from), x, e.Single) {
		return n.Left, nil
	}
	return n.Right, nil
}

// tiny bounds the absolute values that are treated as zero, and thus as missing, with
// ZeroMissing.
const tiny = 1.1e-35

// categories writes the set of node i. XGBoost does not read empty sets. Instead of an empty
// set, categories writes a threshold above all categories, so that all categories go the way of
// those outside the set.
func (p *placed) categories(a *arrays, i int, n *tree.Node) error {
	from := len(a.categories)
	for c := range n.SetWords * 32 {
		if p.tree.Sets[n.Set+c/32]>>(c%32)&1 == 0 {
			continue
		}
		if c >= maxCategory {
			return fmt.Errorf("category %d is in its set, and XGBoost has none from %d on", c, maxCategory)
		}
		a.categories = append(a.categories, c)
	}
	if len(a.categories) == from {
		a.condition[i] = float32(math.Inf(1))
		return nil
	}
	a.category[i], a.condition[i] = 1, float32(math.NaN())
	a.nodes = append(a.nodes, int32(i))
	a.segments = append(a.segments, int64(from))
	a.sizes = append(a.sizes, int64(len(a.categories)-from))
	return nil
}

// single rounds a number to float32.
func single(what string, v float64) (float32, error) {
	w := float32(v)
	if math.IsInf(float64(w), 0) {
		return 0, fmt.Errorf("its %s is %v, which float32 does not hold", what, v)
	}
	return w, nil
}

// clamp rounds to float32 a number on which predictions do not depend.
func clamp(v float64) float32 {
	return float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
}
