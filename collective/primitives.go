package collective

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// The primitives. All ranks of a group call the same ones in the same order, with
// the same root, lengths, operator and options; if they do not, all get a
// MismatchError. A slice may be empty, or nil where the rank has no part. They
// return when this rank's result is complete and its slices are its own again. On
// error the output holds nothing of use and the group has ended.
//
// "Block r" of n elements among p ranks is sharding.Split(n, p, r): the first n mod p
// blocks are one longer. In place means that an output is the very memory of the
// input, or of its block, that it corresponds to; otherwise they do not overlap.
// Each operand of a reduction keeps its side, the lower rank's on the left; sums
// are those of the canonical tree over ranks, unless an algorithm is asked for.

// Broadcast gives every rank the root's buf.
func Broadcast[T Number](c *Comm, root int, buf []T, opts ...Option) error {
	q := newRequest[T](c, program.Broadcast, opts)
	q.root, q.n = root, len(buf)
	q.setIn(nil)
	if c.Rank() == root {
		q.setIn(bytesOf(buf))
	}
	q.out = bytesOf(buf)
	return c.perform(q, len(buf))
}

// Reduce folds every rank's in and leaves the result in the root's out, which may
// be its in. The out of other ranks is not used.
func Reduce[T Number](c *Comm, root int, op Op[T], in, out []T, opts ...Option) error {
	q := newRequest[T](c, program.Reduce, opts)
	q.root, q.n = root, len(in)
	if c.Rank() == root && len(out) != len(in) {
		return c.misuse(q, "has %d elements but room for %d", len(in), len(out))
	}
	q.setIn(bytesOf(in))
	if c.Rank() == root {
		q.out = bytesOf(out)
	}
	return reduceWith(c, q, op, len(in))
}

// Gather leaves every rank's in, all of one length, in the root's out, in rank
// order. The root's in may be block Rank of its out.
func Gather[T Number](c *Comm, root int, in, out []T, opts ...Option) error {
	q := newRequest[T](c, program.Gather, opts)
	q.root, q.n = root, len(in)*c.Size()
	if c.Rank() == root && len(out) != q.n {
		return c.misuse(q, "gathers %d times %d elements but has room for %d", c.Size(), len(in), len(out))
	}
	q.setIn(bytesOf(in))
	if c.Rank() == root {
		q.out = bytesOf(out)
	}
	return c.perform(q, q.n)
}

// GatherV is Gather where rank r brings counts[r] elements. All ranks give the same
// counts.
func GatherV[T Number](c *Comm, root int, in, out []T, counts []int, opts ...Option) error {
	q := newRequest[T](c, program.Gather, opts)
	q.root = root
	if err := c.blocks(q, counts); err != nil {
		return err
	}
	if len(in) != counts[c.Rank()] {
		return c.misuse(q, "brings %d elements where its count is %d", len(in), counts[c.Rank()])
	}
	if c.Rank() == root && len(out) != q.n {
		return c.misuse(q, "gathers %d elements but has room for %d", q.n, len(out))
	}
	q.setIn(bytesOf(in))
	if c.Rank() == root {
		q.out = bytesOf(out)
	}
	return c.perform(q, q.n)
}

// AllGather leaves every rank's in, all of one length, in every rank's out, in rank
// order. A rank's in may be block Rank of its out.
func AllGather[T Number](c *Comm, in, out []T, opts ...Option) error {
	q := newRequest[T](c, program.AllGather, opts)
	q.n = len(in) * c.Size()
	if len(out) != q.n {
		return c.misuse(q, "gathers %d times %d elements but has room for %d", c.Size(), len(in), len(out))
	}
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	return c.perform(q, q.n)
}

// AllGatherV is AllGather where rank r brings counts[r] elements. All ranks give
// the same counts.
func AllGatherV[T Number](c *Comm, in, out []T, counts []int, opts ...Option) error {
	q := newRequest[T](c, program.AllGather, opts)
	if err := c.blocks(q, counts); err != nil {
		return err
	}
	if len(in) != counts[c.Rank()] || len(out) != q.n {
		return c.misuse(q, "brings %d elements and has room for %d where the counts are %d and %d in all",
			len(in), len(out), counts[c.Rank()], q.n)
	}
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	return c.perform(q, q.n)
}

