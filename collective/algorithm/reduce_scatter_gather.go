package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Reduce as reduce-scatter and gather. The data is divided into p − 1 chunks, one for each rank
// except the root. Every rank sends to each owner the piece of its data that belongs to the
// owner's chunk. The owners fold the pieces and send the results to the root.
//
//	steps            2 messages in a row (none for p = 1)
//	sent by rank r   n elements, also by the root
//	scratch          p·c elements, where c is the length of the chunk of rank r; none at
//	                 the root
//	order            the fold tree over ranks (canonical); an owner has all p pieces
//	                 before it folds
//
// Use it for long data on a flat network up to a few tens of ranks: no link carries more than n
// elements in a direction, and the arithmetic is divided among p − 1 ranks. With two ranks the
// linear reduce is better.
//
// Reference: Rabenseifner, "Optimization of Collective Reduction Operations" (ICCS 2004), here
// with direct exchanges instead of recursive halving and the binomial gather, since direct
// exchanges give the canonical order for every p.
func reduceScatterGather() *Algorithm {
	return &Algorithm{
		Name: "scatter-gather", Collective: program.Reduce,
		Summary:   "every other rank folds a chunk and sends it to the root",
		Canonical: Always, RankOrder: Always, Forests: OnePerRank,
		Generate: generateReduceScatterGather, Cost: reduceScatterGatherCost,
	}
}

func generateReduceScatterGather(pr Params, rank int) *program.Program {
	p := newPart(program.Reduce, "scatter-gather", pr, rank, max(1, pr.P-1))
	p.CanonicalTree, p.RankOrder = true, true
	if rank == pr.Root {
		for k := 1; k < pr.P; k++ {
			peer := (rank + k) % pr.P
			c, lane := ownedChunk(pr, peer), p.lane(peer, peer)
			sent := p.send(lane, program.Chunk(program.In, 0, c))
			p.recv(lane, program.Chunk(program.Out, 0, c), sent)
		}
		if pr.P == 1 {
			p.copy(p.local(), whole(program.Out), whole(program.In))
		}
		return p.Program
	}
	p.Out = sharding.Range{}
	own := ownedChunk(pr, rank)
	result := program.Chunk(program.Scratch, p.newSlot(chunk(own)), own)
	fold := program.Instruction{Op: program.DoReduce, Dst: result,
		Src: make([]program.Ref, pr.P), Fold: sharding.RankSchedule(pr.P, nil)}
	fold.Src[rank] = program.Chunk(program.In, 0, own)
	var received []program.Dep
	toRoot := -1
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		fold.Src[peer] = program.Chunk(program.Scratch, p.newSlot(chunk(own)), own)
		if peer == pr.Root {
			toRoot = p.lane(peer, peer)
			received = append(received, p.recv(toRoot, fold.Src[peer]))
			continue
		}
		lane := p.lane(peer, peer)
		p.send(lane, program.Chunk(program.In, 0, ownedChunk(pr, peer)))
		received = append(received, p.recv(lane, fold.Src[peer]))
	}
	folded := p.add(p.local(), fold, received)
	p.send(toRoot, result, folded)
	return p.Program
}

func reduceScatterGatherCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: 2, Sent: func(_ int, l program.Layout) int { return l.Out[pr.P-1] }}
}
