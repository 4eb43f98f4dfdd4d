package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared"
)

// Direct AllReduce. Every rank owns one chunk. It sends each other rank that
// rank's chunk of its contribution, folds the p pieces of its own chunk, and
// sends the result to all.
//
//	steps            2 messages in a row (none for p = 1)
//	sent by rank r   (n − c) + (p − 1)·c elements, where c is the length of chunk r;
//	                 2·n·(p−1)/p when p divides n, which no algorithm betters
//	scratch          (p − 1)·c elements
//	order            an owner holds all p pieces before it folds, so any order
//	                 costs the same: it is the fold tree over ranks (canonical)
//
// On a flat network it is the best choice up to a few tens of ranks; beyond,
// p − 1 messages at once to one rank meet in the switch, and the overhead per
// message counts.
//
// This is the exchange of Alink's AllReduce (AllReduceSend, AllReduceSum,
// AllReduceRecv on by-subtask edges; Yang et al., "Alink: A General Machine
// Learning Platform Based on Apache Flink"), with pieces of any length, all
// ranks as owners whatever the length, and a fixed order of summation. As a
// reduce-scatter followed by an all-gather it is the radix-p case of BlueConnect
// (Cho et al., MLSys 2019).

// Direct is the algorithm.
func Direct() *Algorithm {
	return &Algorithm{
		Name: "direct", Collective: program.AllReduce,
		Summary:   "every rank owns a chunk: two exchanges, all pairs at once",
		Canonical: Always, RankOrder: Always,
		Generate: generateDirect, Cost: directCost,
	}
}

// generateDirect makes rank's part in time O(p). Lane 0 folds; lane k exchanges
// with rank (rank + k) mod p, so that the ranks do not all send to the same one
// first.
func generateDirect(pr Params, rank int) *program.Program {
	p := pr.P
	all := shared.Range{Lo: 0, Hi: p}
	prog := &program.Program{
		Collective: program.AllReduce, Algorithm: "direct",
		P: p, Rank: rank, Root: -1, Chunks: p, In: all, Out: all,
		Lanes:         make([]program.Lane, p),
		CanonicalTree: true, RankOrder: true,
	}
	local := &prog.Lanes[0]
	*local = program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer}
	if p == 1 {
		local.Steps = []program.Instruction{{Op: program.DoCopy,
			Dst: program.Chunk(program.Out, 0, 0), Src: []program.Ref{program.Chunk(program.In, 0, 0)}}}
		return prog
	}

	own := shared.Range{Lo: rank, Hi: rank + 1}
	fold := program.Instruction{
		Op:   program.DoReduce,
		Dst:  program.Chunk(program.Out, 0, rank),
		Src:  make([]program.Ref, p),
		Fold: shared.RankSchedule(p, nil),
	}
	fold.Src[rank] = program.Chunk(program.In, 0, rank)
	prog.Scratch = make([]shared.Range, p-1)
	for k := 1; k < p; k++ {
		peer := (rank + k) % p
		slot := k - 1
		prog.Scratch[slot] = own
		fold.Src[peer] = program.Chunk(program.Scratch, slot, rank)
		fold.After = append(fold.After, program.Dep{Lane: k, Step: 1})
		prog.Lanes[k] = program.Lane{SendPeer: peer, RecvPeer: peer, Steps: []program.Instruction{
			{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, peer)}},
			{Op: program.DoRecv, Dst: program.Chunk(program.Scratch, slot, rank)},
			{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.Out, 0, rank)}, After: []program.Dep{{Lane: 0, Step: 0}}},
			{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, peer), After: []program.Dep{{Lane: k, Step: 0}}},
		}}
	}
	local.Steps = []program.Instruction{fold}
	return prog
}

// directCost is (n − c) + (p − 1)·c elements for the owner of a chunk of c.
func directCost(pr Params) program.Cost {
	if pr.P == 1 {
		return program.Cost{}
	}
	return program.Cost{Steps: 2, Sent: func(rank int, l program.Layout) int {
		c := l.Len(program.Chunk(program.Out, 0, rank))
		return l.Out[pr.P] - c + (pr.P-1)*c
	}}
}
