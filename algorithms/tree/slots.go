package tree

import (
	"cmp"
	"math"
	"slices"
	"unsafe"
)

// Rows are walked through trees not as they are but as keys: integers that order like the
// features do. A feature has a key for every way in which nodes look at it, its slots, and the
// ways of missing values are worked into them: where they go left they are the smallest key,
// where they go right the largest. So a step of a walk is one comparison of integers, with no
// case to tell apart.

// key is the integer that stands for a float32 or a float64.
type key interface{ int32 | int64 }

// slot is a feature in one of the ways in which nodes look at it.
type slot struct {
	feature int32
	// flags are those of the nodes that say how missing values and categories are looked
	// at, made alike where they mean the same.
	flags Flags
}

// Keys of categorical slots other than categories.
const (
	noCategory      = -1
	missingCategory = -2
)

// way returns the slot that a node with children looks at.
func (n *Node) way() slot {
	f := n.Flags &^ SetRight
	if f&ZeroMissing != 0 { // NaN is missing, be it taken for 0 before or not
		f &^= NaNIsZero
	}
	if f&NaNIsZero != 0 || f&Categorical != 0 { // nothing is missing; the node decides
		f &^= DefaultLeft
	}
	return slot{feature: n.Feature, flags: f}
}

// slotsOf returns the slots of an ensemble in the order of the features, and their places.
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

// keyOf returns the key of a number that is not NaN: smaller numbers have smaller keys, and
// -0 has that of 0. No number has the smallest or the largest integer.
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

// fillKeys writes the keys of one slot for len(out) rows, that of row i from x[i*stride].
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

// specialKey is the key of one value of a slot that has more to it than a comparison.
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

// missingKey is the key of missing values at a slot of numbers.
func missingKey[K key](s slot) K {
	if s.flags&DefaultLeft != 0 {
		return lowest[K]()
	}
	return ^lowest[K]()
}
