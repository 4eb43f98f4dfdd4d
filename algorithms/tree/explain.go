package tree

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// An Explainer attributes the score of a row to the features of the row, by Shapley values. Any
// number of goroutines may use it. It reuses its working memory, and allocates only when more
// goroutines use it at the same time than ever before.
//
// The worth of a set of features is the expected score of a row of which only these features
// are known. At a node that splits on an unknown feature, the expectation is the mean of both
// children, weighted by their covers in training. The resulting attributions are the
// path-dependent tree SHAP values of Lundberg, Erion and Lee (Consistent Individualized Feature
// Attribution for Tree Ensembles, 2018), which XGBoost and LightGBM compute too. They are exact
// up to the rounding of float64.
//
// # How
//
// The worth of a leaf is its value times a product over the features on its path. The factor of
// a feature is o if the feature is known, and z otherwise. o is 1 if the row follows the path
// at all nodes that split on the feature, and 0 otherwise. z is the product, over these nodes,
// of the share of the node's cover that belongs to the child on the path. The Shapley value of
// feature j is the integral over t in [0, 1] of the slope in direction j of the game's
// multilinear extension (Owen, Multilinear Extensions of Games, 1972):
//
//	value × (o_j - z_j) × ∫ ∏ over other features i of (o_i·t + z_i·(1-t)) dt
//
// The integrand is a polynomial in t. So Gauss–Legendre quadrature gives the integral exactly,
// with half as many points as there are features on the path, and only with sums and products
// of positive numbers. At each point, the products of all leaves below a node have a common
// factor for the path above the node. One traversal of the tree computes these factors on the
// way down and the sums over leaves on the way up. For L leaves and at most D features on a
// path, this takes L·D operations instead of L·D². The interaction of two features is the mixed
// second slope (Grabisch and Roubens, An Axiomatic Approach to the Concept of Interaction,
// 1999). Half of it is attributed to each of the two features.
type Explainer struct {
	e *Ensemble
	// One of single and double is set, as in Scorer.
	single *explained[int32]
	double *explained[int64]
}

// ExplainOptions has options for the weights of the paths through a tree.
type ExplainOptions struct {
	// If ByCount is true, children are weighted by their Count instead of their Cover, as in
	// LightGBM.
	ByCount bool
}

// maxWork is the largest number of float64 values that an explainer keeps while it explains a
// row.
const maxWork = 1 << 27

// Explainer returns an explainer of the ensemble. It returns the error of Validate, or an error
// if a tree has such long paths that explaining a row would need more than a gigabyte of
// memory. If a node has no cover, its children have equal weights.
func (e *Ensemble) Explainer(o ExplainOptions) (*Explainer, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	var err error
	x := &Explainer{e: e}
	if e.Single {
		x.single, err = newExplained[int32](e, o)
	} else {
		x.double, err = newExplained[int64](e, o)
	}
	return x, err
}

// Values writes to out the attributions of one row: for each output, the value of each feature
// and then the bias. The bias is the expected score of a row of which no feature is known. The
// values and the bias of an output add up to the row's score, up to rounding.
func (x *Explainer) Values(row, out []float64) {
	x.explain(&source{x64: row}, 0, 1, out, false)
}

// DenseValues does what Values does for each of the n rows of a row-major matrix. threads is as
// in Scorer.Dense.
func (x *Explainer) DenseValues(rows []float64, n int, out []float64, threads int) {
	x.run(source{x64: rows}, n, out, false, threads)
}

// SparseValues does what Values does for each of the sparse rows.
func (x *Explainer) SparseValues(rows CSR, absent Absent, out []float64, threads int) {
	x.run(source{csr: rows, absent: absent, sparse: true}, max(len(rows.RowPtr)-1, 0), out, false, threads)
}

// Interactions writes to out the attributions of one row to pairs of features: for each output
// a square matrix with a row and a column for each feature, followed by a row and a column for
// the bias. An entry off the diagonal is half of the interaction of two features. The
// interaction is the part of their joint worth that exceeds the worth of each feature alone.
// Each matrix row adds up to the value of its feature, and the whole matrix adds up to the
// score. The row and the column of the bias are 0, except for their common element, which is
// the bias.
func (x *Explainer) Interactions(row, out []float64) {
	x.explain(&source{x64: row}, 0, 1, out, true)
}

// DenseInteractions does what Interactions does for each of the n rows of a row-major matrix.
// threads is as in Scorer.Dense.
func (x *Explainer) DenseInteractions(rows []float64, n int, out []float64, threads int) {
	x.run(source{x64: rows}, n, out, true, threads)
}

// run divides the n rows among threads goroutines.
func (x *Explainer) run(src source, n int, out []float64, pairs bool, threads int) {
	src.stride = len(x.e.Features)
	split(n, 1, threads, func(from, to int) { x.explain(&src, from, to, out, pairs) })
}

func (x *Explainer) explain(src *source, from, to int, out []float64, pairs bool) {
	if x.single != nil {
		x.single.explain(src, from, to, out, pairs)
	} else {
		x.double.explain(src, from, to, out, pairs)
	}
}

