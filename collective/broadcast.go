package collective

import (
	"context"
	"fmt"
)

// Barrier returns when every rank of the group has called it. If the group fails before that,
// Barrier returns the first cause. Cancelling the context of one rank ends the group for all
// ranks.
func (c *Comm) Barrier(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	c.stats.Barriers++
	c.group.slots[c.index].header = header{kind: callBarrier, seq: c.seq}
	return c.meet(ctx, c.leadAs(leadBarrier, ctx))
}

// BroadcastBool returns the v of rank root on every rank and ignores the v of the other ranks.
// The ranks of a process meet only once. With BroadcastBool all ranks can follow a decision of
// one rank, for example whether to stop.
func (c *Comm) BroadcastBool(ctx context.Context, root int, v bool) (bool, error) {
	var x int64
	if v {
		x = 1
	}
	x, err := c.broadcast(ctx, callBroadcastBool, root, x)
	return x != 0 && err == nil, err
}

// BroadcastInt64 returns the v of rank root on every rank and ignores the v of the other ranks.
// The ranks of a process meet only once.
func (c *Comm) BroadcastInt64(ctx context.Context, root int, v int64) (int64, error) {
	return c.broadcast(ctx, callBroadcastInt64, root, v)
}

func (c *Comm) broadcast(ctx context.Context, kind operation, root int, v int64) (int64, error) {
	if err := c.begin(ctx); err != nil {
		return 0, err
	}
	if root < 0 || root >= c.Size() {
		return 0, c.fail(fmt.Errorf("broadcast from rank %d in a group of %d", root, c.Size()))
	}
	c.stats.Broadcasts++
	s := &c.group.slots[c.index]
	s.header = header{kind: kind, seq: c.seq, root: root}
	s.value = v
	if err := c.meet(ctx, c.leadAs(leadBroadcast, ctx)); err != nil {
		return 0, err
	}
	return c.group.verdict, nil
}

// shareValue stores the root's value in the group's verdict, where the ranks of this process
// read it. The last rank to arrive calls it.
func (c *Comm) shareValue(ctx context.Context) error {
	g := c.group
	h := &g.slots[c.index].header
	if i := g.indexOf(h.root); i >= 0 {
		g.verdict = g.slots[i].value
	}
	if g.net == nil {
		return nil
	}
	v, err := c.spreadRemotely(ctx, h, g.verdict)
	g.verdict = v
	return err
}
