package collective

import (
	"context"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Reduction is one rank's part in an AllReduce: what it brings, and where the
// result goes. All ranks give the same Name, operator, length and kind of input.
//
// A rank brings either one whole buffer or a forest. Forests are folded up the
// aligned binary tree over the job's shards. So the result depends on the shards
// and not on the ranks that hold them. A shard without a value is left out, not
// replaced by zero. Whole buffers are folded in the canonical tree over ranks
// (sharding.RankSchedule), so the result depends on the number of ranks.
//
// From Send to the end of Recv the slices belong to the operation: the caller may
// not touch Out, and may only read its input. The operation modifies only Out.
type Reduction[T Number] struct {
	Name string // the key, for errors
	Op   Op[T]

	// Forest is this rank's input over Shards shards: nodes of the tree in any order, each
	// with a buffer. Without Blocks, a buffer has the length of Out. The nodes of all
	// ranks are disjoint. Shards is a power of two. A rank without input sets Shards and
	// leaves Forest empty and Whole nil.
	Forest []sharding.Entry[[]T]
	Shards int

	// Whole is the buffer of a rank that brings no forest. Without Blocks, it has the
	// length of Out and may be the same slice.
	Whole []T

	// Out receives the result, with the same bits on all ranks. If no rank brings
	// anything, every element is the operator's identity. Without an Algorithm, ranks
	// may share one Out. Other than that, it does not overlap slices of other ranks.
	Out []T

	// Blocks makes the reduction a ReduceScatter. The result is cut into consecutive
	// blocks, and rank r gets only block r, of Blocks[r] elements. Out then has the length
	// of the rank's own block and does not overlap slices of other ranks. Each input has
	// the length of all blocks together. All ranks give the same lengths. The bits are
	// those of an AllReduce.
	Blocks []int

	// Algorithm names an algorithm of package algorithm, with its dimensions if it takes
	// any: "ring", "torus:4x8". Without a name, the group chooses among the algorithms
	// that give the canonical result. The result of a named algorithm may depend on the
	// number of ranks. With forests this is so if the algorithm does not take forests:
	// each rank then folds its own first.
	Algorithm string

	// Sparse lets the group leave zeros away where that takes fewer bytes. If most
	// elements of a large buffer are +0, only the others are sent, with their places. The
	// receiver restores the buffer, so Sparse changes no bit of the result. It cannot be
	// combined with Algorithm.
	Sparse bool

	// Context ends the wait, and the group, when it is cancelled. With nil only
	// Close and Abort do.
	Context context.Context
}

// mode says whether the rank brings a forest or a whole buffer.
func (r *Reduction[T]) mode() inputMode {
	if r.Forest != nil || r.Whole == nil && r.Shards > 0 {
		return forests
	}
	return wholeBuffers
}

// check returns what is wrong with the part of this rank alone; n is its length.
func (r *Reduction[T]) check(n int) error {
	if r.Op.kind == opNone || r.Op.kind == opUser && r.Op.fold == nil {
		return fmt.Errorf("AllReduce %q has no operator", r.Name)
	}
	if r.Sparse && r.Algorithm != "" {
		return fmt.Errorf("AllReduce %q is to omit zeros and to be done by %s, whose messages are whole: choose one", r.Name, r.Algorithm)
	}
	if r.mode() == wholeBuffers {
		if len(r.Whole) != n {
			return fmt.Errorf("AllReduce %q brings %d elements but has room for %d", r.Name, len(r.Whole), n)
		}
		return nil
	}
	if r.Whole != nil {
		return fmt.Errorf("AllReduce %q brings both a forest and a whole buffer", r.Name)
	}
	if err := sharding.ValidShards(r.Shards); err != nil {
		return fmt.Errorf("AllReduce %q: %w", r.Name, err)
	}
	for i := range r.Forest {
		e := &r.Forest[i]
		if len(e.Value) != n {
			return fmt.Errorf("AllReduce %q brings %d elements for node %v but has room for %d", r.Name, len(e.Value), e.Node, n)
		}
		if n := e.Node; n.Level < 0 || n.Index < 0 || r.Shards>>n.Level <= n.Index {
			return fmt.Errorf("AllReduce %q brings node %v, which is not in the tree over %d shards", r.Name, e.Node, r.Shards)
		}
	}
	return nil
}

// AllReduce folds the input of all ranks and leaves the result in every rank's Out.
// It returns when this rank's Out is complete and its slices belong to the caller
// again. On error the contents of Out are undefined and the group has ended.
//
// AllReduce makes the three calls of an AllReducer in a row. A loop over AllReduce
// allocates nothing once it has seen its structure of nodes.
func AllReduce[T Number](c *Comm, req *Reduction[T]) error {
	dtype, _ := typeOf[T]()
	a, ok := c.reducers[dtype].(*AllReducer[T])
	if !ok {
		a = NewAllReduce[T](c)
		c.reducers[dtype] = a
	}
	if err := a.Send(req); err != nil {
		return err
	}
	if err := a.Sum(); err != nil {
		return err
	}
	return a.Recv()
}

// AllReducer does AllReduce operations in three separate calls, so that a queue
// can show and time them as three stages: Send, Sum, Recv, always in this order,
// one operation of a rank at a time. It can be used any number of times.
//
// Among ranks that share memory, Send posts pointers. In Sum the ranks meet, and
// the last to arrive checks that all are in the same operation. If the operation is
// small, this rank folds it at once for all. Otherwise each rank folds its part of the
// index range (sharding.Split) of all contributions and writes it into every Out. Recv
// then waits until the others have done the same. The expression is the same either
// way, and so are the bits.
type AllReducer[T Number] struct {
	c      *Comm
	folder folder[T]
	req    *Reduction[T]
	n      int // elements of each input
	nodes  []sharding.Node
	leaves [][]T
	outs   [][]T
	serial time.Duration // spent folding for all in the current operation
	stats  Stats

	// In a Sparse reduction: the bytes, packed and whole, of this rank's input to the parts
	// that other ranks fold.
	packed, whole int64

	// Of reductions by messages.
	request  request
	combiner combiner
	entries  []sharding.Node
	values   [][]byte
	arith    *typedOp[T]
	covers   *memberForest
	coversOf int
	sent     int64 // bytes, of the latest run
	by       string
}

// NewAllReduce makes an AllReducer for a rank's end of a group.
func NewAllReduce[T Number](c *Comm) *AllReducer[T] {
	return &AllReducer[T]{c: c, folder: folder[T]{table: reducersOf[T]()}}
}

// Stats returns what this AllReducer did so far.
func (a *AllReducer[T]) Stats() Stats { return a.stats }

// serialLimit is the number of elements, over all contributions, below which a
// second meeting of the ranks costs more than letting one of them fold alone.
const serialLimit = 16384

// Send posts this rank's part. It does not wait.
func (a *AllReducer[T]) Send(req *Reduction[T]) error {
	c := a.c
	start := c.group.now()
	if err := c.begin(req.Context); err != nil {
		return err
	}
	n, blocks, err := req.length(c.Rank(), c.Size())
	if err == nil {
		err = req.check(n)
	}
	if err != nil {
		return c.fail(err)
	}
	dtype, _ := typeOf[T]()
	a.req, a.n = req, n
	a.nodes = a.nodes[:0]
	for i := range req.Forest {
		a.nodes = append(a.nodes, req.Forest[i].Node)
	}
	s := &c.group.slots[c.index]
	s.header = header{
		kind: callAllReduce, seq: c.seq, count: n, counts: blocks,
		name: req.Name, dtype: dtype, op: req.Op.name, opk: req.Op.kind, mode: req.mode(),
		algorithm: req.Algorithm, sparse: req.Sparse,
	}
	if s.header.mode == forests {
		s.header.shards = req.Shards
	}
	a.countParts()
	s.nodes, s.reducer = a.nodes, a
	c.state, c.open = posted, req.Name
	spent := c.group.now() - start
	a.stats.Send += spent
	c.stats.Send += spent
	return nil
}

// Sum waits until all ranks have posted, checks that they agree, and folds this
// rank's part.
func (a *AllReducer[T]) Sum() error {
	c, g := a.c, a.c.group
	if err := a.expect(posted, "Sum", "Send"); err != nil {
		return err
	}
	start := g.now()
	a.serial = 0
	if a.req.Algorithm != "" {
		if err := a.sumByName(); err != nil {
			a.end()
			return c.failed(err)
		}
		c.state = settled
		a.accountMessages(start, a.sent, a.by)
		return nil
	}
	if err := c.meet(a.req.Context, a); err != nil {
		a.end()
		return err
	}
	met := g.now()
	end := met
	if g.net != nil {
		c.state = settled
		bytes := int64(0)
		if c.index == 0 {
			bytes = g.agreed.bytes // of the whole process
		}
		a.accountMessages(start, bytes, g.agreed.by)
		if g.agreed.packed {
			a.stats.Sparse++
			c.stats.Sparse++
		}
		return nil
	}
	if g.agreed.complete {
		c.state = settled
	} else {
		a.foldOwn()
		c.state = summed
		end = g.now()
	}
	a.account(start, met, end)
	return nil
}

// accountMessages counts an operation that messages have carried out since start.
func (a *AllReducer[T]) accountMessages(start time.Duration, bytes int64, by string) {
	d := Stats{Bytes: bytes, Recv: a.c.group.now() - start}
	a.by = by
	a.c.by = by
	a.stats.Add(d)
	a.c.stats.Add(d)
}

// Recv waits until all parts are folded. The result is then in Out.
func (a *AllReducer[T]) Recv() error {
	c, g := a.c, a.c.group
	if c.state == settled && a.req != nil {
		a.finish(Stats{Calls: 1})
		return nil
	}
	if err := a.expect(summed, "Recv", "Sum"); err != nil {
		return err
	}
	start := g.now()
	if c.spin == 0 || !g.barrier.spin(c.phase, c.spin) {
		g.barrier.settle(c.phase)
	}
	a.finish(Stats{Calls: 1, Recv: g.now() - start})
	return g.Err()
}

func (a *AllReducer[T]) finish(d Stats) {
	a.stats.Add(d)
	a.c.stats.Add(d)
	a.end()
}

// end drops the references to the caller's slices.
func (a *AllReducer[T]) end() {
	a.req = nil
	clear(a.leaves)
	clear(a.outs)
	a.c.state = idle
}

// expect checks the order of calls.
func (a *AllReducer[T]) expect(want commState, call, before string) error {
	c := a.c
	if c.state == want && a.req != nil {
		return nil
	}
	if c.state == closed {
		if err := c.group.Err(); err != nil {
			return err
		}
		return ErrClosed
	}
	if err := c.group.Err(); err != nil {
		return err
	}
	return c.fail(fmt.Errorf("%s of an AllReduce without %s before it", call, before))
}
