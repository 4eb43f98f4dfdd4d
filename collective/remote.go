package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared"
)

// remotely runs a request among the processes. The caller leads a meeting of the ranks of
// this one.
func (c *Comm) remotely(q *request) (present bool, err error) {
	net := c.group.net
	q.before = c.history.digest
	c.watch.start(c, q.ctx)
	defer c.watch.stop()
	return net.calls.run(q)
}

// meetRemotely has this process meet the others.
func (c *Comm) meetRemotely(ctx context.Context) error {
	n := c.group.net
	if n == nil {
		return nil
	}
	n.header = c.group.slots[c.index].header
	n.request = request{header: &n.header, ctx: ctx, coll: program.Barrier, elem: 1, in: append(n.request.in[:0], noBytes), out: noBytes}
	_, err := c.remotely(&n.request)
	if n.calls.last != nil {
		c.by = n.calls.last.prog.Algorithm
	}
	return err
}

// spreadRemotely brings the value of a broadcast's root to this process.
func (c *Comm) spreadRemotely(ctx context.Context, h *header, value int64) (int64, error) {
	n := c.group.net
	binary.LittleEndian.PutUint64(n.word[:], uint64(value))
	n.header = *h
	root := n.hostOf(h.root)
	n.request = request{
		header: &n.header, ctx: ctx, coll: program.Broadcast, root: root,
		elem: 8, n: 1, in: append(n.request.in[:0], noBytes), out: n.word[:],
	}
	if root == n.me {
		n.request.in[0] = n.word[:]
	}
	_, err := c.remotely(&n.request)
	return int64(binary.LittleEndian.Uint64(n.word[:])), err
}

// hostOf is the process of a rank.
func (n *network) hostOf(rank int) int {
	return slices.IndexFunc(n.hosts, func(ranks []int) bool { return slices.Contains(ranks, rank) })
}

// indexOf is the place of a rank among those of this process, or −1.
func (g *LocalGroup) indexOf(rank int) int {
	i, ok := slices.BinarySearch(g.ranks, rank)
	if !ok {
		return -1
	}
	return i
}

// leadRemote is the reduction of a group that has ranks in other processes, by the
// rank that comes last: what the ranks of this process brought is folded into the
// nodes that cover it, one program runs among the processes, and the result is copied
// to every rank.
func (a *AllReducer[T]) leadRemote(c *Comm) error {
	g := c.group
	h := &g.slots[c.index].header
	pt := g.net.partiesFor(h.mode, h.shards)
	a.entries, a.values = a.entries[:0], a.values[:0]
	for i := range g.slots {
		a.collect(g.slots[i].reducer.(*AllReducer[T]).req, g.ranks[i])
	}
	q := &a.request
	*q = request{header: h, ctx: a.req.Context, coll: program.AllReduce, commutative: a.req.Op.commutative, forest: pt.forest}
	g.agreed = agreement{complete: true}
	run := func() (present bool, err error) {
		if a.packs() && len(pt.nodes) > 1 {
			if g.agreed.packed, present, err = a.reducePacked(q, pt); err != nil || g.agreed.packed {
				return present, err
			}
		}
		if present, err = c.remotely(q); err == nil {
			a.noteRun(&g.net.calls)
			g.agreed.bytes, g.agreed.by = g.agreed.bytes+a.sent, a.by
		}
		return present, err
	}
	if a.req.Blocks != nil {
		run = func() (bool, error) { return true, a.scatterRemote(c, q, pt) }
	}
	if err := a.reduceParts(q, pt.mine, run); err != nil || a.req.Blocks != nil {
		return err
	}
	for i := range g.slots {
		move(bytesOf(g.slots[i].reducer.(*AllReducer[T]).req.Out), q.out)
	}
	return nil
}

