package tree

import "fmt"

// An Explainer attributes what an ensemble gives for a row to the features of the row, by
// Shapley values. It may be used by any number of goroutines, and allocates nothing for a row
// once as many rows as work at a time have been explained.
//
// The worth of a set of features is what the ensemble expects of a row of which it knows these
// alone: at a node that looks at another feature, the mean of both children by their covers in
// training. These are the path-dependent tree SHAP values of Lundberg, Erion and Lee
// (Consistent Individualized Feature Attribution for Tree Ensembles, 2018), and those of
// XGBoost and LightGBM. They are exact, but for the rounding of float64.
//
// # How
//
// A leaf is worth its value times a product over the features on its way: o if the feature is
// known and z if not, where o is 1 if the row takes the leaf's way at all nodes that look at
// the feature and 0 if not, and z the product of the shares of the covers there. The Shapley
// value of feature j is the integral over t in [0, 1] of the slope in direction j of the game's
// multilinear extension (Owen, Multilinear Extensions of Games, 1972):
//
//	value × (o_j - z_j) × ∫ ∏ over other features i of (o_i·t + z_i·(1-t)) dt
//
// The integrand is a polynomial of t, so that Gauss–Legendre quadrature with half as many
// points as there are features on the way gives the integral exactly, from sums and products of
// positive numbers. At each point, the products of all leaves below a node share a factor for
// what is above it, and one pass over the tree brings the products down and the sums over
// leaves up: for L leaves, and at most D features on a way, L·D operations instead of L·D².
// The interaction of two features is the mixed second slope (Grabisch and Roubens, An Axiomatic
// Approach to the Concept of Interaction, 1999), of which either gets one half.
type Explainer struct {
	e *Ensemble
	// One of them is the layout, as in Scorer.
	single *explained[int32]
	double *explained[int64]
}

// ExplainOptions say how an Explainer weighs the ways through a tree.
type ExplainOptions struct {
	// ByCount weighs children by the Count of their rows in place of their Cover, as
	// LightGBM does.
	ByCount bool
}

// maxWork bounds the numbers that an explainer keeps for a row at work.
const maxWork = 1 << 27

// Explainer lays the ensemble out for explanations. A tree whose ways are so long that a row
// would need more than a gigabyte is an error, and so is what Validate finds. Children of a node
// without cover weigh the same.
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

// Values writes to out the attributions of one row: for each output a value for each feature
// and then the bias, which is what the ensemble expects of a row it knows nothing of. They add
// up to the output, but for rounding.
func (x *Explainer) Values(row, out []float64) {
	x.explain(&source{x64: row}, 0, 1, out, false)
}

// DenseValues is Values for the n rows of a row-major matrix, on so many threads as
// Scorer.Dense has them.
func (x *Explainer) DenseValues(rows []float64, n int, out []float64, threads int) {
	x.run(source{x64: rows}, n, out, false, threads)
}

// SparseValues is Values for sparse rows.
func (x *Explainer) SparseValues(rows CSR, absent Absent, out []float64, threads int) {
	x.run(source{csr: rows, absent: absent, sparse: true}, max(len(rows.RowPtr)-1, 0), out, false, threads)
}

// Interactions writes to out the attributions of one row to pairs of features: for each output
// a square matrix with a row and a column for each feature, and then for the bias. Off the
// diagonal is half of what two features are worth together beyond what each is alone; rows add
// up to the feature's value, and the matrix to the output. Only the corner of the bias is not 0
// in its row and column.
func (x *Explainer) Interactions(row, out []float64) {
	x.explain(&source{x64: row}, 0, 1, out, true)
}

// DenseInteractions is Interactions for the n rows of a row-major matrix, on so many threads as
// Scorer.Dense has them.
func (x *Explainer) DenseInteractions(rows []float64, n int, out []float64, threads int) {
	x.run(source{x64: rows}, n, out, true, threads)
}

// run gives the rows to the threads.
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

// explained is a layout with what explanations need.
type explained[K key] struct {
	*layout[K]
	// shares are, for all links but roots, the parts of their parents' covers.
	shares []float64
	trees  []rule
	rules  []points
	bias   []float64 // of outputs
	depth  int       // the largest of a tree, and the largest number of points
	points int
	works  chan *work[K]
}

// rule is what a tree is integrated with: the number of points, and its outputs.
type rule struct{ points, outputs int }

// points are those of a quadrature: t, 1-t, 1/(1-t) and the weights.
type points struct{ t, rest, inverse, weight []float64 }

// newExplained lays a valid ensemble out.
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
			return nil, fmt.Errorf("tree: tree %d has ways of %d splits by %d features, too long to explain", t, depth, features)
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

// measure enters the shares of a tree's links, and returns its depth and the largest number of
// features on a way.
func (x *explained[K]) measure(t int, o ExplainOptions) (depth, features int) {
	nodes := x.e.Trees[t].Nodes
	weight := func(at int32) float64 {
		if n := &nodes[x.numbers[at]]; o.ByCount {
			return float64(n.Count)
		} else {
			return n.Cover
		}
	}
	on := make(map[int32]int) // how often a feature is on the way
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

// shares returns the parts that two children have of a node: of its weight, or one half each if
// it has none.
func shares(node, left, right float64) (float64, float64) {
	if node > 0 && finite(left/node) && finite(right/node) {
		return left / node, right / node
	}
	return 0.5, 0.5
}

// feature is the feature that a link looks at.
func (x *explained[K]) feature(at int32) int32 { return x.slots[x.slotOf(at)].feature }

// expect computes the bias: for each output, what the leaves are worth by their shares.
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
		for at := top.root; at < end; at++ { // children stand behind their parents
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

// eachValue calls f with what a leaf adds to each output of its tree.
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
