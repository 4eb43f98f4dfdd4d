package tree

import "math"

// tiny is the largest absolute value that is treated as missing with the flag ZeroMissing:
// 1e-35 as a float32, as in LightGBM.
const tiny = float64(float32(1e-35))

// missing applies the flags about missing values to the value x of a feature. It returns the
// value to compare, and true if the value is missing.
func (f Flags) missing(x float64) (float64, bool) {
	if x != x && f&NaNIsZero != 0 {
		x = 0
	}
	if f&ZeroMissing != 0 && x >= -tiny && x <= tiny {
		return x, true
	}
	return x, x != x
}

// SingleThreshold returns the least float32 that is not below the threshold. The same float32
// values are below the result and below the threshold.
func (n *Node) SingleThreshold() float32 {
	w := float32(n.Threshold)
	if float64(w) < n.Threshold {
		w = math.Nextafter32(w, float32(math.Inf(1)))
	}
	return w
}

// category returns the category of a value: the value truncated to an integer. It returns -1
// for values below 0 and beyond int32, which have no category.
func category(x float64) int32 {
	if !(x >= 0 && x <= math.MaxInt32) {
		return -1
	}
	return int32(x)
}

// Has reports whether a category is in the set of a categorical node. It returns false for
// negative categories and for categories beyond the last word of the set.
func (t *Tree) Has(node, category int32) bool {
	n := &t.Nodes[node]
	word := category >> 5
	return category >= 0 && word < n.SetWords && t.Sets[n.Set+word]>>(category&31)&1 == 1
}

// Left reports whether a node with children sends a row left, where x is the row's value of the
// node's feature. It is the reference with which all faster implementations agree. If single is
// true, as given by Ensemble.Single, x is first rounded to float32. At categorical nodes the
// category is x truncated to an integer. A negative value, a value beyond the set, and a value
// that is not a category are not in the set.
func (t *Tree) Left(node int32, x float64, single bool) bool {
	n := &t.Nodes[node]
	if single {
		x = float64(float32(x))
	}
	x, none := n.Flags.missing(x)
	switch {
	case none:
		return n.Flags&DefaultLeft != 0
	case n.Flags&Categorical != 0:
		return t.Has(node, category(x)) != (n.Flags&SetRight != 0)
	}
	return x < n.Threshold
}

// Leaf returns the number of the node in which a row ends. It walks from node to node. A Scorer
// finds the node faster.
func (t *Tree) Leaf(row []float64, single bool) int32 {
	var at int32
	for {
		n := &t.Nodes[at]
		switch {
		case n.Leaf():
			return at
		case t.Left(at, row[n.Feature], single):
			at = n.Left
		default:
			at = n.Right
		}
	}
}
