package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Binary blocks AllReduce. The ranks are divided into blocks whose sizes are powers of two, one
// block for each set bit of p, the largest block first. Each block does a reduce-scatter by
// recursive halving. Then every block, from the smallest on, sends its pieces to their owners
// in the next larger block. The owners fold the received pieces, as right operands, with their
// own pieces. After all folds, the results are sent back along the same path, and each block
// does an all-gather by recursive doubling. With q the largest power of two not above p:
//
//	steps            2·log2 q messages in a row: the pieces of a block arrive before
//	                 the next larger block has done its own halving
//	sent by rank r   2·n·(s−1)/s elements in a block of s; n/s more to a larger block,
//	                 and n/s more back to a smaller one
//	scratch          none
//	order            the aligned tree over ranks; it is the fold tree over ranks
//	                 (canonical) if p is 1…10…0 in binary, as all powers of two are
//
// Use it for long vectors if p has few set bits, close to each other. If p is a power of two,
// it costs the same as halving-doubling. For other p, it sends as little as half of the bytes
// of halving-doubling. A disadvantage is that a block of one rank exchanges its whole vector in
// pieces, one for each rank of the next block.
//
// Reference: Rabenseifner, Träff, "More Efficient Reduction Algorithms for
// Non-Power-of-Two Number of Processors in Message-Passing Parallel Systems"
// (EuroPVM/MPI 2004).
func binaryBlocks() *Algorithm {
	return &Algorithm{
		Name: "binary-blocks", Collective: program.AllReduce,
		Summary:   "halving-doubling in blocks of powers of two: long vectors, few set bits in p",
		Canonical: alignedIsCanonical, RankOrder: Always, Forests: OnePerRank, Check: alignedForest,
		Generate: generateBinaryBlocks, Cost: binaryBlocksCost,
	}
}

// block is one of the blocks of ranks. Its size is a power of two. The data is divided into one
// window for each rank of the block.
type block struct {
	first  int // first rank of the block
	levels int // log2 of the number of ranks
	width  int // number of chunks of a window
}

// blocksOf returns the blocks of p ranks. The number of chunks of the data is the number of
// ranks of the first block.
func blocksOf(p int) []block {
	var blocks []block
	q := 1 << (bits.Len(uint(p)) - 1)
	first := 0
	for size := q; size > 0; size /= 2 {
		if p&size != 0 {
			blocks = append(blocks, block{first, bits.Len(uint(size)) - 1, q / size})
			first += size
		}
	}
	return blocks
}

// chunks returns the range of chunks that a range of windows has.
func (k block) chunks(windows sharding.Range) sharding.Range {
	return sharding.Range{Lo: windows.Lo * k.width, Hi: windows.Hi * k.width}
}

// owner returns the rank of the block that owns the window to which a chunk belongs.
func (k block) owner(chunk int) int { return k.first + reversed(chunk/k.width, k.levels) }

// owned returns the range of chunks of the window that a rank of the block owns.
func (k block) owned(rank int) sharding.Range {
	w := reversed(rank-k.first, k.levels)
	return k.chunks(sharding.Range{Lo: w, Hi: w + 1})
}

// blockOf returns the index in blocks of the block that a rank is in.
func blockOf(blocks []block, rank int) int {
	i := len(blocks) - 1
	for rank < blocks[i].first {
		i--
	}
	return i
}

// generateBinaryBlocks makes the program of rank in time O(log p) if the neighbouring blocks
// have similar sizes, and in time O(p) if the rank exchanges pieces with a last block of one
// rank.
func generateBinaryBlocks(pr Params, rank int) *program.Program {
	blocks := blocksOf(pr.P)
	b := build(program.AllReduce, "binary-blocks", pr, rank, 1<<blocks[0].levels)
	b.claim(alignedIsCanonical(pr.P), true)
	if pr.P == 1 {
		return b.alone()
	}
	i := blockOf(blocks, rank)
	ownBlock := blocks[i]
	g := &grid{rank: func(member int) int { return ownBlock.first + member }, chunks: ownBlock.chunks}
	levels := levelsOf(rank-ownBlock.first, twos(ownBlock.levels))
	// The lanes to other blocks come first, so that their messages are received before the
	// results of the own block: see openDirect.
	own := ownBlock.owned(rank)
	if i+1 < len(blocks) {
		b.exchangeLane(blocks[i+1].owner(own.Lo))
	}
	for c := own.Lo; i > 0 && c < own.Hi; c += blocks[i-1].width {
		b.exchangeLane(blocks[i-1].owner(c))
	}
	b.openDirect(g, levels)
	from := program.Ref{Buffer: program.In}
	to := program.Ref{Buffer: program.Out}
	for _, l := range levels {
		b.scatterDirect(g, l, from, to)
		from = to
	}
	result := spanOf(program.Out, 0, own)
	smaller := -1
	if i+1 < len(blocks) {
		smaller = b.exchangeLane(blocks[i+1].owner(own.Lo))
		b.recvReduce(smaller, result, spanOf(from.Buffer, 0, own), false)
		from = to
	}
	if i > 0 {
		larger := blocks[i-1]
		for c := own.Lo; c < own.Hi; c += larger.width {
			b.send(b.exchangeLane(larger.owner(c)), program.Span(from.Buffer, 0, c, c+larger.width))
		}
		for c := own.Lo; c < own.Hi; c += larger.width {
			b.recv(b.exchangeLane(larger.owner(c)), program.Span(program.Out, 0, c, c+larger.width))
		}
	}
	if smaller >= 0 {
		b.send(smaller, result)
	}
	for n := len(levels) - 1; n >= 0; n-- {
		b.gatherDirect(g, levels[n])
	}
	return b.finish()
}

func binaryBlocksCost(pr Params) program.Cost {
	p := pr.P
	blocks := blocksOf(p)
	return program.Cost{Steps: 2 * blocks[0].levels, Sent: func(rank int, l program.Layout) int {
		i := blockOf(blocks, rank)
		me := rank - blocks[i].first
		n := l.Out[len(l.Out)-1]
		sent, lo := n, 0
		for j := range blocks[i].levels {
			half := (len(l.Out) - 1) >> (j + 1)
			lo += me >> j & 1 * half
			sent += l.Out[lo+half] - l.Out[lo]
		}
		own := l.Out[lo+(len(l.Out)-1)>>blocks[i].levels] - l.Out[lo]
		sent -= own
		if i > 0 {
			sent += own
		}
		if i+1 < len(blocks) {
			sent += own
		}
		return sent
	}}
}
