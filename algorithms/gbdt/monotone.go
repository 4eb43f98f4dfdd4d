package gbdt

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Renewed leaves ignore the bounds within which trees are grown, because these bounds are in
// units of gradients and not of labels. So keepMonotone cuts the values of renewed leaves. It
// visits the splits on constrained features from the root down. Where the values on the two
// sides of such a split overlap, it cuts both sides at the middle between their means. A cut
// moves values only towards other values below the same node, so the constraints of splits
// above still hold. Values that break no constraint are not changed.

// hull has the smallest and the largest leaf value below a node, and sum and cover, whose
// quotient is the mean of the leaf values weighted by cover.
type hull struct{ lo, hi, sum, cover float64 }

// middle returns the mean of the leaf values, cut to the range from lo to hi.
func (h hull) middle() float64 {
	mean := h.sum / h.cover
	if !kernel.Finite(mean) { // cover is 0, or the sum has overflowed
		mean = float64(h.lo/2) + float64(h.hi/2)
	}
	return max(h.lo, min(h.hi, mean))
}

// hullOf returns the hull of the leaves below a node. Sums are taken from left to right.
func hullOf(t *tree.Tree, node int32) hull {
	n := &t.Nodes[node]
	if n.Leaf() {
		return hull{n.Value, n.Value, float64(n.Cover * n.Value), n.Cover}
	}
	a, b := hullOf(t, n.Left), hullOf(t, n.Right)
	return hull{min(a.lo, b.lo), max(a.hi, b.hi), a.sum + b.sum, a.cover + b.cover}
}

// cut limits the values of the leaves below a node to the range from lo to hi.
func cut(t *tree.Tree, node int32, lo, hi float64) {
	n := &t.Nodes[node]
	if n.Leaf() {
		n.Value = max(lo, min(hi, n.Value))
		return
	}
	cut(t, n.Left, lo, hi)
	cut(t, n.Right, lo, hi)
}

// keepMonotone changes leaves so that the tree's predictions rise or fall with each feature f
// as ways[f] says: 1 means rise, −1 fall, 0 no constraint.
func keepMonotone(t *tree.Tree, ways []int8) {
	for i := range t.Nodes { // nodes are stored after their parents
		n := &t.Nodes[i]
		if n.Leaf() || ways[n.Feature] == 0 {
			continue
		}
		below, above := n.Left, n.Right
		if ways[n.Feature] < 0 {
			below, above = above, below
		}
		a, b := hullOf(t, below), hullOf(t, above)
		if a.hi <= b.lo {
			continue
		}
		x, y := a.middle(), b.middle()
		mid := max(min(x, y), min(max(x, y), float64(x/2)+float64(y/2)))
		cut(t, below, math.Inf(-1), mid)
		cut(t, above, mid, math.Inf(1))
	}
}
