package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Direct AllReduce. Every rank owns one chunk. A rank sends to each other rank the piece of its
// contribution that belongs to that rank's chunk, folds the pieces of its own chunk, and sends
// the result to all ranks.
//
//	steps            2 messages in a row (none for p = 1); for a forest, 1 more than the
//	                 largest number of nodes of a rank
//	sent by rank r   (n − c) + (p − 1)·c elements, where c is the length of chunk r;
//	                 2·n·(p−1)/p if p divides n, the minimum of all algorithms. For a
//	                 forest, n − c for each node of r, and (p − 1)·c
//	scratch          (p − 1)·c elements; for a forest, c for each node of other ranks
//	order            the fold tree over ranks, or the aligned tree over the shards of
//	                 any forest (canonical); an owner has all pieces before it folds,
//	                 so any order costs the same
//
// It is the best choice on a flat network up to a few tens of ranks. For more ranks, p − 1
// simultaneous messages to one rank congest the switch, and the overhead per message becomes
// large.
//
// This is the exchange of Alink's AllReduce (AllReduceSend, AllReduceSum, AllReduceRecv on
// by-subtask edges; Yang et al., "Alink: A General Machine Learning Platform Based on Apache
// Flink"), with pieces of any length, with all ranks as owners for any length of the data, and
// with a fixed order of summation. As a reduce-scatter followed by an all-gather it is the
// radix-p case of BlueConnect (Cho et al., MLSys 2019).

// Direct returns the direct AllReduce.
func Direct() *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: program.AllReduce,
		Summary:   "every rank owns a chunk: two exchanges, all pairs at once",
		Canonical: Always, RankOrder: Always, Forests: AnyForest, Check: checkReduceLinear,
		Generate: generateDirect, Cost: directCost,
	}
}

// generateDirect makes the program of rank in time O(p), or in the time of sorting the nodes of
// a forest. Lane 0 folds. Lane k exchanges with rank (rank + k) mod p, so that the ranks do not
// all send to the same rank first.
func generateDirect(pr Params, rank int) *program.Program {
	part := newPart(program.AllReduce, "direct", pr, rank, pr.P)
	part.CanonicalTree, part.RankOrder = true, true
	part.foldOwned(pr)
	result := []program.Ref{program.Chunk(program.Out, 0, rank)}
	folded := []program.Dep{{Lane: 0, Step: 0}}
	sent := make([]program.Dep, pr.P) // the first input may be the same memory as the output
	for k := 1; k < pr.P; k++ {
		l := &part.Lanes[k]
		come := program.Instruction{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, l.SendPeer)}
		if contributions(pr, rank) > 0 {
			sent[k] = program.Dep{Lane: k, Step: 0}
			come.After = sent[k : k+1 : k+1]
		}
		l.Steps = append(l.Steps, program.Instruction{Op: program.DoSend, Src: result, After: folded}, come)
	}
	return part.Program
}

// foldOwned makes rank r the owner of chunk r: every rank sends its contributions to the chunk,
// and the only instruction of lane 0 folds them into the output. Lane k exchanges with rank
// (rank + k) mod p.
func (p partOf) foldOwned(pr Params) {
	rank, own := p.Rank, chunk(p.Rank)
	leaves, steps, _ := reducePartials(pr) // the error is nil: Check has called reducePartials
	fold := program.Instruction{Op: program.DoReduce, Dst: program.Chunk(program.Out, 0, rank),
		Src: make([]program.Ref, len(leaves)), Fold: steps}
	for i, l := range leaves {
		if l.rank == rank {
			fold.Src[i] = program.Chunk(program.In, l.node, rank)
		}
	}
	leavesOf := leavesByRank(leaves, pr.P)
	contributed := len(leavesOf[rank])
	p.Lanes = make([]program.Lane, pr.P)
	// Allocate the instructions and references of all lanes together: there may be thousands of
	// them.
	slab := make([]program.Instruction, 0, len(leaves)+(pr.P-1)*(contributed+2))
	sources := make([]program.Ref, 0, (pr.P-1)*contributed)
	p.Scratch = make([]sharding.Range, 0, len(leaves)-contributed)
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		l := &p.Lanes[k]
		*l = program.Lane{SendPeer: peer, RecvPeer: peer}
		start := len(slab)
		for j := range contributed {
			sources = append(sources, program.Chunk(program.In, j, peer))
			n := len(sources)
			slab = append(slab, program.Instruction{Op: program.DoSend, Src: sources[n-1 : n : n]})
		}
		for _, i := range leavesOf[peer] {
			fold.Src[i] = program.Chunk(program.Scratch, p.newSlot(own), rank)
			slab = append(slab, program.Instruction{Op: program.DoRecv, Dst: fold.Src[i]})
		}
		if len(leavesOf[peer]) > 0 {
			fold.After = append(fold.After, program.Dep{Lane: k, Step: len(slab) - 1 - start})
		}
		end := len(slab) + 2 // for the two instructions that exchange results
		l.Steps = slab[start:len(slab):end]
		slab = slab[:end]
	}
	if len(leaves) == 1 {
		fold.Op, fold.Fold = program.DoCopy, nil
	}
	p.Lanes[0] = program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer, Steps: []program.Instruction{fold}}
}

// leavesByRank returns, for each rank, the indices of its leaves.
func leavesByRank(leaves []partial, p int) [][]int {
	begins := make([]int, p+1)
	for _, l := range leaves {
		begins[l.rank+1]++
	}
	for r := range p {
		begins[r+1] += begins[r]
	}
	all := make([]int, len(leaves))
	byRank := make([][]int, p)
	for r := range byRank {
		byRank[r] = all[begins[r]:begins[r]:begins[r+1]]
	}
	for i, l := range leaves {
		byRank[l.rank] = append(byRank[l.rank], i)
	}
	return byRank
}

// directCost returns the cost of the direct AllReduce. The owner of a chunk of c elements sends
// n − c elements for each contribution, and (p − 1)·c elements for the result.
func directCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: maxNodes(pr, 0) + 1, Sent: func(rank int, l program.Layout) int {
		c := length(l, chunk(rank))
		return contributions(pr, rank)*(l.Out[pr.P]-c) + (pr.P-1)*c
	}}
}

// contributions returns the number of buffers that a rank contributes.
func contributions(pr Params, rank int) int {
	if pr.Forest == nil {
		return 1
	}
	return len(pr.Forest[rank])
}

// maxNodes returns the largest number of buffers that any rank ≥ first contributes.
func maxNodes(pr Params, first int) int {
	n := 0
	for r := first; r < pr.P; r++ {
		n = max(n, contributions(pr, r))
	}
	return n
}
