package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Broadcast as scatter and all-gather. The data is divided into p − 1 chunks, one for each rank
// except the root. The root sends each rank its chunk, and each rank sends its chunk to the p −
// 2 other ranks that need it.
//
//	steps            2 messages in a row; 1 for p = 2, none for p = 1
//	sent by rank r   n elements by the root; (p − 2)·c by the owner of a chunk of c
//	                 elements, which is less than n. In the binomial tree the root
//	                 sends n·log p
//	scratch          none
//	order            nothing is folded
//
// Use it for long data on a flat network up to a few tens of ranks. No rank sends or receives
// more than n elements, and each rank sends as soon as it has its chunk. For more ranks, the
// overhead of p − 2 messages costs more than their bytes, and the chain is faster.
//
// Reference: van de Geijn's broadcast (Barnett et al., "Interprocessor Collective Communication
// Library", SHPCC 1994), here with direct exchanges instead of the tree and the ring of the
// reference, and without a chunk for the root.
func broadcastScatterAllGather() *Algorithm {
	return &Algorithm{
		Name: "scatter-allgather", Collective: program.Broadcast,
		Summary:  "the root deals out chunks, which their owners hand to all",
		Generate: generateBroadcastScatterAllGather, Cost: broadcastScatterAllGatherCost,
	}
}

// ownedChunk returns the chunk that a rank owns if the root owns none: rank root + 1 owns chunk
// 0, rank root + 2 owns chunk 1, and so on, modulo p.
func ownedChunk(pr Params, rank int) int { return (rank - pr.Root - 1 + pr.P) % pr.P }

func generateBroadcastScatterAllGather(pr Params, rank int) *program.Program {
	p := newPart(program.Broadcast, "scatter-allgather", pr, rank, max(1, pr.P-1))
	if rank == pr.Root {
		var sent []program.Dep
		for k := 1; k < pr.P; k++ {
			peer := (rank + k) % pr.P
			sent = append(sent, p.send(p.lane(peer, program.NoPeer), program.Chunk(program.In, 0, ownedChunk(pr, peer))))
		}
		p.copy(p.local(), spanOf(program.Out, 0, p.Out), spanOf(program.In, 0, p.In), sent...)
		return p.Program
	}
	p.In.Hi = 0
	own := program.Chunk(program.Out, 0, ownedChunk(pr, rank))
	have := p.recv(p.lane(program.NoPeer, pr.Root), own)
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		if peer == pr.Root {
			continue
		}
		lane := p.lane(peer, peer)
		p.send(lane, own, have)
		p.recv(lane, program.Chunk(program.Out, 0, ownedChunk(pr, peer)))
	}
	return p.Program
}

func broadcastScatterAllGatherCost(pr Params) program.Cost {
	return program.Cost{
		Steps: min(2, pr.P-1),
		Sent: func(rank int, l program.Layout) int {
			switch {
			case pr.P == 1:
				return 0
			case rank == pr.Root:
				return l.Out[pr.P-1]
			default:
				return (pr.P - 2) * length(l, chunk(ownedChunk(pr, rank)))
			}
		},
	}
}
