package collective

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file has AllReduce by messages: reductions by a named algorithm, and the code that they
// share with reductions among processes.

// sumByName reduces by messages among all ranks, by the algorithm that the caller named. If the
// algorithm takes forests, the result has the same bits as without a named algorithm. Otherwise
// each rank first folds its own entries, and the result depends on the number of ranks.
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
	targets := []sharding.Node{rankNode(c.Rank(), c.Size())}
	if h.mode == forests {
		if targets, err = a.forestTargets(k, q, h); err != nil {
			return err
		}
		if q.forest == nil && len(a.entries) == 0 {
			return c.fail(fmt.Errorf("%s: rank %d has no shard with a value, and %s takes one of every rank: leave the choice of the algorithm to the group", h.describe(), c.Rank(), h.algorithm))
		}
	}
	finished := false
	defer func() { c.endIfUnfinished(finished, h) }()
	c.watch.start(c, q.ctx)
	defer c.watch.stop()
	c.enter(h)
	defer c.leave()
	q.precedingDigest = c.history.digest
	err = a.reduceParts(q, targets, func() (bool, error) { return k.run(q) })
	finished = true
	if err != nil {
		return c.broken(err)
	}
	a.noteRun(k)
	return nil
}

// forestTargets returns the nodes that this rank gives as input to the program. If the
// algorithm takes forests, these are the nodes that cover the shards of the rank. Otherwise it
// is the root of the whole tree.
func (a *AllReducer[T]) forestTargets(k *calls, q *request, h *header) ([]sharding.Node, error) {
	if a.covers == nil || a.coversOf != h.shards {
		f := &memberForest{nodes: make([][]sharding.Node, a.c.Size())}
		for r := range f.nodes {
			f.nodes[r] = sharding.AppendCover([]sharding.Node{}, sharding.Split(h.shards, a.c.Size(), r))
		}
		f.hash = hashForest(f.nodes)
		a.covers, a.coversOf = f, h.shards
	}
	name, dims, err := algorithm.ParseName(h.algorithm)
	if err != nil {
		return nil, err
	}
	alg, err := algorithm.Find(program.AllReduce, name)
	if err != nil {
		return nil, err
	}
	q.forest = a.covers
	if alg.Supports(k.params(q, dims)) == nil {
		return a.covers.nodes[a.c.Rank()], nil
	}
	q.forest = nil
	level := 0
	for 1<<level < h.shards {
		level++
	}
	return []sharding.Node{{Level: level}}, nil
}

// collect appends the nodes and buffers of req, the part of a rank, to a.entries and a.values.
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

// reduceParts folds the collected entries into targets and calls run, which runs the program.
func (a *AllReducer[T]) reduceParts(q *request, targets []sharding.Node, run func() (bool, error)) error {
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
	// Every fold gives all NaNs the same bits. A single input may not have been folded at all,
	// so its NaNs get those bits here.
	if alone := len(a.entries) < 2 && (a.req.mode() == forests || a.c.Size() == 1); err == nil && alone {
		a.arith.oneNaN(q.out)
	}
	clear(q.in)
	return err
}

// combine folds the collected entries into the inputs of the program. A panic of the user's
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

// noteRun records the bytes and the algorithm of the latest run.
func (a *AllReducer[T]) noteRun(k *calls) {
	a.sent, a.algorithm = k.last.sent*int64(a.request.elem), k.last.prog.Algorithm
}
