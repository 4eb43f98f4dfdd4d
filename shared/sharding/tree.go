package sharding

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// MaxShards is the largest number of shards a job may have.
const MaxShards = 1 << 20

// maxLevel is the highest level for which 2^level, the number of shards of a node, fits in an
// int.
const maxLevel = bits.UintSize - 2

// ValidShards returns an error unless s is a power of two in 1..MaxShards.
func ValidShards(s int) error {
	if s < 1 || s > MaxShards || s&(s-1) != 0 {
		return fmt.Errorf("sharding: %d shards: want a power of two between 1 and %d", s, MaxShards)
	}
	return nil
}

// Node is a node of the aligned binary tree over the shards: it covers the 2^Level shards
// [Index<<Level, (Index+1)<<Level). Leaves have level 0. A Node does not depend on the number
// of shards: it covers the same shards in every tree that is large enough to contain it.
type Node struct{ Level, Index int }

// Leaf returns the node of one shard.
func Leaf(shard int) Node { return Node{0, shard} }

// Range returns the shards that n covers.
func (n Node) Range() Range { return Range{n.Index << n.Level, (n.Index + 1) << n.Level} }

// Parent returns the node one level up that covers n.
func (n Node) Parent() Node { return Node{n.Level + 1, n.Index >> 1} }

// Left returns the lower half of n. A leaf has no halves: for a leaf Left returns a node of
// level -1, which is not valid.
func (n Node) Left() Node { return Node{n.Level - 1, n.Index << 1} }

// Right returns the upper half of n. For a leaf, like Left, it returns a node that is not
// valid.
func (n Node) Right() Node { return Node{n.Level - 1, n.Index<<1 | 1} }

// Sibling returns the other child of n's parent.
func (n Node) Sibling() Node { return Node{n.Level, n.Index ^ 1} }

// IsLeft reports whether n is the lower half of its parent.
func (n Node) IsLeft() bool { return n.Index&1 == 0 }

// Contains reports whether n covers every shard of o; a node contains itself.
func (n Node) Contains(o Node) bool {
	return o.Level <= n.Level && o.Index>>(n.Level-o.Level) == n.Index
}

// String writes n as "level:index".
func (n Node) String() string { return strconv.Itoa(n.Level) + ":" + strconv.Itoa(n.Index) }

// valid reports whether the shards that n covers fit in an int.
func (n Node) valid() bool {
	return n.Level >= 0 && n.Level <= maxLevel && n.Index >= 0 && n.Index < math.MaxInt>>n.Level
}

// lo returns the first shard of n.
func (n Node) lo() int { return n.Index << n.Level }

// ancestorLevel returns the level of the lowest common ancestor of two disjoint nodes that
// start at shards a and b.
func ancestorLevel(a, b int) int { return bits.Len(uint(a ^ b)) }

// Cover returns the fewest aligned nodes that together cover exactly r, left to right: at most
// 2·log2(r.Len()) nodes for r.Len() > 1. Negative shards are left out.
func Cover(r Range) []Node { return AppendCover(nil, r) }

// AppendCover appends Cover(r) to dst and returns the extended slice.
func AppendCover(dst []Node, r Range) []Node {
	lo := max(r.Lo, 0)
	for lo < r.Hi {
		// The widest node that starts at lo is bounded by lo's alignment and by the remaining
		// length.
		level := bits.Len(uint(r.Hi-lo)) - 1
		if lo != 0 {
			level = min(level, bits.TrailingZeros(uint(lo)))
		}
		dst = append(dst, Node{level, lo >> level})
		lo += 1 << level
	}
	return dst
}