// Scatter gives rank r block r of the root's in, as its out. The in of other ranks
// is not used, and all blocks have the length of out.
func Scatter[T Number](c *Comm, root int, in, out []T, opts ...Option) error {
	q := newRequest[T](c, program.Scatter, opts)
	q.root, q.n = root, len(out)*c.Size()
	if c.Rank() == root && len(in) != q.n {
		return c.misuse(q, "scatters %d elements as %d times %d", len(in), c.Size(), len(out))
	}
	if c.Rank() == root {
		q.setIn(bytesOf(in))
	} else {
		q.setIn(nil)
	}
	q.out = bytesOf(out)
	return c.perform(q, q.n)
}

// ScatterV is Scatter where rank r gets counts[r] elements. All ranks give the same
// counts.
func ScatterV[T Number](c *Comm, root int, in, out []T, counts []int, opts ...Option) error {
	q := newRequest[T](c, program.Scatter, opts)
	q.root = root
	if err := c.blocks(q, counts); err != nil {
		return err
	}
	if len(out) != counts[c.Rank()] {
		return c.misuse(q, "has room for %d elements where its count is %d", len(out), counts[c.Rank()])
	}
	if c.Rank() == root && len(in) != q.n {
		return c.misuse(q, "scatters %d elements where the counts are %d in all", len(in), q.n)
	}
	if c.Rank() == root {
		q.setIn(bytesOf(in))
	} else {
		q.setIn(nil)
	}
	q.out = bytesOf(out)
	return c.perform(q, q.n)
}

// ReduceScatter folds every rank's in, all of one length, and gives rank r block r
// of the result as its out, which may be block Rank of its in.
func ReduceScatter[T Number](c *Comm, op Op[T], in, out []T, opts ...Option) error {
	q := newRequest[T](c, program.ReduceScatter, opts)
	q.n = len(in)
	if want := sharding.Split(len(in), c.Size(), c.Rank()).Len(); len(out) != want {
		return c.misuse(q, "has room for %d elements where its block of %d has %d", len(out), len(in), want)
	}
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	return reduceWith(c, q, op, q.n)
}

// ReduceScatterV is ReduceScatter where block r has counts[r] elements. All ranks
// give the same counts.
func ReduceScatterV[T Number](c *Comm, op Op[T], in, out []T, counts []int, opts ...Option) error {
	q := newRequest[T](c, program.ReduceScatter, opts)
	if err := c.blocks(q, counts); err != nil {
		return err
	}
	if len(in) != q.n || len(out) != counts[c.Rank()] {
		return c.misuse(q, "brings %d elements and has room for %d where the counts are %d in all and %d",
			len(in), len(out), q.n, counts[c.Rank()])
	}
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	return reduceWith(c, q, op, q.n)
}

// AllToAll gives rank r block r of every rank's in, in rank order; all blocks have
// one length. out may be in.
func AllToAll[T Number](c *Comm, in, out []T, opts ...Option) error {
	q := newRequest[T](c, program.AllToAll, opts)
	q.n = len(in)
	if len(in)%c.Size() != 0 || len(out) != len(in) {
		return c.misuse(q, "exchanges %d elements for %d among %d ranks", len(in), len(out), c.Size())
	}
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	return c.perform(q, q.n)
}

// AllToAllV is AllToAll where this rank sends send[r] elements to rank r, one block
// after another in in, and gets recv[r] from it in out: what one sends the other
// must expect. in and out do not overlap.
func AllToAllV[T Number](c *Comm, in, out []T, send, recv []int, opts ...Option) error {
	q := newRequest[T](c, program.AllToAll, opts)
	if len(send) != c.Size() || len(recv) != c.Size() {
		return c.misuse(q, "has %d and %d counts for %d ranks", len(send), len(recv), c.Size())
	}
	total := [2]int{}
	for side, counts := range [2][]int{send, recv} {
		for r, n := range counts {
			if n < 0 {
				return c.misuse(q, "has %d elements for rank %d", n, r)
			}
			if n > math.MaxInt/q.elem-total[side] {
				return c.misuse(q, "has more elements than there can be: %d after %d", n, total[side])
			}
			total[side] += n
		}
	}
	if len(in) != total[0] || len(out) != total[1] {
		return c.misuse(q, "brings %d elements and has room for %d where its counts are %d and %d in all",
			len(in), len(out), total[0], total[1])
	}
	q.counts, q.recv = send, recv
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	q.header.counts = 1 // the lengths differ from rank to rank, that there are some does not
	return c.perform(q, 0)
}

