package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Chain Broadcast. The root sends the data to rank root + 1, which sends it to rank root + 2,
// and so on, modulo p, up to rank root − 1.
//
//	steps            p − 1 messages in a row; p − 2 + S if an executor cuts the data
//	                 into S segments and pipelines them
//	sent by rank r   n elements; nothing by the last rank
//	scratch          none
//	order            nothing is folded
//
// Use it for very long data: every link carries every byte once, whatever p is, and each rank
// has only two neighbours. Latency grows with p, so any other algorithm is better for short
// data.
//
// Reference: the pipelined chain of Träff and Ripke, "Optimal Broadcast for Fully Connected
// Processor-Node Networks" (J. Parallel Distrib. Comput. 68, 2008).
func broadcastChain() *Algorithm {
	return &Algorithm{
		Name: "chain", Collective: program.Broadcast,
		Summary:  "from rank to rank, in segments that follow each other",
		Generate: generateBroadcastChain, Cost: broadcastChainCost,
	}
}

func generateBroadcastChain(pr Params, rank int) *program.Program {
	p := newPart(program.Broadcast, "chain", pr, rank, 1)
	next, before := (rank+1)%pr.P, (rank-1+pr.P)%pr.P
	switch {
	case pr.P == 1:
		p.copy(p.local(), whole(program.Out), whole(program.In))
		return p.Program
	case rank == pr.Root:
		sent := p.send(p.lane(next, program.NoPeer), whole(program.In))
		p.copy(p.local(), whole(program.Out), whole(program.In), sent)
		return p.Program
	case next == pr.Root:
		p.recv(p.lane(program.NoPeer, before), whole(program.Out))
	default:
		p.add(p.lane(next, before), program.Instruction{Op: program.DoRecvCopySend, Dst: whole(program.Out)}, nil)
	}
	p.In.Hi = 0
	return p.Program
}

func broadcastChainCost(pr Params) program.Cost {
	return program.Cost{Steps: pr.P - 1, Sent: func(rank int, l program.Layout) int {
		if (rank+1)%pr.P == pr.Root {
			return 0
		}
		return l.Out[1]
	}}
}
