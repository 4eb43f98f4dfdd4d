package collective

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file has the collectives among ranks that share the memory of a process. Each rank does
// its part directly from the buffers of the other ranks.

// share carries out a request in shared memory. The ranks post their buffers and meet. Then
// each rank does its part directly from the memory of the other ranks. If the buffers are
// small, the last rank to arrive does all parts instead.
func (c *Comm) share(q *request) error {
	g := c.group
	s := &g.slots[c.index]
	s.header, s.request = *q.header, q
	start := g.now()
	if err := c.meet(q.ctx, c.leadAs(leadSharing, q.ctx)); err != nil {
		return err
	}
	c.algorithm = ""
	c.account(q.bytesMoved(c.index, g.n), g.now()-start)
	if g.agreed.complete {
		return nil
	}
	var exchangeBuffer []byte
	if q.coll == program.AllToAll && overlap(q.in[0], q.out) {
		if cap(c.exchangeBuffer) < len(q.out) {
			c.exchangeBuffer = make([]byte, len(q.out))
		}
		exchangeBuffer = c.exchangeBuffer[:len(q.out)]
	}
	c.shareOwn(q, exchangeBuffer)
	start = g.now()
	if c.spin == 0 || !g.barrier.spin(c.phase, c.spin) {
		g.barrier.settle(c.phase)
	}
	c.account(0, g.now()-start)
	copy(q.out, exchangeBuffer)
	return g.Err()
}

// bytesMoved returns the number of bytes that leave rank r of p ranks through shared memory: the
// bytes of its input that other ranks read, and the bytes that it writes to their outputs.
func (q *request) bytesMoved(r, p int) int64 {
	others := int64(p - 1)
	in := 0
	if len(q.in) > 0 {
		in = len(q.in[0])
	}
	own := sharding.Split(q.n, p, r).Len() * q.elem
	switch q.coll {
	case program.Broadcast:
		if r == q.root {
			return others * int64(in)
		}
	case program.Gather:
		if r != q.root {
			return int64(in)
		}
	case program.AllGather:
		return others * int64(in)
	case program.Scatter:
		if r == q.root {
			return int64(in - q.block(r, p).Len())
		}
	case program.AllToAll, program.ReduceScatter:
		return int64(in - q.block(r, p).Len())
	case program.Reduce:
		if r != q.root {
			return int64(in) // other ranks read its input, and it writes its part to the root
		}
		return int64(in - own)
	case program.Scan, program.Exscan:
		return int64(in-own) + others*int64(own)
	}
	return 0
}