// sumByName reduces by an algorithm asked for by name, among all ranks, by messages.
// One that takes forests gets them, so that the result is the same as ever; for the
// others each rank first folds all that it has, and the result depends on the number
// of ranks.
func (a *AllReducer[T]) sumByName() error {
	c := a.c
	k, err := c.messages()
	if err != nil {
		return err
	}
	h := &c.group.slots[c.index].header
	if err := c.agree(a.req.Context, h); err != nil {
		return err
	}
	a.entries, a.values = a.entries[:0], a.values[:0]
	a.collect(a.req, c.Rank())
	q := &a.request
	*q = request{header: h, ctx: a.req.Context, coll: program.AllReduce, commutative: a.req.Op.commutative}
	targets := []shared.Node{rankNode(c.Rank(), c.Size())}
	if h.mode == forests {
		if targets, err = a.forestTargets(k, q, h); err != nil {
			return err
		}
		if q.forest == nil && len(a.entries) == 0 {
			return c.fail(fmt.Errorf("%s: rank %d has no shard with a value, and %s takes one of every rank: leave the choice of the algorithm to the group", h.describe(), c.Rank(), h.algorithm))
		}
	}
	finished := false
	defer func() { c.endUnless(finished, h) }()
	c.watch.start(c, q.ctx)
	defer c.watch.stop()
	c.enter(h)
	defer c.leave()
	q.before = c.history.digest
	err = a.reduceParts(q, targets, func() (bool, error) { return k.run(q) })
	finished = true
	if err != nil {
		return c.broken(err)
	}
	a.noteRun(k)
	return nil
}

// forestTargets gives the nodes that this rank brings to a program over forests: the
// cover of its shards where the algorithm takes that, else the whole tree.
func (a *AllReducer[T]) forestTargets(k *calls, q *request, h *header) ([]shared.Node, error) {
	if a.covers == nil || a.coversOf != h.shards {
		f := &memberForest{nodes: make([][]shared.Node, a.c.Size())}
		for r := range f.nodes {
			f.nodes[r] = shared.AppendCover([]shared.Node{}, shared.Split(h.shards, a.c.Size(), r))
		}
		f.hash = hashForest(f.nodes)
		a.covers, a.coversOf = f, h.shards
	}
	name, dims, err := algorithm.ParseName(h.algorithm)
	if err != nil {
		return nil, err
	}
	by, err := algorithm.Find(program.AllReduce, name)
	if err != nil {
		return nil, err
	}
	q.forest = a.covers
	if by.Supports(k.params(q, dims)) == nil {
		return a.covers.nodes[a.c.Rank()], nil
	}
	q.forest = nil
	level := 0
	for 1<<level < h.shards {
		level++
	}
	return []shared.Node{{Level: level}}, nil
}

// collect adds what a rank brings.
func (a *AllReducer[T]) collect(req *Reduction[T], rank int) {
	if req.mode() == wholeBuffers {
		a.entries = append(a.entries, rankNode(rank, a.c.Size()))
		a.values = append(a.values, bytesOf(req.Whole))
		return
	}
	for i := range req.Forest {
		a.entries = append(a.entries, req.Forest[i].Node)
		a.values = append(a.values, bytesOf(req.Forest[i].Value))
	}
}

// reduceParts folds what was collected into targets and runs the program.
func (a *AllReducer[T]) reduceParts(q *request, targets []shared.Node, run func() (bool, error)) error {
	defer clear(a.values)
	if err := a.combiner.prepare(a.entries, targets); err != nil {
		return fmt.Errorf("AllReduce %q: %w", a.req.Name, err)
	}
	_, q.elem = typeOf[T]()
	q.n, q.out = a.n, nil
	if a.req.Blocks == nil {
		q.out = bytesOf(a.req.Out)
	}
	q.arith = a.arith
	if a.arith == nil {
		a.arith = newTypedOp[T]()
		q.arith = a.arith
	}
	a.arith.set(a.req.Op)
	if err := a.combine(q); err != nil {
		return err
	}
	present, err := run()
	if err == nil && !present {
		a.arith.fill(q.out)
	}
	// Every fold leaves one NaN. What nobody else had anything to fold with has seen none.
	if alone := len(a.entries) < 2 && (a.req.mode() == forests || a.c.Size() == 1); err == nil && alone {
		a.arith.oneNaN(q.out)
	}
	clear(q.in)
	return err
}

// combine folds what was collected into what the program takes. A panic of the user's
// operator becomes an error.
func (a *AllReducer[T]) combine(q *request) (err error) {
	if q.header.opk == opUser {
		defer func() {
			if v := recover(); v != nil {
				err = a.c.panicked(q.header, v)
			}
		}()
	}
	q.in = a.combiner.combine(a.values, q.out, q.n*q.elem, q.elem, a.arith)
	return nil
}

// noteRun remembers what the run just made costs and was carried out by.
func (a *AllReducer[T]) noteRun(k *calls) {
	a.sent, a.by = k.last.sent*int64(a.request.elem), k.last.prog.Algorithm
}
