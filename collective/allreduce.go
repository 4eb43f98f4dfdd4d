package collective

import (
	"context"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Reduction is one rank's part in an AllReduce: its input, and the slice for the result. All
// ranks give the same Name, Op, number of elements and kind of input.
//
// The input of a rank is either one whole buffer or a forest. Forests are folded up the aligned
// binary tree over the job's shards, so the result depends on the shards and not on the ranks
// that hold them. A shard without a value is left out, not replaced by zero. Whole buffers are
// folded in the canonical tree over ranks (sharding.RankSchedule), so the result depends on the
// number of ranks.
//
// From the call of Send to the return of Recv the slices belong to the operation: the caller
// must not read or write Out, and may read but not write its input. The operation modifies only
// Out.
type Reduction[T Number] struct {
	Name string // the key, for errors
	Op   Op[T]

	// Forest is this rank's input over Shards shards: nodes of the tree in any order, each
	// with a buffer. Without Blocks, a buffer has the length of Out. The nodes of all
	// ranks are disjoint. Shards is a power of two. A rank without input sets Shards and
	// leaves Forest empty and Whole nil.
	Forest []sharding.Entry[[]T]
	Shards int

	// Whole is the input of a rank whose input is not a forest. Without Blocks, it has the
	// length of Out and may be the same slice.
	Whole []T

	// Out receives the result, with the same bits on all ranks. If no rank has input, every
	// element is the operator's identity. If no Algorithm is named, ranks may share one Out.
	// Out must not overlap slices of other ranks in any other way. Such an overlap is not
	// detected.
	Out []T

	// Blocks makes the reduction a ReduceScatter. The result is cut into consecutive blocks,
	// and rank r gets only block r, of Blocks[r] elements. Out then has the length of the
	// rank's own block and does not overlap slices of other ranks. The length of each input is
	// the sum of the lengths of all blocks. All ranks give the same lengths. Together, the
	// blocks have the same bits as the result of an AllReduce.
	Blocks []int

	// Algorithm names an algorithm of package algorithm, with its dimensions if it takes any:
	// "ring", "torus:4x8". Without a name, the group chooses among the algorithms that give the
	// canonical result. The result of a named algorithm may depend on the number of ranks. If
	// the inputs are forests, the result depends on the number of ranks only if the algorithm
	// does not take forests: each rank then folds its own forest first.
	Algorithm string

	// Sparse lets the group omit zeros from messages if the messages then have fewer bytes. If
	// most elements of a large buffer are +0, only the other elements and their positions are
	// sent. The receiver restores the buffer, so Sparse changes no bit of the result. It cannot
	// be combined with Algorithm.
	Sparse bool

	// Cancelling Context ends the operation and the group. If Context is nil, only failures and
	// calls of Close and Abort can end them.
	Context context.Context
}

// mode returns whether the input of the rank is a forest or a whole buffer.
func (r *Reduction[T]) mode() inputMode {
	if r.Forest != nil || r.Whole == nil && r.Shards > 0 {
		return forests
	}
	return wholeBuffers
}

// check returns an error if the part of this rank is invalid regardless of the parts of other
// ranks. n is the number of elements of each input.
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

// AllReduce folds the input of all ranks and leaves the result in every rank's Out. It returns
// when this rank's Out is complete and the slices of req belong to the caller again. On error
// the contents of Out are undefined and the group has ended.
//
// AllReduce makes the three calls of an AllReducer in a row. A call allocates nothing if an
// earlier call had the same nodes in its forests.
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

// AllReducer does AllReduce operations in three separate calls, so that a queue of package
// comqueue can show and time them as three stages. The calls are Send, Sum and Recv, in this
// order. A rank must complete one operation before it begins the next operation. An AllReducer
// can be used for any number of operations.
//
// Among ranks that share memory, Send posts pointers. In Sum the ranks meet, and the last rank
// to arrive checks that all ranks are in the same operation. If the operation is small, the
// last rank also computes the whole result for all ranks. Otherwise each rank folds its part of
// the index range (sharding.Split) of all contributions and writes the result of this part into
// every Out. Recv then waits until the other ranks have done the same. Small and large
// operations evaluate the same expression, so they give the same bits.
type AllReducer[T Number] struct {
	c      *Comm
	folder folder[T]
	req    *Reduction[T]
	n      int // elements of each input
	nodes  []sharding.Node
	leaves [][]T
	outs   [][]T
	serial time.Duration // time spent folding for all ranks in the current operation
	stats  Stats

	// packed and whole are the sizes in bytes of this rank's input to the parts that other
	// ranks fold: packed without zeros, whole with them. Only Sparse reductions set them.
	packed, whole int64

	// The fields below are used only in reductions by messages.
	request   request
	combiner  combiner
	entries   []sharding.Node
	values    [][]byte
	arith     *typedOp[T]
	covers    *memberForest
	coversOf  int
	sent      int64 // bytes sent in the latest run
	algorithm string
}

// NewAllReduce returns an AllReducer for the rank of c.
func NewAllReduce[T Number](c *Comm) *AllReducer[T] {
	return &AllReducer[T]{c: c, folder: folder[T]{table: reducersOf[T]()}}
}

// Stats returns the statistics of the operations of this AllReducer so far.
func (a *AllReducer[T]) Stats() Stats { return a.stats }

// serialLimit is the largest number of elements, summed over all contributions, that one rank
// folds for all ranks. For so few elements a second meeting of the ranks would take longer than
// folding.
const serialLimit = 16384

// Send posts req as this rank's part in the next operation. It does not wait.
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

// Sum waits until all ranks have posted, checks that they are in the same operation, and folds
// this rank's part.
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
		a.accountMessages(start, a.sent, a.algorithm)
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
			bytes = g.agreed.bytes // bytes of the whole process, counted by its first rank
		}
		a.accountMessages(start, bytes, g.agreed.algorithm)
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

// accountMessages adds an operation by messages to the statistics. The operation began at
// start, sent the given number of bytes, and used the given algorithm.
func (a *AllReducer[T]) accountMessages(start time.Duration, bytes int64, algorithm string) {
	d := Stats{Bytes: bytes, Recv: a.c.group.now() - start}
	a.algorithm = algorithm
	a.c.algorithm = algorithm
	a.stats.Add(d)
	a.c.stats.Add(d)
}

// Recv waits until all parts are folded. When it returns, the result is in Out.
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

// end drops the references to the caller's slices and makes the rank idle.
func (a *AllReducer[T]) end() {
	a.req = nil
	clear(a.leaves)
	clear(a.outs)
	a.c.state = idle
}

// expect returns an error unless the rank is in state want. For the error, call is the name of
// the present call, and before is the name of the call that must precede it.
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
