package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// runRemotely runs a request among the processes. The caller leads a meeting of the ranks of
// this process.
func (c *Comm) runRemotely(q *request) (present bool, err error) {
	net := c.group.net
	q.precedingDigest = c.history.digest
	c.watch.start(c, q.ctx)
	defer c.watch.stop()
	return net.calls.run(q)
}

// meetRemotely runs a barrier among the processes: it returns when all processes have called
// it.
func (c *Comm) meetRemotely(ctx context.Context) error {
	n := c.group.net
	if n == nil {
		return nil
	}
	n.header = c.group.slots[c.index].header
	n.request = request{header: &n.header, ctx: ctx, coll: program.Barrier, elem: 1, in: append(n.request.in[:0], noBytes), out: noBytes}
	_, err := c.runRemotely(&n.request)
	if n.calls.last != nil {
		c.algorithm = n.calls.last.prog.Algorithm
	}
	return err
}

// spreadRemotely broadcasts value among the processes and returns the value of the root. h
// describes the broadcast.
func (c *Comm) spreadRemotely(ctx context.Context, h *header, value int64) (int64, error) {
	n := c.group.net
	binary.LittleEndian.PutUint64(n.word[:], uint64(value))
	n.header = *h
	root := n.hostOf(h.root)
	n.request = request{
		header: &n.header, ctx: ctx, coll: program.Broadcast, root: root,
		elem: 8, n: 1, in: append(n.request.in[:0], noBytes), out: n.word[:],
	}
	if root == n.process {
		n.request.in[0] = n.word[:]
	}
	_, err := c.runRemotely(&n.request)
	return int64(binary.LittleEndian.Uint64(n.word[:])), err
}

// hostOf returns the number of the process that hosts a rank.
func (n *network) hostOf(rank int) int {
	return slices.IndexFunc(n.hosts, func(ranks []int) bool { return slices.Contains(ranks, rank) })
}

// leadRemote carries out the reduction in a group of several processes. The last rank to arrive
// calls it. It folds the input of the ranks of this process into the nodes that the process
// gives as input, runs one program among the processes, and copies the result to every rank.
func (a *AllReducer[T]) leadRemote(c *Comm) error {
	g := c.group
	h := &g.slots[c.index].header
	pt := g.net.processNodesFor(h.mode, h.shards)
	a.entries, a.values = a.entries[:0], a.values[:0]
	for i := range g.slots {
		a.collect(g.slots[i].reducer.(*AllReducer[T]).req, g.ranks[i])
	}
	q := &a.request
	*q = request{header: h, ctx: a.req.Context, coll: program.AllReduce, commutative: a.req.Op.commutative, forest: pt.forest}
	g.agreed = agreement{complete: true}
	run := func() (present bool, err error) {
		if a.packs() && len(pt.nodes) > 1 {
			if g.agreed.packed, present, err = a.reducePacked(q, pt); err != nil || g.agreed.packed {
				return present, err
			}
		}
		if present, err = c.runRemotely(q); err == nil {
			a.noteRun(&g.net.calls)
			g.agreed.bytes, g.agreed.algorithm = g.agreed.bytes+a.sent, a.algorithm
		}
		return present, err
	}
	if a.req.Blocks != nil {
		run = func() (bool, error) { return true, a.scatterRemote(c, q, pt) }
	}
	if err := a.reduceParts(q, pt.mine, run); err != nil || a.req.Blocks != nil {
		return err
	}
	for i := range g.slots {
		move(bytesOf(g.slots[i].reducer.(*AllReducer[T]).req.Out), q.out)
	}
	return nil
}

// runAmongProcesses runs collective r with processes in place of ranks and adds the bytes sent to
// the group's agreed.bytes. in is the input of this process. The caller leads a meeting.
func (c *Comm) runAmongProcesses(ctx context.Context, r request, in []byte) error {
	g, n := c.group, c.group.net
	n.header = g.slots[c.index].header
	if r.counts != nil {
		n.header.counts = 1 // all processes already have the same lengths, from the previous exchange
	}
	if in == nil {
		in = noBytes
	}
	r.header, r.ctx, r.in = &n.header, ctx, append(n.request.in[:0], in)
	n.request = r
	_, err := c.runRemotely(&n.request)
	clear(n.request.in)
	n.request.out, n.request.counts, n.request.recv = nil, nil, nil
	if last := n.calls.last; err == nil && last != nil {
		g.agreed.bytes += last.sent * int64(r.elem)
		g.agreed.algorithm = last.prog.Algorithm
	}
	return err
}

// scatterRemote is the part of leadRemote that runs programs, for a reduction with blocks. q
// has the input of the ranks of this process, folded into their nodes of the tree.
func (a *AllReducer[T]) scatterRemote(c *Comm, q *request, pt *processNodes) error {
	g := c.group
	p := packingOf[T](g.net)
	p.cutBlocks(g.net, a.req.Blocks)
	if err := a.exchangeHeads(q, pt, a.packs()); err != nil {
		return err
	}
	packed, whole, err := volumes(p.heads, pt.nodes, p.cuts, q.elem)
	if err != nil {
		return fmt.Errorf("%s: %w", q.header.describe(), err)
	}
	if g.agreed.packed = a.packs() && worthPacking(packed, whole); !g.agreed.packed {
		p.fillHeads(pt)
	}
	if err := a.exchangeParts(q, pt); err != nil {
		return err
	}
	at := 0
	for i := range p.cuts {
		if p.cuts[i].owner != g.net.process {
			continue
		}
		folded, err := a.foldParts(c, q, pt, i)
		if err != nil {
			return err
		}
		out := bytesOf(g.slots[at].reducer.(*AllReducer[T]).req.Out)
		at++
		if folded == nil {
			q.arith.fill(out)
		} else {
			copy(out, folded)
			q.arith.oneNaN(out)
		}
	}
	return nil
}