// overlap reports whether two non-empty buffers begin at the same address.
func overlap(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// shareOwn does this rank's part and then arrives at the barrier. It arrives even if its part
// fails or the goroutine ends, since the other ranks wait for it there.
func (c *Comm) shareOwn(q *request, exchangeBuffer []byte) {
	g := c.group
	finished := false
	defer func() {
		if !finished { // runtime.Goexit in an operator of the user
			g.Abort(fmt.Errorf("rank %d: the goroutine ended within %s", c.Rank(), q.header.describe()))
		}
		c.phase++
		if g.barrier.arrive() {
			g.barrier.release()
		}
		if !finished { // the goroutine ends, so nothing else waits until other ranks are done with its slices
			g.barrier.settle(c.phase)
		}
	}()
	if err := c.part(q, c.index, exchangeBuffer); err != nil {
		g.Abort(err)
	}
	finished = true
}

// shareAll is the work of the last rank to arrive. It checks that senders and receivers of an
// AllToAllV agree on the counts. If the buffers are small, it does the parts of all ranks.
func (c *Comm) shareAll() error {
	g, own := c.group, &c.request
	total, inPlace := 0, false
	for i := range g.slots {
		q := g.slots[i].request
		if len(q.in) > 0 {
			total += len(q.in[0])
		}
		total += len(q.out)
		inPlace = inPlace || q.coll == program.AllToAll && overlap(q.in[0], q.out)
	}
	if own.recv != nil {
		if err := g.exchangeFits(); err != nil {
			return err
		}
	}
	g.agreed = agreement{complete: !inPlace && total <= g.serialLimit}
	if !g.agreed.complete {
		return nil
	}
	for i := range g.slots {
		if err := c.part(own, i, nil); err != nil {
			return err
		}
	}
	return nil
}

// exchangeFits returns an error if a rank of an AllToAllV sends a different number of elements
// than the receiver expects.
func (g *LocalGroup) exchangeFits() error {
	for s := range g.slots {
		for d := range g.slots {
			from, to := g.slots[s].request, g.slots[d].request
			if from.counts[d] != to.recv[s] {
				return &MismatchError{
					Rank: s, Doing: fmt.Sprintf("%s sending %d elements to rank %d", from.header.describe(), from.counts[d], d),
					Other: d, OtherDoing: fmt.Sprintf("%s expecting %d elements from rank %d", to.header.describe(), to.recv[s], s),
				}
			}
		}
	}
	return nil
}

// part does rank r's part of a collective after all requests are posted. own is the request of
// the calling rank; part uses the operator of own. If exchangeBuffer is not nil, the result of an
// AllToAll is written to it. A panic of the user's operator becomes an error.
func (c *Comm) part(own *request, r int, exchangeBuffer []byte) (err error) {
	if own.header.opk == opUser {
		defer func() {
			if v := recover(); v != nil {
				err = c.panicked(own.header, v)
			}
		}()
	}
	slots := c.group.slots
	q := slots[r].request
	root := slots[q.root].request
	switch q.coll {
	case program.Broadcast:
		move(q.out, root.in[0])
	case program.Gather:
		e := q.block(r, len(slots))
		move(root.out[e.Lo:e.Hi], q.in[0])
	case program.AllGather:
		for i := range slots {
			e := q.block(i, len(slots))
			move(q.out[e.Lo:e.Hi], slots[i].request.in[0])
		}
	case program.Scatter:
		e := q.block(r, len(slots))
		move(q.out, root.in[0][e.Lo:e.Hi])
	case program.AllToAll:
		out := q.out
		if exchangeBuffer != nil {
			out = exchangeBuffer
		}
		at := 0
		for i := range slots {
			e := slots[i].request.block(r, len(slots))
			at += copy(out[at:], slots[i].request.in[0][e.Lo:e.Hi])
		}
	case program.Reduce:
		c.fold(own, len(slots), root.out, sharding.Split(q.n, len(slots), r))
	case program.ReduceScatter:
		c.foldBlock(own, q.block(r, len(slots)), q.out)
	case program.Scan, program.Exscan:
		// Each rank computes a share of the elements for all ranks, beginning with the last. So
		// where an output is in the memory of an input, it is written only after that input was
		// read.
		share := sharding.Split(q.n, len(slots), r)
		for i := len(slots) - 1; i >= 0; i-- {
			upTo := i + 1
			if q.coll == program.Exscan {
				upTo = i
			}
			c.fold(own, upTo, slots[i].request.out, share)
		}
	}
	return nil
}

// move copies src to dst, unless both are the same memory.
func move(dst, src []byte) {
	if !overlap(dst, src) {
		copy(dst, src)
	}
}

// block returns the range in bytes of block i when the data is divided into p blocks. In an
// AllToAll, the data is the input of this rank.
func (q *request) block(i, p int) sharding.Range {
	var e sharding.Range
	if q.counts == nil {
		e = sharding.Split(q.n, p, i)
	} else {
		for _, n := range q.counts[:i] {
			e.Lo += n
		}
		e.Hi = e.Lo + q.counts[i]
	}
	return sharding.Range{Lo: e.Lo * q.elem, Hi: e.Hi * q.elem}
}

// fold folds the elements of share of the inputs of the first p ranks and writes them to the
// same elements of out.
func (c *Comm) fold(own *request, p int, out []byte, share sharding.Range) {
	plan := c.group.foldOver(p)
	if plan.Leaves == 0 {
		own.arith.fill(out[share.Lo*own.elem : share.Hi*own.elem])
		return
	}
	c.leaves = c.leaves[:0]
	for i := range plan.Leaves {
		c.leaves = append(c.leaves, c.group.slots[i].request.in[0])
	}
	own.arith.foldLeaves(plan, c.leaves, out, share.Lo, share.Hi)
	clear(c.leaves)
}

// foldBlock writes the fold of a block of the inputs of all ranks to out.
func (c *Comm) foldBlock(own *request, block sharding.Range, out []byte) {
	plan := c.group.foldOver(len(c.group.slots))
	c.leaves = c.leaves[:0]
	for i := range c.group.slots {
		c.leaves = append(c.leaves, c.group.slots[i].request.in[0][block.Lo:block.Hi])
	}
	own.arith.foldLeaves(plan, c.leaves, out, 0, block.Len()/own.elem)
	clear(c.leaves)
}

// foldOver returns the plan of the canonical tree over the first p ranks.
func (g *LocalGroup) foldOver(p int) *program.FoldPlan {
	g.folds.Lock()
	defer g.folds.Unlock()
	if f := g.folds.plans[p]; f != nil {
		return f
	}
	plan, err := program.CompileFold(p, sharding.RankSchedule(p, nil))
	if err != nil {
		panic(err) // does not happen: RankSchedule returns a tree
	}
	if g.folds.plans == nil {
		g.folds.plans = map[int]*program.FoldPlan{}
	}
	g.folds.plans[p] = plan
	return plan
}
