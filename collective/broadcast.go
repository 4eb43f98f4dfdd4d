package collective

import (
	"context"
	"fmt"
)

// Barrier returns when every rank of the group has called it, or with the first
// cause when one cannot any more. Cancelling the context of one rank ends the
// group for all.
func (c *Comm) Barrier(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	c.stats.Barriers++
	c.group.slots[c.rank].header = header{kind: callBarrier, seq: c.seq}
	return c.meet(ctx, nil)
}

// BroadcastBool returns root's v on every rank; the others' is ignored. It takes
// one meeting of the ranks, like Barrier, and orders what they do in the same
// way. It is how a verdict, such as whether to stop, is made the same everywhere.
func (c *Comm) BroadcastBool(ctx context.Context, root int, v bool) (bool, error) {
	var x int64
	if v {
		x = 1
	}
	x, err := c.broadcast(ctx, callBroadcastBool, root, x)
	return x != 0 && err == nil, err
}

// BroadcastInt64 returns root's v on every rank; the others' is ignored. It takes
// one meeting of the ranks.
func (c *Comm) BroadcastInt64(ctx context.Context, root int, v int64) (int64, error) {
	return c.broadcast(ctx, callBroadcastInt64, root, v)
}

func (c *Comm) broadcast(ctx context.Context, kind operation, root int, v int64) (int64, error) {
	if err := c.begin(ctx); err != nil {
		return 0, err
	}
	if root < 0 || root >= c.group.n {
		return 0, c.fail(fmt.Errorf("broadcast from rank %d in a group of %d", root, c.group.n))
	}
	c.stats.Broadcasts++
	s := &c.group.slots[c.rank]
	s.header = header{kind: kind, seq: c.seq, root: root}
	s.value = v
	if err := c.meet(ctx, spreadValue{}); err != nil {
		return 0, err
	}
	return c.group.verdict, nil
}

// spreadValue puts the root's value where all ranks find it.
type spreadValue struct{}

func (spreadValue) lead(c *Comm) error {
	g := c.group
	g.verdict = g.slots[g.slots[c.rank].header.root].value
	return nil
}
