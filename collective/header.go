package collective

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// header describes the operation that a rank is in. Two ranks are in the same
// operation if and only if their headers are equal.
type header struct {
	kind  operation
	root  int // rank of the root, in an operation with a root
	seq   uint64
	count int // number of elements
	name  string
	dtype dataType
	op    string
	opk   opKind
	mode  inputMode
	// shards is the number of shards of the tree over which forests are given.
	shards int
	sparse bool // zeros may be omitted

	coll      program.Collective
	algorithm string // the name that the caller gave, or ""
	counts    uint64 // hash of the lengths of blocks; 0 if the data is divided evenly
}

// withoutNumber returns the header with seq 0, so that all operations of one kind have equal
// headers.
func (h *header) withoutNumber() header {
	k := *h
	k.seq = 0
	return k
}

type operation uint8

const (
	callNothing operation = iota
	callBarrier
	callBroadcastBool
	callBroadcastInt64
	callAllReduce
	callCollective // header.coll says which collective
	callObjects    // the gathering of the values in a reduction of objects
)

// titles are the names of collectives in error messages.
var titles = [program.NumCollectives]string{
	"AllReduce", "Broadcast", "Reduce", "Gather", "AllGather", "Scatter",
	"ReduceScatter", "AllToAll", "Barrier", "Scan", "Exscan",
}

// inputMode is the kind of input of a reduction.
type inputMode uint8

const (
	wholeBuffers inputMode = iota // one buffer per rank, folded in the tree over ranks
	forests                       // forests of the tree over shards
)

// slot is what a rank posts before it arrives at a meeting. Only that rank may access it before
// it arrives. From then on all ranks may read it, until the meeting is complete or, if the
// operation has a result, until the result is complete.
type slot struct {
	header  header
	value   int64           // value that the root broadcasts
	nodes   []sharding.Node // nodes of a forest, one per entry
	reducer any             // *AllReducer[T] of an AllReduce
	request *request        // request of a collective
	payload []byte          // encoded values in a reduction of objects
	_       [64]byte
}

// describe returns a description of the operation for error messages.
func (h *header) describe() string {
	switch h.kind {
	case callBarrier:
		return "Barrier" + h.number()
	case callBroadcastBool:
		return fmt.Sprintf("Broadcast%s (1 bool from rank %d)", h.number(), h.root)
	case callBroadcastInt64:
		return fmt.Sprintf("Broadcast%s (1 int64 from rank %d)", h.number(), h.root)
	case callAllReduce:
		what := "whole buffers"
		if h.mode == forests {
			what = fmt.Sprintf("forests over %d shards", h.shards)
		}
		op := h.op
		if h.opk == opUser {
			op = "operator " + op
		}
		by := ""
		if h.algorithm != "" {
			by = ", by " + h.algorithm
		}
		if h.sparse {
			by = ", sparse"
		}
		title := "AllReduce"
		if h.counts != 0 {
			title, by = "ReduceScatter", fmt.Sprintf("%s, blocks of lengths %08x", by, uint32(h.counts))
		}
		return fmt.Sprintf("%s %q%s (%d %s, %s, %s%s)", title, h.name, h.number(), h.count, h.dtype, op, what, by)
	case callCollective:
		return h.describeCollective()
	case callObjects:
		what := "whole values"
		if h.shards > 0 {
			what = fmt.Sprintf("forests over %d shards", h.shards)
		}
		return fmt.Sprintf("AllReduce of objects %q%s (%s)", h.name, h.number(), what)
	default:
		return "nothing"
	}
}

// number returns the number of the operation as text. It is empty for a header from
// withoutNumber.
func (h *header) number() string {
	if h.seq == 0 {
		return ""
	}
	return fmt.Sprintf(" #%d", h.seq)
}

// describeCollective returns a description, for example Reduce "loss" #3 (100 float64, sum, to
// rank 2).
func (h *header) describeCollective() string {
	var b strings.Builder
	b.WriteString(titles[h.coll])
	own := h.coll == program.AllToAll && h.counts != 0 // each rank gives its own lengths
	if own {
		b.WriteByte('V')
	}
	if h.name != "" {
		fmt.Fprintf(&b, " %q", h.name)
	}
	if b.WriteString(h.number() + " ("); !own {
		fmt.Fprintf(&b, "%d ", h.count)
	}
	b.WriteString(h.dtype.String())
	switch h.opk {
	case opNone:
	case opUser:
		b.WriteString(", operator " + h.op)
	default:
		b.WriteString(", " + h.op)
	}
	switch h.coll {
	case program.Broadcast, program.Scatter:
		fmt.Fprintf(&b, ", from rank %d", h.root)
	case program.Reduce, program.Gather:
		fmt.Fprintf(&b, ", to rank %d", h.root)
	}
	if h.counts != 0 && !own {
		fmt.Fprintf(&b, ", blocks of lengths %08x", uint32(h.counts))
	}
	if h.algorithm != "" {
		b.WriteString(", by " + h.algorithm)
	}
	b.WriteByte(')')
	return b.String()
}

// signature holds the index of a rank in this process, in its low rankBits bits, and a digest
// of the rank's header. It is never 0. Equal headers have equal digests. Different headers may
// have equal digests too, so headers are compared in full before data is touched.
type signature uint64

const rankBits = 24

func (h *header) signature(rank int) signature {
	const odd = 0x9e3779b97f4a7c15
	x := uint64(h.count)
	x = x*odd + uint64(h.root)
	x = x*odd + uint64(h.shards)
	x = x*odd + uint64(h.coll)
	x = x*odd + uint64(h.kind)<<24 + uint64(h.dtype)<<16 + uint64(h.opk)<<8 + uint64(h.mode)
	x *= odd
	return signature(x&^(1<<rankBits-1) | uint64(rank+1)&(1<<rankBits-1))
}

func (s signature) rank() int { return int(s&(1<<rankBits-1)) - 1 }

func (s signature) agrees(o signature) bool { return s>>rankBits == o>>rankBits }

// MismatchError is the error for two ranks that are not in the same operation, or whose
// arguments do not agree. All ranks get the same error.
type MismatchError = membership.MismatchError

// PeerError is the error for a rank that has failed or cannot be reached. All ranks get the
// error of the rank that noticed the failure first.
type PeerError = membership.PeerError

// mismatch returns the error for two ranks in different operations, both of which have arrived.
// a and b are the indices of the ranks in this process.
func (g *LocalGroup) mismatch(a, b int) error {
	return &MismatchError{
		Rank: g.ranks[b], Doing: g.slots[b].header.describe(),
		Other: g.ranks[a], OtherDoing: g.slots[a].header.describe(),
	}
}

// compareHeaders returns an error if the header of a rank differs from the header of the first
// rank. All ranks have arrived.
func (g *LocalGroup) compareHeaders() error {
	want := &g.slots[0].header
	for i := 1; i < g.n; i++ {
		if g.slots[i].header != *want {
			return g.mismatch(0, i)
		}
	}
	return nil
}
