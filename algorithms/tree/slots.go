package tree

import (
	"cmp"
	"math"
	"slices"
	"unsafe"
)

// Rows are walked through trees as keys: integers that have the order of the features' values.
// Nodes may look at a feature in several ways, such as with different flags for missing values.
// Each way is a slot of the feature and has a key of its own. A missing value has the smallest
// key where it goes left and the largest where it goes right. So a step of a walk is one
// comparison of integers, without special cases.

// key is the integer that stands for a float32 or a float64.
type key interface{ int32 | int64 }

// slot is a feature in one of the ways in which nodes look at it.
type slot struct {
	feature int32
	// flags are the flags of the nodes about missing values and categories. Flags with the same
	// meaning are made equal.
	flags Flags
}

// Keys in categorical slots that are not categories.
const (
	noCategory      = -1
	missingCategory = -2
)

// way returns the slot that a node with children looks at.
func (n *Node) way() slot {
	f := n.Flags &^ SetRight
	if f&ZeroMissing != 0 { // NaN is missing, whether it is taken as 0 first or not
		f &^= NaNIsZero
	}
	if f&NaNIsZero != 0 || f&Categorical != 0 { // nothing is missing; the node decides
		f &^= DefaultLeft
	}
	return slot{feature: n.Feature, flags: f}
}

// slotsOf returns the slots of an ensemble in the order of the features, and the index of each.
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
// has the key of 0. No number has the smallest or the largest integer as its key.
func keyOf[K key, T float32 | float64](x T) K {
	var k K
	if unsafe.Sizeof(k) == 4 {
		b := int32(math.Float32bits(float32(x) + 0)) // -0 + 0 is 0
		return K(b ^ (b>>31)&math.MaxInt32)
	}
	b := int64(math.Float64bits(float64(x) + 0))
	return K(b ^ (b>>63)&math.MaxInt64)
}

// lowest returns the smallest key; its complement is the largest.
func lowest[K key]() K {
	var k K
	return K(-1) << (8*unsafe.Sizeof(k) - 1)
}

// fillKeys writes the keys of one slot for len(out) rows. The value of row i is x[i*stride].
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

// specialKey returns the key of a value in a slot with other flags than DefaultLeft.
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
