package collective

import (
	"context"
	"errors"
	"fmt"
)

// meet synchronises the ranks of this process. It returns when all of them have arrived, or
// with the first cause if the group fails before that. The last rank to arrive compares the
// headers of all ranks and, if lead is not nil, runs it while the other ranks wait. What a rank
// wrote before meet is visible to lead, and what lead wrote is visible to all ranks after meet.
//
// On arrival, each rank compares its signature with the signature of the first rank that
// arrived. So most mismatches are found before all ranks have arrived.
func (c *Comm) meet(ctx context.Context, lead leader) error {
	g := c.group
	c.enter(&g.slots[c.index].header)
	defer c.leave()
	c.phase++
	mine := g.slots[c.index].header.signature(c.index)
	if first := g.barrier.announce(mine); !first.agrees(mine) {
		g.Abort(g.mismatch(first.rank(), c.index))
	}
	if !g.barrier.arrive() {
		return c.waitForMeeting(ctx)
	}
	if g.failure.Load() != nil {
		g.barrier.discard()
		return g.Err()
	}
	if err := c.runLead(lead); err != nil {
		return err
	}
	g.barrier.release()
	return nil
}

// leader is work that the last rank to arrive at a meeting does for all ranks. That rank is
// said to lead the meeting.
type leader interface{ lead(c *Comm) error }

// leading implements leader for operations other than AllReduce. Each rank has one leading and
// reuses it.
type leading struct {
	kind leadKind
	ctx  context.Context
}

type leadKind uint8

const (
	leadBarrier leadKind = iota
	leadBroadcast
	leadSharing
	leadPayloads
)

func (c *Comm) leadAs(kind leadKind, ctx context.Context) leader {
	c.leading = leading{kind, ctx}
	return &c.leading
}

func (l *leading) lead(c *Comm) error {
	switch l.kind {
	case leadBroadcast:
		return c.shareValue(l.ctx)
	case leadSharing:
		return c.shareAll()
	case leadPayloads:
		return c.exchangePayloads(l.ctx)
	default:
		return c.meetRemotely(l.ctx)
	}
}

// runLead compares the headers of all ranks and runs l. If the headers differ or l fails,
// runLead ends the group, so that the waiting ranks get the error.
func (c *Comm) runLead(l leader) (err error) {
	g := c.group
	finished := false
	defer func() {
		if !finished { // runtime.Goexit in an operator of the user
			err = errors.New("the goroutine ended within the operation")
		}
		if err != nil {
			g.Abort(err)
			g.barrier.discard()
			err = g.Err()
		}
	}()
	err = g.compareHeaders()
	if err == nil && l != nil {
		err = l.lead(c)
	}
	finished = true
	return err
}

// waitForMeeting blocks until all ranks have arrived at this rank's meeting.
func (c *Comm) waitForMeeting(ctx context.Context) error {
	g := c.group
	if c.spin > 0 {
		if g.barrier.spin(c.phase, c.spin) {
			c.spin = min(c.spin*2, maxSpin)
			return nil
		}
		// Spinning took longer than parking would have. Spin less next time.
		c.spin = max(c.spin/2, minSpin)
	}
	c.watch.start(c, ctx)
	for {
		switch g.barrier.park(c.phase, &g.failure) {
		case met:
			c.watch.stop()
			return nil
		case failed:
			c.watch.stop()
			return g.Err()
		case rankLeft:
			g.Abort(fmt.Errorf("rank %d waits in %s, but rank %d %w",
				c.Rank(), g.slots[c.index].header.describe(), g.ranks[g.barrier.whoLeft()], ErrLeft))
		}
	}
}
