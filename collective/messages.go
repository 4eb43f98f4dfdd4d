package collective

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// This file has the collectives by messages among all ranks of a group. Groups over TCP use
// them, and so do the ranks of one process if they name an algorithm.

// exchange carries out a request by messages among all ranks.
func (c *Comm) exchange(q *request) error {
	k, err := c.messages()
	if err != nil {
		return err
	}
	if err := c.agree(q.ctx, q.header); err != nil {
		return err
	}
	finished := false
	defer func() { c.endIfUnfinished(finished, q.header) }()
	c.watch.start(c, q.ctx)
	defer c.watch.stop()
	c.enter(q.header)
	defer c.leave()
	result := q.out
	if q.coll == program.Exscan && c.Rank() == 0 {
		q.out = nil // there are no ranks before rank 0, so it has no result
	}
	q.precedingDigest = c.history.digest
	present, err := k.run(q)
	finished = true
	if err != nil {
		return c.broken(err)
	}
	c.algorithm = k.last.prog.Algorithm
	if len(result) > 0 && q.arith != nil && (!present || q.out == nil) {
		q.arith.fill(result)
	}
	return nil
}

// agree has the ranks of a local group meet before they send messages. Without this meeting, a
// rank that waits in a different call, which uses shared memory, would never get the error of a
// mismatch. Ranks in several processes detect a mismatch from each other's messages or through
// the membership.
func (c *Comm) agree(ctx context.Context, h *header) error {
	g := c.group
	if g.net != nil {
		return nil
	}
	if s := &g.slots[c.index]; &s.header != h {
		s.header = *h
	}
	return c.meet(ctx, nil)
}

// endIfUnfinished ends the group if finished is false. finished is false if the goroutine ended
// within the operation of h, for example by runtime.Goexit in an operator of the user. In that
// case the call never returns an error, so the other ranks must be notified here.
func (c *Comm) endIfUnfinished(finished bool, h *header) {
	if !finished {
		c.broken(fmt.Errorf("the goroutine ended within %s", h.describe()))
	}
}

// broken ends the group with an error that a run of a program by messages returned. It returns
// the group's cause. If the node has failed already, that failure is the cause.
func (c *Comm) broken(err error) error {
	g := c.group
	if cause := c.calls.node.Err(); cause != nil {
		g.end(cause)
		return g.Err()
	}
	return c.fail(err)
}

// messages returns the calls of this rank, which run programs among the ranks. In a local
// group, the first call of messages connects the ranks.
func (c *Comm) messages() (*calls, error) {
	if c.calls.node != nil {
		return &c.calls, nil
	}
	g := c.group
	if g.net != nil {
		c.calls = newCalls(g.net.node(c.Rank()), g.net)
		return &c.calls, nil
	}
	g.makeMessages.Do(func() {
		local := mesh.NewLocal(g.n)
		g.local.Store(local)
		if err := g.Err(); err != nil {
			local.Node(0).Fail(err)
		}
		for i := range g.gone {
			if g.gone[i].Load() {
				local.Leave(i)
			}
		}
	})
	c.calls = newCalls(g.local.Load().Node(c.index), localDecider{})
	return &c.calls, nil
}

// localDecider is the decider of a local group. Its decide method is never called, since ranks
// of one process send messages only for named algorithms.
type localDecider struct{}

func (localDecider) decide(_ *calls, q *request, _ decisionKey) (*choice, error) {
	return nil, fmt.Errorf("%s without an algorithm", titles[q.coll])
}

// channels returns 1. More connections for a lane would not be faster, since copies within a
// process do not wait for sockets.
func (localDecider) channels(*calls, decisionKey) int { return 1 }
