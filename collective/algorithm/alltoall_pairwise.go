package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Pairwise AllToAll, by shifts. In round k = 1..p−1, rank r sends to rank (r+k) mod p
// and receives from rank (r−k) mod p, one round at a time.
//
//	steps            p − 1 messages in a row
//	sent by rank r   all blocks, of any length, except the block for itself
//	scratch          the blocks from half of the other ranks
//	order            nothing is folded
//
// Use it for large blocks: every link carries one message in each direction at a time, and no
// two ranks send to the same rank at the same time.
//
// Input and output may be the same memory. In round k, rank r receives the block from rank r −
// k. The place of this block in the output is the memory of the block for rank r − k, which
// rank r sends only in round p − k. So in the first half of the rounds, blocks are received
// into scratch.
//
// Reference: folklore. This is the shifted form of Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH" (IJHPCA 19, 2005).
func allToAllPairwise() *Algorithm {
	return &Algorithm{
		Name: "pairwise", Collective: program.AllToAll,
		Summary:  "one shift after another, each rank sending to one and receiving from one",
		Generate: generateAllToAllPairwise, Cost: allToAllPairwiseCost,
	}
}

func generateAllToAllPairwise(pr Params, rank int) *program.Program {
	p := exchangeAll("pairwise", pr, rank)
	sent := make([]program.Dep, pr.P)
	var before []program.Dep // the send and the receive of the previous round
	var staged []int         // scratch slot of each round of the first half
	for k := 1; k < pr.P; k++ {
		to, from := (rank+k)%pr.P, (rank-k+pr.P)%pr.P
		lane := p.lane(to, from)
		sent[k] = p.send(lane, program.Chunk(program.In, 0, to), before...)
		dst := program.Chunk(program.Out, 0, from)
		if 2*k <= pr.P {
			slot := p.newSlot(chunk(from))
			staged = append(staged, slot)
			dst = program.Chunk(program.Scratch, slot, from)
		}
		received := p.recv(lane, dst, before...)
		before = []program.Dep{sent[k], received}
	}
	for i, slot := range staged {
		k := i + 1
		from := (rank - k + pr.P) % pr.P
		p.copy(sent[k].Lane, program.Chunk(program.Out, 0, from), program.Chunk(program.Scratch, slot, from), sent[pr.P-k])
	}
	return p.Program
}

func allToAllPairwiseCost(pr Params) program.Cost {
	return program.Cost{Steps: pr.P - 1, Sent: allToAllSends(pr).Sent}
}
