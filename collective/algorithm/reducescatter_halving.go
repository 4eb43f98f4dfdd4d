package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Recursive halving ReduceScatter. At distances 1, 2, 4…, two partners halve their common
// window. Each partner sends the half of the other partner and folds its own half, with the
// contribution of lower ranks as left operand. If p is not a power of two, the first 2r ranks
// fold in pairs before that. The final windows of the ranks are in bit-reversed order, so a
// last message sends each chunk to its owner. With q the largest power of two not above p, r =
// p − q:
//
//	steps            log2 q messages in a row, 1 more if q > 2 or r > 0, and 1 more if
//	                 r > 0
//	sent by rank r   n elements; n minus the length of chunk r if the final window
//	                 of rank r has chunk r
//	scratch          half of the chunks (all chunks on the first ranks of pairs)
//	order            the fold tree over ranks (canonical)
//
// Use it for short and medium lengths among many ranks. Beginning at distance q/2 would save
// the last message of at most n/q elements, but would fold ranks 0 and q/2 first.
//
// Reference: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH" (IJHPCA 19, 2005), which permutes the data instead.
func halvingReduceScatter() *Algorithm {
	return &Algorithm{
		Name: "halving", Collective: program.ReduceScatter,
		Summary:   "exchange halves, quarters…: few steps, for short vectors or many ranks",
		Canonical: Always, RankOrder: Always, Forests: OnePerRank,
		Generate: generateHalvingReduceScatter, Cost: halvingReduceScatterCost,
	}
}

// reversed returns x, a number of bitsOf bits, with its bits reversed. It maps a member to its
// final window, and a window to the member that has it.
func reversed(x, bitsOf int) int {
	return int(bits.Reverse64(uint64(x)) >> (64 - bitsOf))
}

// generateHalvingReduceScatter makes the program of rank in time O(log p). Window m has the
// chunks of the ranks of member m.
func generateHalvingReduceScatter(pr Params, rank int) *program.Program {
	b := build(program.ReduceScatter, "halving", pr, rank, pr.P)
	b.claim(true, true)
	b.Out = chunk(rank)
	if pr.P == 1 {
		return b.alone()
	}
	f := foldRanks(pr.P)
	g := &grid{rank: f.rank, chunks: f.ranks}
	me, acts := f.member(rank)
	holder := f.rank(reversed(me, f.levels)) // the rank whose final window has this rank's chunk
	out := program.Chunk(program.Out, 0, rank)
	levels := levelsOf(me, twos(f.levels))
	if !acts {
		for _, i := range [2]int{1 - levels[0].digit, levels[0].digit} {
			b.send(b.exchangeLane(rank-1), g.refOf(program.In, 0, levels[0].part(i)))
		}
		b.recv(b.exchangeLane(holder), out)
		return b.finish()
	}

	partial := program.Ref{Buffer: program.Scratch}
	from := program.Ref{Buffer: program.In}
	room := levels[0].own()
	if f.paired(me) {
		room = sharding.Range{Lo: 0, Hi: f.members}
	}
	own := sharding.Range{Lo: me, Hi: me + 1}
	if levels[0].own() != own || f.paired(me) {
		b.newSlot(g.chunks(room))
	}
	if f.paired(me) {
		b.foldFollower(g, levels[0], partial, rank+1)
		from = partial
	}
	for _, l := range levels {
		to := partial
		if l.own() == own && !f.paired(me) {
			to = program.Ref{Buffer: program.Out} // the final window has only this rank's chunk
		}
		b.scatterDirect(g, l, from, to)
		from = to
	}
	b.distribute(g, f, me, partial)
	switch {
	case holder != rank:
		b.recv(b.exchangeLane(holder), out)
	case f.paired(me):
		b.copy(out, spanOf(program.Scratch, 0, out.Chunks))
	}
	return b.finish()
}

// distribute adds messages that send the chunks of a member's final window to their owners.
func (b *builder) distribute(g *grid, f foldedRanks, me int, partial program.Ref) {
	w := reversed(me, f.levels)
	for _, owner := range []int{f.rank(w), f.rank(w) + 1} {
		if f.ranks(sharding.Range{Lo: w, Hi: w + 1}).Contains(owner) && owner != b.Rank {
			b.send(b.exchangeLane(owner), spanOf(partial.Buffer, partial.Slot, chunk(owner)))
		}
	}
}

// halvingReduceScatterCost returns the cost of the algorithm. A member sends a piece of every
// window except its final window, and then the chunks of its final window except its own chunk.
func halvingReduceScatterCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	f := foldRanks(pr.P)
	steps := f.levels
	if f.members > 2 || f.pairs > 0 {
		steps++
	}
	if f.pairs > 0 {
		steps++
	}
	return program.Cost{Steps: steps, Sent: func(rank int, l program.Layout) int {
		n := l.Out[pr.P]
		if me, acts := f.member(rank); acts && reversed(me, f.levels) == me {
			n -= length(l, chunk(rank))
		}
		return n
	}}
}
