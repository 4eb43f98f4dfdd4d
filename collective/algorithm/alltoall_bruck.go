package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Bruck AllToAll, for blocks of equal length. Block i of rank r is the block for rank r + i,
// modulo p. It travels in steps of the powers of two whose sum is i, the smallest first. In
// round k, rank r packs all blocks i that it has and in which bit k of i is set, and sends them
// in one message to rank r + 2^k.
//
//	steps            ⌈log2 p⌉ messages in a row
//	sent by rank r   for each k, the blocks i < p with bit k set: in all about
//	                 (p/2)·⌈log2 p⌉ blocks; other algorithms send p − 1
//	scratch          the largest message and all received messages, about
//	                 (p/2)·(⌈log2 p⌉ + 1) blocks
//	order            nothing is folded
//
// Use it for very small blocks and many ranks, where messages cost more than bytes.
//
// Reference: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport
// Message-Passing Systems" (IEEE Trans. Parallel Distrib. Syst. 8, 1997): index. In contrast to
// the paper, blocks are not rotated at the beginning. They are packed in descending order of i,
// so that the last blocks to arrive are contiguous in the output.
func allToAllBruck() *Algorithm {
	return &Algorithm{
		Name: "bruck", Collective: program.AllToAll,
		Summary:  "blocks travel together, by powers of two",
		EvenOnly: true,
		Generate: generateAllToAllBruck, Cost: allToAllBruckCost,
	}
}

// withBit returns how many numbers below n have bit k set.
func withBit(n, k int) int {
	low := n & (1<<k - 1)
	count := n >> (k + 1) << k
	if n>>k&1 == 1 {
		count += low
	}
	return count
}

// bruckPlace returns the index of block i in the message of round k. Blocks are in descending
// order, so block i comes after all blocks with greater i.
func bruckPlace(p, k, i int) int { return withBit(p, k) - 1 - withBit(i, k) }

func generateAllToAllBruck(pr Params, rank int) *program.Program {
	p := exchangeAll("bruck", pr, rank)
	if pr.P == 1 {
		return p.Program
	}
	rounds := bits.Len(uint(pr.P - 1))
	maxSlots := 0
	for k := range rounds {
		maxSlots = max(maxSlots, withBit(pr.P, k))
	}
	p.newSlot(sharding.Range{Lo: 0, Hi: maxSlots})
	pack := p.local()
	var before []program.Dep // the send and the receive of the previous round
	for k := range rounds {
		packed := p.packBruck(pack, k, before)
		lane := p.lane((rank+1<<k)%pr.P, (rank-1<<k+pr.P)%pr.P)
		n := withBit(pr.P, k)
		slot := p.newSlot(sharding.Range{Lo: 0, Hi: n})
		sent := p.send(lane, program.Span(program.Scratch, bruckMessage, 0, n), packed)
		received := p.recv(lane, program.Span(program.Scratch, slot, 0, n))
		before = []program.Dep{sent, received}
	}
	// Blocks i with 2^k ≤ i < 2^(k+1) arrived at their destination in round k. Block i came
	// from rank rank − i, modulo p. The lane pack has read the whole input by now, so the
	// output may be the memory of the input.
	for k := range rounds {
		hi := min(2<<k, pr.P) - 1
		slotIndex := bruckPlace(pr.P, k, hi)
		for _, r := range circular((rank-hi+pr.P)%pr.P, hi+1-1<<k, pr.P) {
			p.copy(pack, spanOf(program.Out, 0, r), program.Span(program.Scratch, bruckReceive+k, slotIndex, slotIndex+r.Len()), before...)
			slotIndex += r.Len()
		}
	}
	return p.Program
}

// These are the scratch slots: one for the message to send, and one for each received message.
const (
	bruckMessage = 0
	bruckReceive = 1 // slot of the message received in round 0; round k has slot bruckReceive + k
)

// packBruck packs the message of round k and returns its last instruction.
func (p partOf) packBruck(lane, k int, before []program.Dep) (last program.Dep) {
	for base := 1 << k; base < p.P; base += 2 << k {
		// Of the blocks base to base+2^k−1, block base is still in the input. Every other block
		// arrived in the round of its highest bit below bit k. The blocks that arrived in the
		// same round are contiguous in the slot of that round, in the order of the message.
		for j := k - 1; j >= 0; j-- {
			lo, hi := base+1<<j, min(base+2<<j, p.P)
			if n := hi - lo; n > 0 {
				to, from := bruckPlace(p.P, k, hi-1), bruckPlace(p.P, j, hi-1)
				p.copy(lane, program.Span(program.Scratch, bruckMessage, to, to+n),
					program.Span(program.Scratch, bruckReceive+j, from, from+n), before...)
				before = nil // later instructions of this lane need no dependency, since a lane runs in order
			}
		}
		last = p.copy(lane, program.Chunk(program.Scratch, bruckMessage, bruckPlace(p.P, k, base)),
			program.Chunk(program.In, 0, (p.Rank+base)%p.P), before...)
		before = nil
	}
	return last
}

func allToAllBruckCost(pr Params) program.Cost {
	return program.Cost{Steps: bits.Len(uint(pr.P - 1)), Sent: func(_ int, l program.Layout) int {
		sent := 0
		for d, k := 1, 0; d < pr.P; d, k = d*2, k+1 {
			sent += l.Out[withBit(pr.P, k)]
		}
		return sent
	}}
}
