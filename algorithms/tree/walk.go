package tree

import (
	"encoding/binary"
	"math/bits"
)

// walk moves up to lanes rows of a block to their leaves. Row i starts at link at[i], and its
// key of slot s is keys[s*lanes+i]. In each turn, all rows that have not reached a leaf take
// one step.
func (l *layout[K]) walk(keys []K, at []int32, sets bool) {
	var on [lanes]int32 // the rows that have not reached a leaf
	for i := range at {
		on[i&(lanes-1)] = int32(i)
	}
	for left := len(at); left > 0; {
		if sets {
			left = l.stepSets(keys, at, on[:left])
		} else {
			left = stepNumbers(l.links, keys, at, on[:left])
		}
	}
}

// stepNumbers takes one step with the rows in on, if no node is categorical. It moves the rows
// that have not reached a leaf to the front of on, and returns their number.
func stepNumbers[K key](links []link[K], keys []K, at, on []int32) int {
	left := 0
	for _, i := range on {
		from := at[i]
		n := &links[from]
		var right int32
		if keys[int(n.slot)*lanes+int(i)] > n.above {
			right = 1
		}
		to := n.left + right
		at[i] = to
		on[left] = i
		moved := 0
		if to != from {
			moved = 1
		}
		left += moved
	}
	return left
}

// stepSets does what stepNumbers does, if some nodes are categorical.
func (l *layout[K]) stepSets(keys []K, at, on []int32) int {
	left := 0
	for _, i := range on {
		from := at[i]
		n := &l.links[from]
		var right int32
		if n.slot < 0 {
			right = l.look(n.above, keys[int(^n.slot)*lanes+int(i)])
		} else if keys[int(n.slot)*lanes+int(i)] > n.above {
			right = 1
		}
		to := n.left + right
		at[i] = to
		on[left] = i
		if to != from {
			left++
		}
	}
	return left
}

// together is the number of trees in which one row walks at the same time.
const together = 16

// walkRow moves one row, whose key of slot s is keys[s], from the links at of several trees to
// its leaves in these trees. In each turn the row takes a step in every tree, until it moves in
// none of them.
func (l *layout[K]) walkRow(keys []K, at []int32) {
	if len(l.sets) > 0 {
		l.walkRowSets(keys, at)
		return
	}
	if len(keys) == 0 { // every tree is a single leaf
		return
	}
	for moved := int32(1); moved != 0; {
		moved = 0
		for i, from := range at {
			n := &l.links[from]
			var right int32
			if keys[n.slot] > n.above {
				right = 1
			}
			to := n.left + right
			moved |= to ^ from
			at[i] = to
		}
	}
}

// walkRowSets does what walkRow does, if some nodes are categorical.
func (l *layout[K]) walkRowSets(keys []K, at []int32) {
	for moved := int32(1); moved != 0; {
		moved = 0
		for i, from := range at {
			n := &l.links[from]
			var right int32
			if n.slot < 0 {
				right = l.look(n.above, keys[^n.slot])
			} else if keys[n.slot] > n.above {
				right = 1
			}
			to := n.left + right
			moved |= to ^ from
			at[i] = to
		}
	}
}

// look returns 1 if rows with the given category go right at the set with the given number, and
// 0 if they go left.
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

// spread maps a byte to a word: bit i of the byte becomes the lowest bit of byte i of the word.
var spread = func() (table [256]uint64) {
	for b := range table {
		for i := range 8 {
			table[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return table
}()

// descend passes the rows of a block through a top, and writes the number of each row's path to
// a.way. The bits of this number are the turns, 1 for right; the first turn is the highest bit.
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

// fillMasks computes the masks of a block of n rows from their keys. The keys of slot s begin
// at keys[s*lanes].
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

// fillSets computes the masks of sets from the keys of a categorical slot.
func (l *layout[K]) fillSets(sets, keys []K, own []uint64) {
	var categories [lanes]K // the distinct categories in the block
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

// fold completes the masks of a slot. Before the call, each row is only in the mask of the
// highest cut that is below its key, or in own[0] if no cut is below its key.
func fold(own []uint64) {
	var rows uint64
	for c := len(own) - 1; c > 0; c-- {
		rows |= own[c]
		own[c] = rows
	}
	own[0] = 0
}

// cuts has the keys of the cuts of a slot as a complete search tree. The smaller keys of entry
// i, counted from 1, are in the subtree of entry 2i, and the larger keys are in the subtree of
// entry 2i+1. Unused entries have the largest key, which no other key exceeds.
type cuts[K key] struct {
	tree  []K
	depth int
	sets  []K // used instead of tree in categorical slots: the numbers of the sets
}

// newCuts returns the search tree of the ascending keys.
func newCuts[K key](keys []K) cuts[K] {
	c := cuts[K]{depth: bits.Len(uint(len(keys)))}
	c.tree = make([]K, 1<<c.depth)
	for i := 1; i < len(c.tree); i++ {
		// Entry i of level l has (2(i-2^l)+1)*2^(depth-l-1)-1 entries before it in ascending
		// order.
		level := bits.Len(uint(i)) - 1
		before := (2*(i-1<<level)+1)<<(c.depth-level-1) - 1
		c.tree[i] = ^lowest[K]()
		if before < len(keys) {
			c.tree[i] = keys[before]
		}
	}
	return c
}

// rank returns the number of cuts that are below the key k. It returns 0 in categorical slots.
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

// ranks writes to out, for each of the keys of a block, the number of entries of the search
// tree that are below the key.
func ranks[K key](tree []K, depth int, keys *[lanes]K, out *[lanes]int32) {
	for from := 0; from < lanes; from += 4 { // four interleaved searches hide each other's latency
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
