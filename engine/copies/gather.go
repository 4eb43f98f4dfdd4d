package copies

import "context"

// A job may end its attempt on purpose, and go on with fewer workers or on other machines. It then
// needs its states at whichever workers are left. So worker 0 has all states gathered: each worker sends
// those pieces of a complete state that it has shared itself to all others. From the first message of
// this kind on, the copies of later states go to all workers too, until worker 0 says that they need
// not any more. A state some of whose copies were sent before is gathered before it counts as complete,
// as all Stores drop the older one then.

// gathering is a complete state that all workers are to hold, in worker 0.
type gathering struct {
	reported []bool // by worker
	missing  int    // workers that have not sent their pieces to all others
	round    *round // the round that ends when the state is gathered; nil if it has ended before
}

// isWide reports whether the copies of states go to more workers than usual.
func (c *Core) isWide() bool { return c.wide && c.copies < c.workers-1 }

// gather makes all workers hold a state of which all pieces are held by some. It is called in worker 0.
func (c *Core) gather(s State, r *round) {
	c.gathers[s] = &gathering{reported: make([]bool, c.workers), missing: c.workers, round: r}
	for to := 1; to < c.workers; to++ {
		c.send(to, Message{kind: kindGather, State: s})
	}
	c.gatherOwn(s)
}

// gatherOwn sends the pieces that this worker has shared of a state to all others.
func (c *Core) gatherOwn(s State) {
	c.wide = true
	if d, ok := c.own[s]; ok && d.gathers {
		return // the message was repeated
	}
	c.own[s] = debt{gathers: true}
	for _, piece := range c.store.own(s) {
		for to := range c.workers {
			if to != c.worker {
				c.copyTo(to, s, piece)
			}
		}
	}
	c.End(s, false)
}

// gathered notes that a worker has sent its pieces of a state to all others.
func (c *Core) gathered(from int, s State) {
	g := c.gathers[s]
	if g == nil || g.reported[from] {
		return
	}
	g.reported[from] = true
	if g.missing--; g.missing > 0 {
		return
	}
	delete(c.gathers, s)
	if g.round != nil {
		c.tell(g.round)
		return
	}
	c.settled()
}

// gatherAll reports whether all workers hold the complete states and no other is under way. Until then,
// it must be called again after each call of settled. gathered has the states that it has had gathered.
// States of the queues besides are gathered only if they are complete already.
// It is called in worker 0.
func (c *Core) gatherAll(gathered map[State]bool, besides func(queue string) bool) bool {
	for queue := range c.rounds {
		if c.UnderWay(queue) && !besides(queue) {
			return false
		}
	}
	if len(c.gathers) > 0 {
		return false
	}
	for _, s := range c.store.newest() {
		if !gathered[s] && c.copies < c.workers-1 {
			gathered[s] = true
			c.gather(s, nil)
		}
	}
	return len(c.gathers) == 0
}

// narrow ends the time in which the copies of states go to all workers. It is called in worker 0.
func (c *Core) narrow() {
	if !c.wide {
		return
	}
	c.wide = false
	for to := 1; to < c.workers; to++ {
		c.send(to, Message{kind: kindNarrow, State: narrowState})
	}
}

// narrowState is the state that a message of kind kindNarrow names, which is about no state.
var narrowState = State{Superstep: 1, Of: 1}

// Gather waits in worker 0 until no state is under way, and has all workers hold the states that are
// complete then. They also get copies of each later state, until Narrow is called: any one of the
// workers is enough to continue from what Gather returns, or from later states. The caller shares no
// new states while Gather runs, except for those after which no superstep follows. Gather does not wait for
// states that are under way of queues for which besides is true.
func (x *Exchange) Gather(ctx context.Context, besides func(queue string) bool) (states []State, err error) {
	gathered := make(map[State]bool)
	err = x.await(ctx, "the states of the queues are not copied to all workers", func() bool {
		all := x.core.gatherAll(gathered, besides)
		if all {
			states = x.cfg.Store.newest()
		}
		return all
	})
	return states, err
}

// Narrow says in worker 0 that copies of later states need to go to Config.Copies workers only.
func (x *Exchange) Narrow() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.core.narrow()
	}
}