// Scan leaves the fold of the in of ranks 0 to r in rank r's out, which may be its in.
// It is what Reduce would give for these ranks alone.
func Scan[T Number](c *Comm, op Op[T], in, out []T, opts ...Option) error {
	return scan(c, program.Scan, op, in, out, opts)
}

// Exscan leaves the fold of the in of ranks 0 to r−1 in rank r's out, which may be
// its in; rank 0 gets the operator's identity.
func Exscan[T Number](c *Comm, op Op[T], in, out []T, opts ...Option) error {
	return scan(c, program.Exscan, op, in, out, opts)
}

func scan[T Number](c *Comm, coll program.Collective, op Op[T], in, out []T, opts []Option) error {
	q := newRequest[T](c, coll, opts)
	q.n = len(in)
	if len(out) != len(in) {
		return c.misuse(q, "has %d elements but room for %d", len(in), len(out))
	}
	q.setIn(bytesOf(in))
	q.out = bytesOf(out)
	return reduceWith(c, q, op, q.n)
}

// Barrier returns when every rank of the group has called it: Comm.Barrier with
// options.
func Barrier(c *Comm, opts ...Option) error {
	o := merge(opts)
	if o.algorithm == "" {
		return c.Barrier(o.ctx)
	}
	c.stats.Barriers++
	q := newRequest[uint8](c, program.Barrier, opts)
	q.setIn(nil)
	q.out = noBytes
	return c.perform(q, 0)
}

// newRequest begins a call of this rank. The request is the rank's own, used again
// and again.
func newRequest[T Number](c *Comm, coll program.Collective, opts []Option) *request {
	dtype, size := typeOf[T]()
	o := merge(opts)
	q := &c.request
	h := &c.requestHeader
	*h = header{kind: callCollective, coll: coll, dtype: dtype, name: o.name, algorithm: o.algorithm}
	*q = request{header: h, ctx: o.ctx, coll: coll, elem: size, in: q.in[:0]}
	return q
}

// setIn makes in the one buffer that a rank brings.
func (q *request) setIn(in []byte) {
	if in == nil {
		in = noBytes
	}
	q.in = append(q.in[:0], in)
}

// noBytes is a buffer of no elements, as opposed to none.
var noBytes = []byte{}

// reduceWith completes the request of a collective that reduces.
func reduceWith[T Number](c *Comm, q *request, op Op[T], n int) error {
	if op.kind == opNone || op.kind == opUser && op.fold == nil {
		return c.misuse(q, "has no operator")
	}
	q.header.op, q.header.opk = op.name, op.kind
	q.commutative = op.commutative
	q.arith = c.typed[q.header.dtype]
	t, ok := q.arith.(*typedOp[T])
	if !ok {
		t = newTypedOp[T]()
		c.typed[q.header.dtype] = t
		q.arith = t
	}
	t.set(op)
	return c.perform(q, n)
}

// blocks gives the request blocks of different lengths.
func (c *Comm) blocks(q *request, counts []int) error {
	if len(counts) != c.Size() {
		return c.misuse(q, "has %d counts for %d ranks", len(counts), c.Size())
	}
	h := uint64(len(counts))
	var word [8]byte
	for r, n := range counts {
		if n < 0 {
			return c.misuse(q, "has a block of %d elements for rank %d", n, r)
		}
		if n > math.MaxInt/q.elem-q.n {
			return c.misuse(q, "has more elements than there can be: %d after %d", n, q.n)
		}
		binary.LittleEndian.PutUint64(word[:], uint64(n))
		h = xxh3.HashSeed(word[:], h)
		q.n += n
	}
	q.counts = counts
	q.header.counts = h | 1
	return nil
}

// misuse ends the group for an argument that cannot be right.
func (c *Comm) misuse(q *request, format string, args ...any) error {
	if err := c.begin(q.ctx); err != nil {
		return err
	}
	what := titles[q.coll]
	if q.header.name != "" {
		what += fmt.Sprintf(" %q", q.header.name)
	}
	return c.fail(fmt.Errorf("%s %s", what, fmt.Sprintf(format, args...)))
}
