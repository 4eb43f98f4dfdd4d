package collective

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Collectives by messages among all ranks of a group, wherever they live: those of groups over
// TCP, and those of a process that ask for an algorithm by name.

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
	defer func() { c.endUnless(finished, q.header) }()
	c.watch.start(c, q.ctx)
	defer c.watch.stop()
	c.enter(q.header)
	defer c.leave()
	result := q.out
	if q.coll == program.Exscan && c.Rank() == 0 {
		q.out = nil // there is nothing before rank 0
	}
	q.before = c.history.digest
	present, err := k.run(q)
	finished = true
	if err != nil {
		return c.broken(err)
	}
	c.by = k.last.prog.Algorithm
	if len(result) > 0 && q.arith != nil && (!present || q.out == nil) {
		q.arith.fill(result)
	}
	return nil
}

// agree has the ranks of a local group meet before they send messages: one that is in
// something else, in shared memory, would never hear of it. Ranks in several processes
// learn it from each other's messages, or from the membership.
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

// endUnless ends the group if the goroutine was ended within an operation, as by
// runtime.Goexit in an operator of the user: nobody returns to tell the others.
func (c *Comm) endUnless(finished bool, h *header) {
	if !finished {
		c.broken(fmt.Errorf("the goroutine ended within %s", h.describe()))
	}
}

// broken ends the group for an error that a run of messages came back with. It is
// the group's own cause if messages carried it here.
func (c *Comm) broken(err error) error {
	g := c.group
	if cause := c.calls.node.Err(); cause != nil {
		g.end(cause)
		return g.Err()
	}
	return c.fail(err)
}

// messages gives this rank's programs, connecting the ranks of a local group when
// the first asks.
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

// localDecider stands where nothing is left to decide: messages among the ranks of
// one process are sent by an algorithm that was asked for.
type localDecider struct{}

func (localDecider) decide(_ *calls, q *request, _ decisionKey) (*choice, error) {
	return nil, fmt.Errorf("%s without an algorithm", titles[q.coll])
}

// channels is one: what is copied within a process waits for no socket.
func (localDecider) channels(*calls, decisionKey) int { return 1 }
