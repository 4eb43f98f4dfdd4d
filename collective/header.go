package collective

import (
	"fmt"

	"github.com/superstep-ml/superstep/shared"
)

// header says what a rank is doing, for comparison with what the others do. Two
// ranks are in the same operation exactly if their headers are equal.
type header struct {
	kind  operation
	root  int // of a broadcast
	seq   uint64
	count int // elements
	name  string
	dtype dataType
	op    string
	opk   opKind
	mode  inputMode
	// shards is the size of the tree over shards that forests lie in.
	shards int
}

type operation uint8

const (
	callNothing operation = iota
	callBarrier
	callBroadcastBool
	callBroadcastInt64
	callAllReduce
)

// inputMode says what ranks bring to a reduction.
type inputMode uint8

const (
	wholeBuffers inputMode = iota // one buffer each, folded in the tree over ranks
	forests                       // nodes of the tree over shards
)

// slot is what a rank posts before it comes to a meeting. It is its own until it
// arrives, and anybody's to read from then until the meeting, or the result the
// operation ends with, is complete.
type slot struct {
	header  header
	value   int64         // of a broadcast, at the root
	nodes   []shared.Node // of a forest, one per entry
	reducer any           // *AllReducer[T]
	_       [64]byte
}

// describe names the operation as users know it.
func (h *header) describe() string {
	switch h.kind {
	case callBarrier:
		return fmt.Sprintf("Barrier #%d", h.seq)
	case callBroadcastBool:
		return fmt.Sprintf("Broadcast #%d (1 bool from rank %d)", h.seq, h.root)
	case callBroadcastInt64:
		return fmt.Sprintf("Broadcast #%d (1 int64 from rank %d)", h.seq, h.root)
	case callAllReduce:
		what := "whole buffers"
		if h.mode == forests {
			what = fmt.Sprintf("forests over %d shards", h.shards)
		}
		op := h.op
		if h.opk == opUser {
			op = "operator " + op
		}
		return fmt.Sprintf("AllReduce %q #%d (%d %s, %s, %s)", h.name, h.seq, h.count, h.dtype, op, what)
	default:
		return "nothing"
	}
}

// signature is a rank and a digest of its header in one word, never 0. Equal
// headers have equal digests; the converse does not hold, so headers are compared
// in full before data is touched.
type signature uint64

const rankBits = 24

func (h *header) signature(rank int) signature {
	const odd = 0x9e3779b97f4a7c15
	x := uint64(h.count)
	x = x*odd + uint64(h.root)
	x = x*odd + uint64(h.shards)
	x = x*odd + uint64(h.kind)<<24 + uint64(h.dtype)<<16 + uint64(h.opk)<<8 + uint64(h.mode)
	x *= odd
	return signature(x&^(1<<rankBits-1) | uint64(rank+1)&(1<<rankBits-1))
}

func (s signature) rank() int { return int(s&(1<<rankBits-1)) - 1 }

func (s signature) agrees(o signature) bool { return s>>rankBits == o>>rankBits }

// MismatchError says that two ranks are not in the same operation, or disagree
// about what it is applied to. All ranks get the same one.
type MismatchError struct {
	Rank, Other       int
	Doing, OtherDoing string // what each is in, in words
}

// Error names both ranks and both sides.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks disagree: rank %d is in %s, rank %d is in %s",
		e.Rank, e.Doing, e.Other, e.OtherDoing)
}

// mismatch describes two ranks that have arrived.
func (g *LocalGroup) mismatch(a, b int) error {
	return &MismatchError{
		Rank: b, Doing: g.slots[b].header.describe(),
		Other: a, OtherDoing: g.slots[a].header.describe(),
	}
}

// compareHeaders looks for a rank whose header differs from rank 0's. All have
// arrived.
func (g *LocalGroup) compareHeaders() error {
	want := &g.slots[0].header
	for i := 1; i < g.n; i++ {
		if g.slots[i].header != *want {
			return g.mismatch(0, i)
		}
	}
	return nil
}
