package collective

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// This file has the primitives. All ranks of a group call the same primitives in the same
// order, with the same root, lengths, operator and options. If they do not, all ranks get a
// MismatchError. A slice may be empty, or nil if the rank does not use it. A primitive returns
// when this rank's result is complete and its slices belong to the caller again. On error the
// contents of the output are undefined and the group has ended.
//
// "Block r" of n elements among p ranks is sharding.Split(n, p, r): the first n mod p blocks
// are longer by one element. An output may be in place: it is then exactly the memory of the
// corresponding input, or of the corresponding block of the input. Otherwise output and input
// must not overlap. The left operand of a reduction always comes from the lower rank.
// Reductions are folded in the canonical tree over ranks, unless an algorithm is named.

// Broadcast copies the root's buf to every other rank's buf.
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

// Reduce folds the inputs (in) of all ranks and writes the result to the root's output (out),
// which may be the same slice as its input. The outputs of the other ranks are not used.
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

// Gather copies the inputs (in) of all ranks to the root's output (out), in rank order. All
// inputs have the same length. The root's input may be its own block of the output.
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

// GatherV is Gather for inputs of different lengths: the input of rank r has counts[r]
// elements. All ranks give the same counts.
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

// AllGather copies the inputs (in) of all ranks to the output (out) of every rank, in rank
// order. All inputs have the same length. A rank's input may be its own block of its output.
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

// AllGatherV is AllGather for inputs of different lengths: the input of rank r has counts[r]
// elements. All ranks give the same counts.
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

// Scatter copies block r of the root's input (in) to the output (out) of rank r. All blocks
// have the length of out. The inputs of the other ranks are not used.
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

// ScatterV is Scatter for blocks of different lengths: rank r gets counts[r] elements. All
// ranks give the same counts.
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

// ReduceScatter folds the inputs (in) of all ranks and writes block r of the result to the
// output (out) of rank r. All inputs have the same length. A rank's output may be its own block
// of its input.
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

// ReduceScatterV is ReduceScatter for blocks of different lengths: block r has counts[r]
// elements. All ranks give the same counts.
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

// AllToAll copies block r of the input (in) of every rank to the output (out) of rank r, in
// rank order. All blocks have the same length. out may be the same slice as in.
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

// AllToAllV is AllToAll with blocks of any lengths: this rank sends send[r] elements to rank r
// and receives recv[r] elements from rank r. The blocks are consecutive in the input (in) and
// in the output (out). The number of elements that a rank sends to another rank must equal the
// number that the receiver expects. Input and output must not overlap.
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
	q.header.counts = 1 // each rank gives its own lengths, so headers hold no hash of them
	return c.perform(q, 0)
}

// Scan folds the inputs (in) of ranks 0 to r and writes the result to the output (out) of rank
// r, which may be the same slice as its input. Rank r gets the same bits as the root of a
// Reduce in a group of only the ranks 0 to r.
func Scan[T Number](c *Comm, op Op[T], in, out []T, opts ...Option) error {
	return scan(c, program.Scan, op, in, out, opts)
}

// Exscan folds the inputs (in) of ranks 0 to r−1 and writes the result to the output (out) of
// rank r, which may be the same slice as its input. Rank 0 gets the operator's identity.
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

// Barrier is Comm.Barrier with options: it returns when every rank of the group has called
// Barrier.
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

// newRequest returns the request for a new call of this rank. Each rank has one request, which
// every call reuses.
func newRequest[T Number](c *Comm, coll program.Collective, opts []Option) *request {
	dtype, size := typeOf[T]()
	o := merge(opts)
	q := &c.request
	h := &c.requestHeader
	*h = header{kind: callCollective, coll: coll, dtype: dtype, name: o.name, algorithm: o.algorithm}
	*q = request{header: h, ctx: o.ctx, coll: coll, elem: size, in: q.in[:0]}
	return q
}

// setIn sets the only input of the request to the buffer in.
func (q *request) setIn(in []byte) {
	if in == nil {
		in = noBytes
	}
	q.in = append(q.in[:0], in)
}

// noBytes is a buffer without elements; a nil slice means that there is no buffer.
var noBytes = []byte{}

// reduceWith sets the operator of a request with n elements and carries it out.
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

// blocks checks counts and makes them the lengths of the blocks of the request.
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

// misuse ends the group because of an invalid argument.
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
