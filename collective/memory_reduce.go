package collective

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file has AllReduce among ranks that share the memory of a process. Each rank folds its
// part of the elements of all inputs and writes the result to every Out.

// lead is the work of the last rank to arrive: it chooses how to fold. If the buffers are
// small, it folds for all ranks.
func (a *AllReducer[T]) lead(c *Comm) error {
	g := c.group
	if g.net != nil {
		return a.leadRemote(c)
	}
	var s *schedule
	var err error
	if g.slots[c.index].header.mode == forests {
		s, err = g.plans.forestSchedule(g)
	} else {
		s, err = g.plans.wholeSchedule(g)
	}
	if err != nil {
		return err
	}
	g.agreed = agreement{schedule: s, complete: max(len(s.leaves), 1)*a.n <= g.serialLimit, packed: a.agreeToPack()}
	if !g.agreed.complete {
		return nil
	}
	start := g.now()
	if a.req.Blocks == nil {
		err = a.fold(s, sharding.Range{Hi: a.n}, nil)
	} else {
		for r := 0; r < g.n && err == nil; r++ {
			err = a.foldBlock(s, r, nil)
		}
	}
	a.serial = g.now() - start
	return err
}

// foldOwn folds this rank's part into every Out. Then it arrives at the barrier where Recv
// waits, even if the fold fails or the goroutine ends: until all ranks have arrived, other
// ranks may read the input of this rank and write its Out.
func (a *AllReducer[T]) foldOwn() {
	c, g := a.c, a.c.group
	finished := false
	defer func() {
		if !finished { // runtime.Goexit in an operator of the user
			g.Abort(fmt.Errorf("rank %d: the goroutine ended within AllReduce %q", c.Rank(), c.open))
		}
		c.phase++
		if g.barrier.arrive() {
			g.barrier.release()
		}
		if !finished { // the goroutine ends, so nothing else waits until other ranks are done with its slices
			g.barrier.settle(c.phase)
		}
	}()
	var err error
	if a.req.Blocks == nil {
		err = a.fold(g.agreed.schedule, sharding.Split(a.n, g.n, c.index), &g.failure)
	} else {
		err = a.foldBlock(g.agreed.schedule, c.index, &g.failure)
	}
	if err != nil {
		g.Abort(err)
	}
	finished = true
}

// fold computes the elements of the result in the range r and writes them to every Out. All
// ranks have posted. A panic of the user's operator becomes an error. Once stop holds a cause,
// fold ends early, and the contents of the outputs are undefined.
func (a *AllReducer[T]) fold(s *schedule, r sharding.Range, stop *atomic.Pointer[cause]) (err error) {
	if r.Empty() {
		return nil
	}
	if a.req.Op.kind == opUser {
		defer func() {
			if v := recover(); v != nil {
				err = a.c.panicked(&a.c.group.slots[a.c.index].header, v)
			}
		}()
	}
	slots := a.c.group.slots
	a.postedLeaves(s, sharding.Range{Hi: a.n})
	a.outs = a.outs[:0]
	for i := range slots {
		a.outs = append(a.outs, slots[i].reducer.(*AllReducer[T]).req.Out)
	}
	a.folder.fold(s.plan, &a.req.Op, a.leaves, a.outs, r.Lo, r.Hi, stop)
	return nil
}

// postedLeaves sets a.leaves to the elements of all posted inputs in the range r, in the order
// of s.
func (a *AllReducer[T]) postedLeaves(s *schedule, r sharding.Range) {
	slots := a.c.group.slots
	a.leaves = a.leaves[:0]
	for _, l := range s.leaves {
		req := slots[l.rank].reducer.(*AllReducer[T]).req
		value := req.Whole
		if len(s.counts) > 0 {
			value = req.Forest[l.entry].Value
		}
		a.leaves = append(a.leaves, value[r.Lo:r.Hi])
	}
}

// foldBlock computes the block of a rank in a reduction with blocks and writes it to the Out of
// that rank.
func (a *AllReducer[T]) foldBlock(s *schedule, rank int, stop *atomic.Pointer[cause]) (err error) {
	own := a.req.part(a.n, a.c.group.n, rank)
	if own.Empty() {
		return nil
	}
	if a.req.Op.kind == opUser {
		defer func() {
			if v := recover(); v != nil {
				err = a.c.panicked(&a.c.group.slots[a.c.index].header, v)
			}
		}()
	}
	a.postedLeaves(s, own)
	a.outs = append(a.outs[:0], a.c.group.slots[rank].reducer.(*AllReducer[T]).req.Out)
	a.folder.fold(s.plan, &a.req.Op, a.leaves, a.outs, 0, own.Len(), stop)
	return nil
}

// countParts sets packed and whole to the sizes in bytes of this rank's input to the parts that
// other ranks fold.
func (a *AllReducer[T]) countParts() {
	a.packed, a.whole = 0, 0
	if a.c.group.net != nil || !a.packs() {
		return
	}
	for i := range a.req.Forest {
		a.countPart(a.req.Forest[i].Value)
	}
	if a.req.mode() == wholeBuffers {
		a.countPart(a.req.Whole)
	}
}

func (a *AllReducer[T]) countPart(x []T) {
	_, size := typeOf[T]()
	for r := range a.c.Size() {
		own := a.req.part(len(x), a.c.Size(), r)
		if r == a.c.Rank() {
			continue
		}
		a.packed += int64(packedBytes(setOf(x[own.Lo:own.Hi]), own.Len(), size))
		a.whole += int64(even(own.Len() * size))
	}
}

// agreeToPack decides how ranks that share memory count bytes in Stats, since no bytes are
// sent. It returns true if they count the bytes of packed parts, and false for whole parts.
// Only the rank that leads the meeting calls it.
func (a *AllReducer[T]) agreeToPack() bool {
	if !a.packs() {
		return false
	}
	var packed, whole int64
	for i := range a.c.group.slots {
		other := a.c.group.slots[i].reducer.(*AllReducer[T])
		packed, whole = packed+other.packed, whole+other.whole
	}
	return worthPacking(packed, whole)
}

// account adds the times and bytes of an operation to the statistics after this rank's part is
// folded. The operation began at start, the ranks met at met, and the folding ended at end.
func (a *AllReducer[T]) account(start, met, end time.Duration) {
	c := a.c
	_, size := typeOf[T]()
	n, p := a.n, c.group.n
	own := a.req.part(n, p, c.index)
	partials := len(a.req.Forest)
	if a.req.mode() == wholeBuffers {
		partials = 1
	}
	others := p - 1 // ranks that get the part that this rank folds
	if a.req.Blocks != nil {
		others = 0
	}
	d := Stats{
		Bytes:   int64(size) * int64(partials*(n-own.Len())+others*own.Len()),
		Results: int64(size) * int64(others*own.Len()),
		Sum:     a.serial + end - met,
		Recv:    met - start - a.serial,
	}
	if c.group.agreed.packed {
		if others > 0 {
			d.Results = int64(others) * int64(packedBytes(setOf(a.req.Out[own.Lo:own.Hi]), own.Len(), size))
		}
		d.Bytes, d.Sparse = a.packed+d.Results, 1
	}
	if c.group.agreed.complete {
		d.Whole = 1
	}
	c.algorithm = ""
	a.stats.Add(d)
	c.stats.Add(d)
}
