package algorithm

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Recursive doubling Scan and Exscan. Each rank keeps two folds: its prefix, of the
// ranks up to itself (Exscan: before itself) within the block of 2^k ranks that it is
// in, and the total of that block. In round k it exchanges totals with the rank whose
// number differs in bit k. The upper of the two folds the lower's total into its
// prefix, on the left; both fold the two totals into that of the block of 2^(k+1),
// where a later round needs it: the ranks of the last block keep none.
//
//	steps            ⌈log2 p⌉ messages in a row
//	sent by rank r   n elements for each round in which the other rank exists and is
//	                 the upper one or needs the total: at most ⌈log2 p⌉·n
//	scratch          at most 3·n: what has come, and two places for totals
//	order            rank order; with the set bits of r from the highest as blocks
//	                 A, B, C of ranks before it, each a balanced tree, the prefix of
//	                 rank r is A (B (C r)), or A (B C) without itself
//
// For short data: fewest rounds.
//
// Hillis and Steele, "Data Parallel Algorithms" (CACM 29, 1986), in the form of a
// hypercube's, in which totals are folded along balanced trees.
func scanRecursiveDoubling(c program.Collective) *Algorithm {
	return &Algorithm{
		Name: "recursive-doubling", Collective: c,
		Summary:   "pairs exchange the totals of blocks, at distances 1, 2, 4, and so on",
		RankOrder: Always,
		Generate: func(pr Params, rank int) *program.Program {
			return generateScanDoubling(c, pr, rank)
		},
		Cost: scanDoublingCost,
	}
}

// scanRound is what a rank does in the round of distance d.
type scanRound struct {
	peer       int
	upper      bool // this rank is above the peer
	send, recv bool
	keep       bool // the total of both is needed later
}

// scanRoundOf says what rank does in the round of distance d, if anything. A rank
// below its peer receives nothing but for the total, which is needed only if there
// are ranks above the block of both.
func scanRoundOf(p, rank, d int) (scanRound, bool) {
	r := scanRound{peer: rank ^ d, upper: rank&d != 0}
	if r.peer >= p {
		return r, false
	}
	r.keep = alignedBlock(rank, 2*d).Hi < p
	r.send = !r.upper || r.keep
	r.recv = r.upper || r.keep
	return r, true
}

func generateScanDoubling(c program.Collective, pr Params, rank int) *program.Program {
	p := newPart(c, "recursive-doubling", pr, rank, 1)
	p.RankOrder = true
	in, out := whole(program.In), whole(program.Out)
	s := scanState{partOf: p, total: in, prefix: in}
	if c == program.Exscan {
		s.prefix = program.Ref{}
	}
	for d := 1; d < pr.P; d *= 2 {
		if r, ok := scanRoundOf(pr.P, rank, d); ok {
			s.round(r)
		}
	}
	switch {
	case rank > 0: // has an upper place in some round, and its prefix from there
	case c == program.Scan:
		p.copy(p.local(), out, in, s.first...)
	default:
		p.Out.Hi = 0
	}
	return p.Program
}

// scanState is a rank's part in the making.
type scanState struct {
	partOf
	total, prefix program.Ref   // what is folded so far; no prefix yet if it has no chunks
	before, first []program.Dep // the instructions of the round before, and of the first
	came          program.Ref   // scratch for what the peer sends; none yet if it has no chunks
	totals        []program.Ref // scratch for totals, used in turn
}

// nextTotal is where a total goes that is made of the present one.
func (s *scanState) nextTotal() program.Ref {
	if len(s.totals) < 2 {
		s.totals = append(s.totals, program.Chunk(program.Scratch, s.room(chunk(0)), 0))
		return s.totals[len(s.totals)-1]
	}
	s.totals[0], s.totals[1] = s.totals[1], s.totals[0]
	return s.totals[1]
}

// round appends a round. All of it comes after all of the round before, so that a
// place may be written that was read then.
func (s *scanState) round(r scanRound) {
	lane := s.lane(program.NoPeer, program.NoPeer)
	after := s.before
	s.before = nil
	did := func(d program.Dep) program.Dep { s.before = append(s.before, d); return d }
	var sent []program.Dep
	if r.send {
		s.Lanes[lane].SendPeer = r.peer
		sent = append(sent, did(s.send(lane, s.total, after...)))
	}
	if r.recv {
		s.Lanes[lane].RecvPeer = r.peer
	}
	out := whole(program.Out)
	switch {
	case !r.upper && r.keep:
		next := s.nextTotal()
		did(s.recvReduce(lane, next, s.total, false, after))
		s.total = next
	case r.upper && !r.keep && s.prefix.Chunks.Empty():
		did(s.recv(lane, out, after...))
		s.prefix = out
	case r.upper && !r.keep:
		did(s.recvReduce(lane, out, s.prefix, true, after))
		s.prefix = out
	case r.upper:
		if s.came.Chunks.Empty() {
			s.came = program.Chunk(program.Scratch, s.room(chunk(0)), 0)
		}
		next := s.nextTotal()
		s.recv(lane, s.came, after...)
		s.join(lane, next, s.came, s.total)
		// The output may be the memory of the input, which goes out as the total.
		if s.prefix.Chunks.Empty() {
			did(s.copy(lane, out, s.came, sent...))
		} else {
			did(s.join(lane, out, s.came, s.prefix, sent...))
		}
		s.total, s.prefix = next, out
	}
	if s.first == nil {
		s.first = s.before
	}
}

func scanDoublingCost(pr Params) program.Cost {
	return program.Cost{Steps: bits.Len(uint(pr.P - 1)), Sent: func(rank int, l program.Layout) int {
		sent := 0
		for d := 1; d < pr.P; d *= 2 {
			if r, ok := scanRoundOf(pr.P, rank, d); ok && r.send {
				sent += l.Out[1]
			}
		}
		return sent
	}}
}