// explained is a layout with additional data for explanations.
type explained[K key] struct {
	*layout[K]
	// shares has, for each link except roots, its share of the cover of its parent.
	shares []float64
	trees  []rule
	rules  []points
	bias   []float64 // bias of each output
	depth  int       // largest depth of a tree; points is the largest number of points
	points int
	works  chan *work[K]
}

// rule has the number of quadrature points for a tree, and the number of outputs to which the
// tree adds.
type rule struct{ points, outputs int }

// points has, for each point t of a quadrature, t, 1-t, 1/(1-t) and the weight.
type points struct{ t, rest, inverse, weight []float64 }

// newExplained returns the data for explaining the valid ensemble e.
func newExplained[K key](e *Ensemble, o ExplainOptions) (*explained[K], error) {
	x := &explained[K]{
		layout: newLayout[K](e), trees: make([]rule, len(e.Trees)),
		bias: make([]float64, e.Outputs), works: make(chan *work[K], areas()),
	}
	x.shares = make([]float64, len(x.links))
	outputs := 1
	for t := range e.Trees {
		depth, features := x.measure(t, o)
		x.trees[t] = rule{points: max(1, (features+1)/2), outputs: 1}
		if e.Trees[t].Values != nil {
			x.trees[t].outputs, outputs = e.Outputs, e.Outputs
		}
		x.depth, x.points = max(x.depth, depth), max(x.points, x.trees[t].points)
		if int64(depth+1)*int64(x.trees[t].points)*int64(3+outputs) > maxWork {
			return nil, fmt.Errorf("tree: tree %d has paths of %d splits on %d features, too long to explain", t, depth, features)
		}
	}
	x.rules = make([]points, x.points+1)
	for _, r := range x.trees {
		if p := &x.rules[r.points]; p.t == nil {
			p.t, p.weight = gauss(r.points)
			for q := range p.t {
				p.rest = append(p.rest, p.t[r.points-1-q])
				p.inverse = append(p.inverse, 1/p.t[r.points-1-q])
			}
		}
	}
	x.expect()
	return x, nil
}

// measure sets the shares of a tree's links. It returns the depth of the tree and the largest
// number of distinct features on a path.
func (x *explained[K]) measure(t int, o ExplainOptions) (depth, features int) {
	nodes := x.e.Trees[t].Nodes
	weight := func(at int32) float64 {
		if n := &nodes[x.numbers[at]]; o.ByCount {
			return float64(n.Count)
		} else {
			return n.Cover
		}
	}
	on := make(map[int32]int) // number of nodes on the path that split on a feature
	type step struct {
		at   int32
		done bool
	}
	now := 0
	for open := []step{{at: x.tops[t].root}}; len(open) > 0; {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if x.leaf(s.at) {
			continue
		}
		f := x.feature(s.at)
		if s.done {
			now--
			if on[f]--; on[f] == 0 {
				delete(on, f)
			}
			continue
		}
		now++
		on[f]++
		depth, features = max(depth, now), max(features, len(on))
		left := x.links[s.at].left
		x.shares[left], x.shares[left+1] = shares(weight(s.at), weight(left), weight(left+1))
		open = append(open, step{s.at, true}, step{at: left}, step{at: left + 1})
	}
	return depth, features
}

// shares returns the shares of two children in the weight of their parent node. Both are one
// half if the node has no weight.
func shares(node, left, right float64) (float64, float64) {
	if node > 0 && kernel.Finite(left/node) && kernel.Finite(right/node) {
		return left / node, right / node
	}
	return 0.5, 0.5
}

// feature returns the feature on which a link splits.
func (x *explained[K]) feature(at int32) int32 { return x.slots[x.slotOf(at)].feature }

// expect computes the bias: for each output, the mean of the values of the leaves, weighted by
// their shares.
func (x *explained[K]) expect() {
	reach := make([]float64, len(x.links))
	sums := make([]float64, x.e.Outputs)
	for t := range x.e.Trees {
		top := &x.tops[t]
		reach[top.root] = 1
		end := int32(len(x.links))
		if t+1 < len(x.tops) {
			end = x.tops[t+1].root
		}
		for at := top.root; at < end; at++ { // children are stored after their parents
			left := x.links[at].left
			if left != at {
				reach[left] = float64(reach[at] * x.shares[left])
				reach[left+1] = float64(reach[at] * x.shares[left+1])
				continue
			}
			x.eachValue(t, at, func(o int, v float64) { sums[o] += float64(reach[at] * v) })
		}
	}
	for o, sum := range sums {
		if x.e.Average && x.weights[o] > 0 {
			sum /= x.weights[o]
		}
		x.bias[o] = x.e.Base[o] + sum
	}
}

// eachValue calls f with the value that a leaf adds to each output of its tree.
func (x *explained[K]) eachValue(t int, at int32, f func(o int, v float64)) {
	tree := &x.e.Trees[t]
	if tree.Values == nil {
		f(int(tree.Output), x.leaves[at])
		return
	}
	for o, v := range tree.Values[int(x.numbers[at])*x.e.Outputs:][:x.e.Outputs] {
		f(o, float64(v*tree.Weight))
	}
}
