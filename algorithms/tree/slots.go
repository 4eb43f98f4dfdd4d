package tree

import (
	"cmp"
	"math"
	"slices"
	"unsafe"
)

// For walks through trees, the features of a row are converted to keys: integers in the same
// order as the values. Nodes may treat the values of a feature in several ways, for example
// with different flags for missing values. Each way is a slot of the feature and has its own
// key. A missing value has the smallest key in a slot in which it goes left, and the largest
// key in a slot in which it goes right. So a step of a walk is one comparison of integers,
// without special cases.

// key is the type of the integers that represent float32 or float64 values.
type key interface{ int32 | int64 }

// slot is a feature together with one of the ways in which nodes treat its values.
type slot struct {
	feature int32
	// flags has the flags of the nodes about missing values and categories. Combinations of
	// flags with the same meaning are replaced by one of them.
	flags Flags
}

// These are the keys, in categorical slots, of values that are not categories.
const (
	noCategory      = -1
	missingCategory = -2
)

// way returns the slot whose keys a node with children compares.
func (n *Node) way() slot {
	f := n.Flags &^ SetRight
	if f&ZeroMissing != 0 { // NaN is missing, whether it is replaced by 0 first or not
		f &^= NaNIsZero
	}
	if f&NaNIsZero != 0 || f&Categorical != 0 { // with NaNIsZero nothing is missing; a categorical node uses its own flag
		f &^= DefaultLeft
	}
	return slot{feature: n.Feature, flags: f}
}

// slotsOf returns the slots of an ensemble, sorted by feature and flags, and the index of each
// slot.
func slotsOf(e *Ensemble) ([]slot, map[slot]int32) {
	place := map[slot]int32{}
	for t := range e.Trees {
		for i := range e.Trees[t].Nodes {
			if n := &e.Trees[t].Nodes[i]; !n.Leaf() {
				place[n.way()] = 0
			}
		}
	}
	all := make([]slot, 0, len(place))
	for s := range place {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.feature, b.feature), cmp.Compare(a.flags, b.flags))
	})
	for i, s := range all {
		place[s] = int32(i)
	}
	return all, place
}

// keyOf returns the key of a number that is not NaN. Smaller numbers have smaller keys, and -0
// has the key of 0. The smallest and the largest integer are not keys of any number.
func keyOf[K key, T float32 | float64](x T) K {
	var k K
	if unsafe.Sizeof(k) == 4 {
		b := int32(math.Float32bits(float32(x) + 0)) // -0 + 0 is 0
		return K(b ^ (b>>31)&math.MaxInt32)
	}
	b := int64(math.Float64bits(float64(x) + 0))
	return K(b ^ (b>>63)&math.MaxInt64)
}

// lowest returns the smallest key. Its bitwise complement is the largest key.
func lowest[K key]() K {
	var k K
	return K(-1) << (8*unsafe.Sizeof(k) - 1)
}

// fillKeys writes the keys in slot s of len(out) rows. The value of row i is x[i*stride].
func fillKeys[K key, T float32 | float64](s slot, x []T, stride int, out []K) {
	if s.flags&^DefaultLeft != 0 {
		for i := range out {
			out[i] = specialKey[K](s, x[i*stride])
		}
		return
	}
	none := missingKey[K](s)
	for i := range out {
		v := x[i*stride]
		k := keyOf[K](v)
		if v != v {
			k = none
		}
		out[i] = k
	}
}

// specialKey returns the key of a value in a slot that has flags other than DefaultLeft.
func specialKey[K key, T float32 | float64](s slot, x T) K {
	v := float64(x)
	if unsafe.Sizeof(K(0)) == 4 {
		v = float64(float32(v))
	}
	v, none := s.flags.missing(v)
	switch {
	case s.flags&Categorical == 0 && none:
		return missingKey[K](s)
	case s.flags&Categorical == 0:
		return keyOf[K](v)
	case none:
		return missingCategory
	}
	return K(category(v))
}

// missingKey returns the key of missing values in a slot of numbers.
func missingKey[K key](s slot) K {
	if s.flags&DefaultLeft != 0 {
		return lowest[K]()
	}
	return ^lowest[K]()
}
