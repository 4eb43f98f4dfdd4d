package tree

import (
	"encoding/binary"
	"math/bits"
)

// together is the number of walks that advance at a time.
const together = 16

// walk walks n of at's walks to their leaves. Walk i begins at link at[i], and looks at slot s
// in keys[s*width+i*stride].
func (l *layout[K]) walk(keys []K, width, stride int, at []int32, sets bool) {
	if len(l.slots) == 0 { // all trees are single leaves
		return
	}
	for len(at) > 0 {
		group := at[:min(len(at), together)]
		if sets {
			l.walkSets(keys, width, stride, group)
		} else {
			walkNumbers(l.links, keys, width, stride, group)
		}
		at = at[len(group):]
		if len(at) > 0 {
			keys = keys[len(group)*stride:]
		}
	}
}

// walkNumbers walks where no node looks at categories.
func walkNumbers[K key](links []link[K], keys []K, width, stride int, at []int32) {
	for moved := int32(1); moved != 0; {
		moved = 0
		row := 0
		for i, from := range at {
			n := &links[from]
			var right int32
			if keys[int(n.slot)*width+row] > n.above {
				right = 1
			}
			to := n.left + right
			moved |= to ^ from
			at[i] = to
			row += stride
		}
	}
}

// walkSets walks where some do.
func (l *layout[K]) walkSets(keys []K, width, stride int, at []int32) {
	for moved := int32(1); moved != 0; {
		moved = 0
		row := 0
		for i, from := range at {
			n := &l.links[from]
			var right int32
			if n.slot < 0 {
				right = l.look(n.above, keys[int(^n.slot)*width+row])
			} else if keys[int(n.slot)*width+row] > n.above {
				right = 1
			}
			to := n.left + right
			moved |= to ^ from
			at[i] = to
			row += stride
		}
	}
}

// look returns 1 if a category goes right by the set of a number, and 0 otherwise.
func (l *layout[K]) look(number, category K) int32 {
	s := &l.sets[number]
	if category == missingCategory {
		return int32(s.flags&DefaultLeft ^ DefaultLeft)
	}
	var in int32
	if word := category >> 5; category >= 0 && word < K(s.words) {
		in = int32(l.words[s.first+int32(word)] >> uint(category&31) & 1)
	}
	if s.flags&SetRight != 0 {
		return in
	}
	return in ^ 1
}

// spread has, for each byte, its bits as the lowest bits of the bytes of a word.
var spread = func() (table [256]uint64) {
	for b := range table {
		for i := range 8 {
			table[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return table
}()

// descend takes the rows of a block through a top and finds for each the number of the way that
// it took: the bits of its turns, right being 1, the first the highest.
func (l *layout[K]) descend(t *top, a *area[K]) {
	positions := l.masks[t.first : t.first+1<<t.depth]
	reach := &a.reach
	reach[0] = ^uint64(0)
	for level := range int(t.depth) {
		nodes := positions[1<<level : 2<<level]
		var right uint64
		if level+1 == int(t.depth) {
			for p, m := range nodes {
				right |= reach[p&(len(reach)-1)] & a.masks[m]
			}
		} else {
			for p := len(nodes) - 1; p >= 0; p-- {
				here := reach[p&(len(reach)-1)]
				above := here & a.masks[nodes[p]]
				right |= above
				reach[(2*p+1)&(len(reach)-1)] = above
				reach[(2*p)&(len(reach)-1)] = here ^ above
			}
		}
		a.turns[level] = right
	}
	turns := a.turns[:t.depth]
	for g := range lanes / 8 {
		var eight uint64
		for _, turn := range turns {
			eight = eight<<1 + spread[uint8(turn>>(8*g))]
		}
		binary.LittleEndian.PutUint64(a.way[8*g:], eight)
	}
}

// fillMasks makes the masks of a block from its keys: those of slot s for n rows stand from
// keys[s*lanes].
func (l *layout[K]) fillMasks(keys []K, n int, a *area[K]) {
	clear(a.masks)
	for s := range l.cuts {
		c := &l.cuts[s]
		own := a.masks[l.start[s]:l.start[s+1]]
		if len(own) == 1 {
			continue
		}
		if c.sets != nil {
			l.fillSets(c.sets, keys[s*lanes:][:n], own[1:])
			continue
		}
		ranks(c.tree, c.depth, (*[lanes]K)(keys[s*lanes:]), &a.at)
		for i, r := range a.at[:n] {
			own[r] |= 1 << i
		}
		fold(own)
	}
}

// fillSets makes the masks of sets from the keys of a categorical slot.
func (l *layout[K]) fillSets(sets, keys []K, own []uint64) {
	var categories [lanes]K // the different ones of the block
	var rows [lanes]uint64
	some := 0
	for i, k := range keys {
		j := 0
		for j < some && categories[j] != k {
			j++
		}
		if j == some {
			categories[j] = k
			some++
		}
		rows[j] |= 1 << i
	}
	for c, number := range sets {
		var right uint64
		for j, k := range categories[:some] {
			right |= rows[j] & -uint64(l.look(number, k))
		}
		own[c] = right
	}
}

// fold makes masks from rows that are each in the mask of the last cut they are above, or in
// the one before the masks if they are above none.
func fold(own []uint64) {
	var rows uint64
	for c := len(own) - 1; c > 0; c-- {
		rows |= own[c]
		own[c] = rows
	}
	own[0] = 0
}

// cuts are the keys that tops compare a slot with, as a complete search tree: entry i, from 1,
// has those below it under 2i and those above it under 2i+1. Entries too many are the largest
// key, above which nothing is.
type cuts[K key] struct {
	tree  []K
	depth int
	sets  []K // at categories, the numbers of sets in place of the tree
}

// newCuts makes a search tree of ascending keys.
func newCuts[K key](keys []K) cuts[K] {
	c := cuts[K]{depth: bits.Len(uint(len(keys)))}
	c.tree = make([]K, 1<<c.depth)
	for i := 1; i < len(c.tree); i++ {
		// Entry i of level l has, in order, (2(i-2^l)+1)*2^(depth-l-1)-1 entries before it.
		level := bits.Len(uint(i)) - 1
		before := (2*(i-1<<level)+1)<<(c.depth-level-1) - 1
		c.tree[i] = ^lowest[K]()
		if before < len(keys) {
			c.tree[i] = keys[before]
		}
	}
	return c
}

// rank returns the number of cuts that a key is above, 0 at categories.
func (c *cuts[K]) rank(k K) int32 {
	i := 1
	for range c.depth {
		right := 0
		if k > c.tree[i] {
			right = 1
		}
		i = 2*i + right
	}
	return int32(i - 1<<c.depth)
}

// ranks finds for each key of a block how many entries of a search tree it is above.
func ranks[K key](tree []K, depth int, keys *[lanes]K, out *[lanes]int32) {
	for from := 0; from < lanes; from += 4 { // four searches hide each other's latency
		four := keys[from : from+4 : from+4]
		ka, kb, kc, kd := four[0], four[1], four[2], four[3]
		a, b, c, d := 1, 1, 1, 1
		for range depth {
			var ra, rb, rc, rd int
			if ka > tree[a] {
				ra = 1
			}
			if kb > tree[b] {
				rb = 1
			}
			if kc > tree[c] {
				rc = 1
			}
			if kd > tree[d] {
				rd = 1
			}
			a, b, c, d = 2*a+ra, 2*b+rb, 2*c+rc, 2*d+rd
		}
		r := out[from : from+4 : from+4]
		base := 1 << depth
		r[0], r[1], r[2], r[3] = int32(a-base), int32(b-base), int32(c-base), int32(d-base)
	}
}
