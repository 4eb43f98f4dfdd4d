package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Halving-doubling AllReduce (Rabenseifner's): a reduce-scatter by recursive halving, then an
// all-gather by recursive doubling. At distances 1, 2, 4…, two partners halve their common
// window. Each partner sends the half of the other partner and folds its own half, with the
// contribution of lower ranks as left operand. The all-gather reverses these exchanges. If p is
// not a power of two, the first 2r ranks fold in pairs before that, and the second rank of each
// pair gets the result afterwards. With q the largest power of two not above p, r = p − q:
//
//	steps            2·log2 q messages in a row, and 2 if r > 0
//	sent by rank r   2·n·(q−1)/q elements, if q divides n; n more by the first rank
//	                 of a pair; only n by the second rank of a pair
//	scratch          none
//	order            the fold tree over ranks (canonical)
//
// Use it for long vectors if p is a power of two: no algorithm sends fewer elements, and few
// algorithms take fewer steps. If p is not a power of two, the pairs double the cost, and the
// direct exchange or a ring sends fewer elements.
//
// Halving begins at distance 1, which keeps the order of ranks; other implementations begin at
// q/2. So windows are owned in bit-reversed order, which does not matter for an AllReduce. The
// messages of pairs are divided like the messages of the levels, so that pieces can be passed
// on as they arrive. In Rabenseifner's algorithm, each rank of a pair reduces one half. That
// divides the arithmetic between the two ranks, but needs one more message in a row and sends
// half a vector more.
//
// Reference: Rabenseifner, "Optimization of Collective Reduction Operations" (ICCS
// 2004).
func halvingDoubling() *Algorithm {
	return &Algorithm{
		Name: "halving-doubling", Collective: program.AllReduce,
		Summary:   "exchange halves, quarters…, and back: for long vectors, best at powers of two",
		Canonical: Always, RankOrder: Always, Forests: OnePerRank,
		Generate: generateHalvingDoubling, Cost: halvingDoublingCost,
	}
}

// generateHalvingDoubling makes the program of rank in time O(log p).
func generateHalvingDoubling(pr Params, rank int) *program.Program {
	f := foldRanks(pr.P)
	b := build(program.AllReduce, "halving-doubling", pr, rank, f.members)
	b.claim(true, true)
	if pr.P == 1 {
		return b.alone()
	}
	g := &grid{rank: f.rank, chunks: windowsAreChunks}
	me, acts := f.member(rank)
	levels := levelsOf(me, twos(f.levels))
	if !acts {
		b.followMember(g, levels, rank-1)
		return b.finish()
	}
	b.openDirect(g, levels)
	from := program.Ref{Buffer: program.In}
	to := program.Ref{Buffer: program.Out}
	if f.paired(me) {
		b.foldFollower(g, levels[0], to, rank+1)
		from = to
	}
	for _, l := range levels {
		b.scatterDirect(g, l, from, to)
		from = to
	}
	for i := len(levels) - 1; i >= 0; i-- {
		b.gatherDirect(g, levels[i])
	}
	if f.paired(me) {
		lane := b.exchangeLane(rank + 1)
		for _, piece := range resultPieces(levels) {
			b.send(lane, g.refOf(program.Out, 0, piece))
		}
	}
	return b.finish()
}

func windowsAreChunks(windows sharding.Range) sharding.Range { return windows }

// foldFollower adds the instructions that fold the contribution of follower, the second rank of
// a pair, in the two parts of the first level. The part that is sent on is folded first.
func (b *builder) foldFollower(g *grid, first level, to program.Ref, follower int) {
	for _, i := range [2]int{1 - first.digit, first.digit} {
		part := g.refOf(to.Buffer, to.Slot, first.part(i))
		b.recvReduce(b.exchangeLane(follower), part, spanOf(program.In, 0, part.Chunks), false)
	}
}

// followMember adds all instructions of the second rank of a pair, whose first rank is leader.
func (b *builder) followMember(g *grid, levels []level, leader int) {
	lane := b.exchangeLane(leader)
	for _, i := range [2]int{1 - levels[0].digit, levels[0].digit} {
		b.send(lane, g.refOf(program.In, 0, levels[0].part(i)))
	}
	for _, piece := range resultPieces(levels) {
		b.recv(lane, g.refOf(program.Out, 0, piece))
	}
}

// resultPieces returns the pieces in which a member gets the result if all its levels have size
// 2: its own window, then the windows that each level of the all-gather adds.
func resultPieces(levels []level) []sharding.Range {
	last := len(levels) - 1
	pieces := []sharding.Range{levels[last].own()}
	for i := last; i >= 0; i-- {
		pieces = append(pieces, levels[i].part(1-levels[i].digit))
	}
	return pieces
}

// halvingDoublingCost returns the cost of halving-doubling. While halving, a member sends a
// piece of every window except its own. While doubling, it sends the windows that it has at
// each level.
func halvingDoublingCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	f := foldRanks(pr.P)
	steps := 2 * f.levels
	if f.pairs > 0 {
		steps += 2
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int {
		n := l.Out[f.members]
		me, acts := f.member(rank)
		if !acts {
			return n
		}
		// The final window of the member has the member's number with reversed bits. At each
		// level, the member sends the windows that share its first bits.
		sent, lo := n, 0
		for i := range f.levels {
			lo += me >> i & 1 * (f.members >> (i + 1))
			sent += l.Out[lo+f.members>>(i+1)] - l.Out[lo]
		}
		sent -= l.Out[lo+1] - l.Out[lo]
		if f.paired(me) {
			sent += n
		}
		return sent
	}}
}
