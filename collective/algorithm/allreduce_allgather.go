package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// All-gather and reduce. Every rank sends its contributions to every other rank, and folds the
// contributions of all ranks itself.
//
//	steps            1 message (none for p = 1); for a forest, the largest number of
//	                 nodes of a rank
//	sent by rank r   (p − 1)·n elements for each of its contributions
//	scratch          n elements for each contribution of other ranks
//	order            the fold tree over ranks, or the aligned tree over the shards of
//	                 any forest (canonical); every rank has all contributions
//	                 before it folds
//
// Use it for vectors of a few elements among a few ranks: no algorithm has fewer steps, but all
// data is sent and folded p times. Every pair of ranks exchanges its messages directly.
// Gathering by recursive doubling would need fewer connections, but the same number of
// messages, since a message holds only one buffer.
//
// Reference: Open MPI's allgather_reduce (coll/base).
func allGatherReduce() *Algorithm {
	return &Algorithm{
		Name: "allgather-reduce", Collective: program.AllReduce,
		Summary:   "everybody sends everything to all and folds it: one step, for tiny vectors",
		Canonical: Always, RankOrder: Always, Forests: AnyForest, Check: checkReduceLinear,
		Generate: generateAllGatherReduce, Cost: allGatherReduceCost,
	}
}

// generateAllGatherReduce makes the program of rank in time O(p), or in the time of sorting the
// nodes of a forest.
func generateAllGatherReduce(pr Params, rank int) *program.Program {
	part := newPart(program.AllReduce, "allgather-reduce", pr, rank, 1)
	part.CanonicalTree, part.RankOrder = true, true
	leaves, steps, _ := reducePartials(pr) // the error is nil: Check has called reducePartials
	fold := program.Instruction{Op: program.DoReduce, Dst: whole(program.Out), Fold: steps,
		Src: make([]program.Ref, len(leaves))}
	if len(leaves) == 1 {
		fold.Op = program.DoCopy
	}
	leavesOf := leavesByRank(leaves, pr.P)
	for j, i := range leavesOf[rank] {
		fold.Src[i] = program.Chunk(program.In, j, 0)
	}
	foldLane := part.local()
	for k := 1; k < pr.P; k++ {
		peer := (rank + k) % pr.P
		peers := [2]int{program.NoPeer, program.NoPeer}
		if len(leavesOf[rank]) > 0 {
			peers[0] = peer
		}
		if len(leavesOf[peer]) > 0 {
			peers[1] = peer
		}
		if peers == [2]int{program.NoPeer, program.NoPeer} {
			continue
		}
		lane := part.lane(peers[0], peers[1])
		for j := range leavesOf[rank] {
			sent := part.send(lane, program.Chunk(program.In, j, 0))
			if j == 0 {
				fold.After = append(fold.After, sent) // the output may be the same memory as the input
			}
		}
		for n, i := range leavesOf[peer] {
			fold.Src[i] = program.Chunk(program.Scratch, part.newSlot(chunk(0)), 0)
			received := part.recv(lane, fold.Src[i])
			if n == len(leavesOf[peer])-1 {
				fold.After = append(fold.After, received)
			}
		}
	}
	part.add(foldLane, fold, fold.After)
	return part.Program
}

func allGatherReduceCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: maxNodes(pr, 0), Sent: func(rank int, l program.Layout) int {
		return contributions(pr, rank) * (pr.P - 1) * l.Out[1]
	}}
}
