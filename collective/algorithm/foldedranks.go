package algorithm

import (
	"fmt"
	"math/bits"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// foldedRanks maps ranks to members for algorithms that need a power of two. Let q be the
// largest power of two not above p, and r = p − q. Each of the first r pairs of ranks (2i,
// 2i+1) is one member, for which rank 2i sends and receives. Every other rank is a member by
// itself. The order of ranks is kept, and folding pairs first and then members at distance 1,
// 2, 4… is the canonical fold tree over ranks (sharding.RankSchedule).
type foldedRanks struct {
	members int // q
	pairs   int // r
	levels  int // log2 q
}

func foldRanks(p int) foldedRanks {
	levels := bits.Len(uint(p)) - 1
	return foldedRanks{1 << levels, p - 1<<levels, levels}
}

// rank returns the rank that sends and receives for a member.
func (f foldedRanks) rank(member int) int { return member + min(member, f.pairs) }

// member returns the number m of the member to which a rank belongs, and whether the rank sends
// and receives for that member.
func (f foldedRanks) member(rank int) (m int, acts bool) {
	if rank < 2*f.pairs {
		return rank / 2, rank%2 == 0
	}
	return rank - f.pairs, true
}

// paired reports whether a member is a pair of ranks.
func (f foldedRanks) paired(member int) bool { return member < f.pairs }

// ranks returns the range of the ranks that belong to a range of members.
func (f foldedRanks) ranks(members sharding.Range) sharding.Range {
	return sharding.Range{Lo: f.rank(members.Lo), Hi: f.rank(members.Hi)}
}

// alignedIsCanonical reports whether the aligned tree over p leaves in order is the fold tree
// over p ranks. The aligned tree is the tree of sharding.FoldSchedule, of a binomial reduction,
// and of binary blocks. The number of leaves of the left subtree of the aligned tree is the
// largest power of two below p. The left subtree of the fold tree has the same number of leaves
// only if all members in it are pairs. The same holds for subtrees further down. So the trees
// are equal if and only if p is 1…10…0 in binary.
func alignedIsCanonical(p int) bool {
	top := p + p&-p
	return top&(top-1) == 0
}

// alignedForest returns an error if pr has a forest and the aligned tree over its number of
// ranks is not the canonical tree.
func alignedForest(pr Params) error {
	if pr.Forest != nil && !alignedIsCanonical(pr.P) {
		return fmt.Errorf("a forest of %d ranks would not be folded in its aligned tree: want 1, 2, 3, 4, 6, 7, 8, 12… ranks (1…10…0 in binary)", pr.P)
	}
	return nil
}
