package collective

import "github.com/superstep-ml/superstep/shared"

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

// GenerateDirect makes rank's part of a direct AllReduce among p ranks, in time
// O(p). Lane 0 folds; lane k exchanges with rank (rank + k) mod p, so that the
// ranks do not all send to the same one first.
func GenerateDirect(p, rank int) Program {
	prog := Program{
		Collective: "allreduce", Algorithm: "direct",
		P: p, Rank: rank, Root: -1, Chunks: p,
		Lanes:         make([]Lane, p),
		CanonicalTree: true,
	}
	local := &prog.Lanes[0]
	*local = Lane{SendPeer: NoPeer, RecvPeer: NoPeer}
	if p == 1 {
		local.Steps = []Instruction{{Op: DoCopy, Dst: chunk(BufferOut, 0, 0), Src: []Ref{chunk(BufferIn, 0, 0)}}}
		return prog
	}

	own := shared.Range{Lo: rank, Hi: rank + 1}
	fold := Instruction{
		Op:   DoReduce,
		Dst:  Ref{Buffer: BufferOut, Chunks: own},
		Src:  make([]Ref, p),
		Fold: shared.RankSchedule(p, nil),
	}
	fold.Src[rank] = Ref{Buffer: BufferIn, Chunks: own}
	prog.Scratch = make([]shared.Range, p-1)
	for k := 1; k < p; k++ {
		peer := (rank + k) % p
		slot := k - 1
		prog.Scratch[slot] = own
		fold.Src[peer] = Ref{Buffer: BufferScratch, Slot: slot, Chunks: own}
		fold.After = append(fold.After, Dep{Lane: k, Step: 1})
		prog.Lanes[k] = Lane{SendPeer: peer, RecvPeer: peer, Steps: []Instruction{
			{Op: DoSend, Src: []Ref{chunk(BufferIn, 0, peer)}},
			{Op: DoRecv, Dst: Ref{Buffer: BufferScratch, Slot: slot, Chunks: own}},
			{Op: DoSend, Src: []Ref{{Buffer: BufferOut, Chunks: own}}, After: []Dep{{Lane: 0, Step: 0}}},
			{Op: DoRecv, Dst: chunk(BufferOut, 0, peer), After: []Dep{{Lane: k, Step: 0}}},
		}}
	}
	local.Steps = []Instruction{fold}
	return prog
}

// directCost declares what GenerateDirect costs; the checker holds it against
// the programs.
func directCost(p int) Cost {
	if p == 1 {
		return Cost{}
	}
	return Cost{Steps: 2, Sent: func(rank, chunk int) int {
		if chunk == rank {
			return p - 1
		}
		return 1
	}}
}
