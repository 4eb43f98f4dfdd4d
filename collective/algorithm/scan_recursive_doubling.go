package algorithm

import (
	"math/bits"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// Recursive doubling Scan and Exscan. Each rank keeps two folds: its prefix and its total. The
// total covers its block of 2^k ranks. The prefix covers the ranks of that block up to the rank
// itself or, in an Exscan, the ranks before it. In round k it exchanges totals with the rank
// whose number differs in bit k. The upper of the two ranks folds the total of the lower rank
// into its prefix, as left operand. Both ranks fold the two totals into the total of the block
// of 2^(k+1) ranks, if a later round needs that total.
//
//	steps            ⌈log2 p⌉ messages in a row
//	sent by rank r   n elements for each d = 1, 2, 4, … < p for which r + d < p, and
//	                 nothing else: at most ⌈log2 p⌉·n
//	scratch          at most 3·n: a received total, and two totals of its own blocks
//	order            rank order. The set bits of r, from the highest to the lowest,
//	                 give blocks A, B, C of ranks before r, each a balanced tree. The
//	                 prefix of r is A (B (C r)) in a Scan, and A (B C) in an Exscan
//
// Use it for short data: it has the fewest rounds.
//
// Reference: the prefix sum of a hypercube (Grama, Gupta, Karypis and Kumar, "Introduction to
// Parallel Computing", 2003, section 4.3), here for any number of ranks and without unneeded
// messages.
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

// scanRound describes what a rank does in the round of distance d.
type scanRound struct {
	peer       int
	upper      bool // this rank has a higher number than the peer
	send, recv bool
	keep       bool // this rank needs the total of both blocks
}

// scanRoundOf returns what rank does in the round of distance d. It returns false if rank does
// nothing in that round.
//
// Rank r needs the total of its block of s ranks if rank r + s exists. If the bit with value s
// is clear in r, rank r sends the total to rank r + s. If the bit is set, rank r sends the
// total to rank r − s if that rank needs the total of 2·s ranks, that is, if rank (r − s) + 2·s
// exists. If rank r itself needs the total of 2·s ranks, rank r − s needs it too.
func scanRoundOf(p, rank, d int) (scanRound, bool) {
	r := scanRound{peer: rank ^ d, upper: rank&d != 0}
	if r.peer >= p {
		return r, false
	}
	r.keep = rank+2*d < p
	r.send = !r.upper || r.peer+2*d < p
	r.recv = r.upper || r.keep
	return r, true
}

func generateScanDoubling(c program.Collective, pr Params, rank int) *program.Program {
	s := scanState{partOf: newPart(c, "recursive-doubling", pr, rank, 1)}
	s.RankOrder = true
	in := &scanValue{ref: whole(program.In)}
	s.input, s.total = in, in
	if c == program.Scan {
		s.prefix.ref = in.ref
	}
	for d := 1; d < pr.P; d *= 2 {
		if r, ok := scanRoundOf(pr.P, rank, d); ok {
			s.round(r)
		}
	}
	switch {
	case rank > 0: // the rank was the upper rank in an earlier round, which has written its prefix
	case c == program.Scan:
		s.copy(s.local(), whole(program.Out), in.ref, in.readers...)
	default:
		s.Out.Hi = 0
	}
	return s.Program
}

// scanState is a rank's program under construction. Other ranks wait for the message of the
// next round. Therefore this message depends only on the computation of the total, and not on
// the computation of the prefix.
type scanState struct {
	partOf
	input    *scanValue
	total    *scanValue // total after the rounds so far: the input or an element of totals
	totals   []*scanValue
	received scanValue // the total that this rank has received as upper rank; without chunks until it has received one
	prefix   scanValue // the prefix; in an Exscan without chunks until the first total is received
}

// scanValue is a value in memory, with the instruction that wrote it and the instructions that
// have read it.
type scanValue struct {
	ref              program.Ref
	writers, readers []program.Dep
}

// nextTotal returns the scanValue for the next total. It alternates between two scratch slots.
func (s *scanState) nextTotal() *scanValue {
	if len(s.totals) < 2 {
		s.totals = append(s.totals, &scanValue{ref: program.Chunk(program.Scratch, s.newSlot(chunk(0)), 0)})
		return s.totals[len(s.totals)-1]
	}
	if s.total == s.totals[0] {
		return s.totals[1]
	}
	return s.totals[0]
}

// setWriter records that instruction d has written a new value to v, which no instruction has
// read yet.
func (v *scanValue) setWriter(d program.Dep) { v.writers, v.readers = []program.Dep{d}, nil }

// round appends the instructions of round r.
func (s *scanState) round(r scanRound) {
	lane := s.lane(program.NoPeer, program.NoPeer)
	total := s.total
	if r.send {
		s.Lanes[lane].SendPeer = r.peer
		total.readers = append(total.readers, s.send(lane, total.ref, total.writers...))
	}
	if r.recv {
		s.Lanes[lane].RecvPeer = r.peer
	}
	if r.upper && !r.keep {
		s.writePrefix(func(after []program.Dep) program.Dep {
			if s.prefix.ref.Chunks.Empty() {
				return s.recv(lane, whole(program.Out), after...)
			}
			return s.recvReduce(lane, whole(program.Out), s.prefix.ref, true, after)
		})
	}
	if !r.keep {
		return
	}
	next := s.nextTotal()
	after := slices.Concat(total.writers, next.readers)
	var written program.Dep
	if r.upper {
		if s.received.ref.Chunks.Empty() {
			s.received.ref = program.Chunk(program.Scratch, s.newSlot(chunk(0)), 0)
		}
		s.recv(lane, s.received.ref, s.received.readers...)
		written = s.join(lane, next.ref, s.received.ref, total.ref, after...)
	} else {
		written = s.recvReduce(lane, next.ref, total.ref, false, after)
	}
	total.readers = append(total.readers, written)
	next.setWriter(written)
	s.total = next
	if r.upper {
		s.writePrefix(func(after []program.Dep) program.Dep {
			done := program.Dep{}
			if s.prefix.ref.Chunks.Empty() {
				done = s.copy(lane, whole(program.Out), s.received.ref, after...)
			} else {
				done = s.join(lane, whole(program.Out), s.received.ref, s.prefix.ref, after...)
			}
			s.received.readers = []program.Dep{done}
			return done
		})
	}
}

// writePrefix calls write, which adds the instruction that writes the prefix to the output, with
// the dependencies of that instruction. These are the instruction that wrote the previous
// prefix or, if there is none, all reads of the input, because the output may be the memory of
// the input.
func (s *scanState) writePrefix(write func(after []program.Dep) program.Dep) {
	after := s.prefix.writers
	if after == nil {
		after = s.input.readers
	}
	s.prefix.setWriter(write(after))
	s.prefix.ref = whole(program.Out)
}

func scanDoublingCost(pr Params) program.Cost {
	return program.Cost{Steps: bits.Len(uint(pr.P - 1)), Sent: func(rank int, l program.Layout) int {
		sent := 0
		for d := 1; rank+d < pr.P; d *= 2 {
			sent += l.Out[1]
		}
		return sent
	}}
}
