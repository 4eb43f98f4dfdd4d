package collective

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/superstep-ml/superstep/collective/program"
)

// perform carries out a request of n elements. It uses shared memory if all ranks are in this
// process and no algorithm is named. Otherwise it uses messages.
func (c *Comm) perform(q *request, n int) error {
	if err := c.begin(q.ctx); err != nil {
		return err
	}
	q.header.seq, q.header.root, q.header.count = c.seq, q.root, n
	if q.coll.Rooted() && (q.root < 0 || q.root >= c.Size()) {
		return c.fail(fmt.Errorf("%s with root %d in a group of %d", titles[q.coll], q.root, c.Size()))
	}
	defer c.forget(q)
	if c.group.net == nil && q.header.algorithm == "" {
		return c.share(q)
	}
	start := c.group.now()
	err := c.exchange(q)
	// Every fold gives all NaNs the same bits. A result that was not folded gets those bits
	// here.
	if unfolded := q.coll == program.Scan || q.coll == program.Exscan || c.Size() == 1; err == nil && q.arith != nil && unfolded {
		q.arith.oneNaN(q.out)
	}
	if last := c.calls.last; err == nil && last != nil {
		c.algorithm = last.prog.Algorithm
		c.account(last.sent*int64(q.elem), c.group.now()-start)
	}
	return err
}

// account adds to the statistics the bytes that a collective moved away from this rank, and the
// time that this rank waited for other ranks.
func (c *Comm) account(bytes int64, waited time.Duration) {
	c.stats.Bytes += bytes
	c.stats.Recv += waited
}

// forget drops the references of q to the caller's slices.
func (c *Comm) forget(q *request) {
	clear(q.in)
	q.out, q.counts, q.recv, q.ctx = nil, nil, nil, nil
	c.group.slots[c.index].request = nil
}

// panicked returns the error for a panic v of the user's operator.
func (c *Comm) panicked(h *header, v any) error {
	return fmt.Errorf("rank %d: %s: operator %q panicked: %v\n%s", c.Rank(), h.describe(), h.op, v, debug.Stack())
}
