package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Direct ReduceScatter. Every rank sends to each other rank the piece of its contribution that
// belongs to that rank's chunk, and folds the pieces of its own chunk.
//
//	steps            1 message (none for p = 1); for a forest, the largest number of
//	                 nodes of a rank
//	sent by rank r   n − c elements for each of its contributions, where c is the
//	                 length of chunk r
//	scratch          c elements for each contribution of other ranks
//	order            the fold tree over ranks, or the aligned tree over the shards of
//	                 any forest (canonical); an owner has all pieces before it folds
//
// It is the best choice on a flat network up to a few tens of ranks. It is the first half of
// the direct AllReduce.
func directReduceScatter() *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: program.ReduceScatter,
		Summary:   "every pair exchanges a piece: one step, for a few tens of ranks",
		Canonical: Always, RankOrder: Always, Forests: AnyForest, Check: checkReduceLinear,
		Generate: generateDirectReduceScatter, Cost: directReduceScatterCost,
	}
}

// generateDirectReduceScatter makes the program of rank in time O(p), or in the time of sorting
// the nodes of a forest.
func generateDirectReduceScatter(pr Params, rank int) *program.Program {
	part := newPart(program.ReduceScatter, "direct", pr, rank, pr.P)
	part.CanonicalTree, part.RankOrder = true, true
	part.Out = chunk(rank)
	part.foldOwned(pr)
	for k := 1; k < pr.P; k++ {
		l := &part.Lanes[k]
		if contributions(pr, rank) == 0 {
			l.SendPeer = program.NoPeer
		}
		if contributions(pr, l.RecvPeer) == 0 {
			l.RecvPeer = program.NoPeer
		}
	}
	return part.Program
}

func directReduceScatterCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: maxNodes(pr, 0), Sent: func(rank int, l program.Layout) int {
		return contributions(pr, rank) * (l.Out[pr.P] - length(l, chunk(rank)))
	}}
}
