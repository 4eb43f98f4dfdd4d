package check

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
)

// half is one half of a lane during an abstract run: a sequential process.
type half struct {
	rank, lane int
	index      int // among the rank's halves
	sends      bool
	steps      []int // the instructions it has a part in
	pos        int   // next of them
	clock      clock // what is known to be complete before its next part
	chain      int   // messages in a row behind it
}

// clock says, for each half of a rank, how many of its parts are known to be
// complete: a vector clock, by which two accesses are ordered or not whatever the
// order was in which the abstract run happened to make them.
type clock []int

func (c clock) merge(o clock) {
	for i, v := range o {
		c[i] = max(c[i], v)
	}
}

// access is one part of an instruction touching a cell.
type access struct {
	half, pos  int
	lane, step int
}

// before says whether the access is complete according to the clock.
func (a access) before(c clock) bool { return c[a.half] > a.pos }

// content is what a cell holds, and who touched it since the last write.
type content struct {
	term    int
	defined bool
	written *access
	reads   []access
}

// run makes progress until all halves are through, or none can move.
func (c *checker) run() error {
	var open []*half
	for r := range c.ranks {
		open = append(open, c.ranks[r].halves...)
	}
	for before := -1; len(open) > 0; {
		rest := open[:0]
		for _, h := range open {
			for moved := true; moved; {
				var err error
				if moved, err = c.advance(h); err != nil {
					return err
				}
			}
			if h.pos < len(h.steps) {
				rest = append(rest, h)
			}
		}
		if c.parts == before && len(rest) > 0 {
			return c.stuck(rest)
		}
		before, open = c.parts, rest
	}
	return nil
}

// current is the half's next instruction, if it has one whose dependencies are
// complete, with their clocks taken over.
func (c *checker) current(h *half) (*program.Instruction, bool) {
	if h.pos == len(h.steps) {
		return nil, false
	}
	k := &c.ranks[h.rank]
	in := &c.programs[h.rank].Lanes[h.lane].Steps[h.steps[h.pos]]
	for _, d := range in.After {
		if k.done[d.Lane][d.Step].parts > 0 {
			return nil, false
		}
	}
	own := &k.done[h.lane][h.steps[h.pos]]
	if h.sends && in.Op != program.DoSend {
		if own.parts > 1 {
			return nil, false // a fused instruction receives first
		}
		h.take(own)
	}
	for _, d := range in.After {
		h.take(&k.done[d.Lane][d.Step])
	}
	return in, true
}

func (h *half) take(d *completion) {
	h.clock.merge(d.after)
	h.chain = max(h.chain, d.chain)
}

// advance does the half's next part if it can. A part of a message is done when
// both sides are there: then the second to come does both.
func (c *checker) advance(h *half) (moved bool, err error) {
	in, ok := c.current(h)
	if !ok {
		return false, nil
	}
	l := &c.programs[h.rank].Lanes[h.lane]
	switch {
	case h.sends:
		at := route{h.rank, l.SendPeer, l.Channel}
		if peer := c.wants[at]; peer != nil {
			delete(c.wants, at)
			return true, c.deliver(at, h, peer)
		}
		return false, c.enlist(c.offers, at, h)
	case in.Op.Receives():
		at := route{l.RecvPeer, h.rank, l.Channel}
		if peer := c.offers[at]; peer != nil {
			delete(c.offers, at)
			return true, c.deliver(at, peer, h)
		}
		return false, c.enlist(c.wants, at, h)
	default:
		return true, c.local(h, in)
	}
}

// enlist notes that a half waits on a route. Two lanes of a rank on one route
// would leave the order of their messages to timing.
func (c *checker) enlist(waiting map[route]*half, at route, h *half) error {
	if other := waiting[at]; other != nil && other != h {
		return fmt.Errorf("rank %d: lanes %d and %d both use channel %d from rank %d to rank %d",
			h.rank, other.lane, h.lane, at.channel, at.from, at.to)
	}
	waiting[at] = h
	return nil
}

// deliver hands a message over.
func (c *checker) deliver(at route, from, to *half) error {
	out := c.instruction(from)
	in := c.instruction(to)
	src := out.Dst
	if out.Op == program.DoSend {
		src = out.Src[0]
	}
	if src.Chunks != in.Dst.Chunks {
		return fmt.Errorf("rank %d sends %s (%s) where rank %d receives %s (%s)",
			at.from, src, from.where(), at.to, in.Dst, to.where())
	}
	values, err := c.read(from, src)
	if err != nil {
		return err
	}
	if in.Op == program.DoRecvReduce || in.Op == program.DoRecvReduceSend {
		own, err := c.read(to, in.Src[0])
		if err != nil {
			return err
		}
		for i, v := range own {
			if in.RecvLeft {
				values[i] = c.terms.join(values[i], v)
			} else {
				values[i] = c.terms.join(v, values[i])
			}
		}
	}
	if err := c.write(to, in.Dst, values); err != nil {
		return err
	}
	for i := src.Chunks.Lo; i < src.Chunks.Hi; i++ {
		c.ranks[at.from].sent[i]++
	}
	chain := from.chain + 1
	c.steps = max(c.steps, chain)
	to.chain = max(to.chain, chain)
	from.chain = chain
	c.complete(from)
	c.complete(to)
	return nil
}

// local does a DoCopy or DoReduce.
func (c *checker) local(h *half, in *program.Instruction) error {
	var operands [][]int
	for _, r := range in.Src {
		v, err := c.read(h, r)
		if err != nil {
			return err
		}
		operands = append(operands, v)
	}
	for _, s := range in.Fold {
		for i, v := range operands[s.Right] {
			operands[s.Left][i] = c.terms.join(operands[s.Left][i], v)
		}
	}
	if err := c.write(h, in.Dst, operands[0]); err != nil {
		return err
	}
	c.complete(h)
	return nil
}

// complete ends the half's current part.
func (c *checker) complete(h *half) {
	d := &c.ranks[h.rank].done[h.lane][h.steps[h.pos]]
	h.pos++
	c.parts++
	h.clock[h.index] = h.pos
	d.parts--
	if d.after == nil {
		d.after = make(clock, len(h.clock))
	}
	d.after.merge(h.clock)
	d.chain = max(d.chain, h.chain)
}

func (c *checker) instruction(h *half) *program.Instruction {
	return &c.programs[h.rank].Lanes[h.lane].Steps[h.steps[h.pos]]
}

func (h *half) where() string {
	return fmt.Sprintf("rank %d lane %d step %d", h.rank, h.lane, h.steps[h.pos])
}

// stuck says who waits for what when nobody can go on.
func (c *checker) stuck(waiting []*half) error {
	var b strings.Builder
	for i, h := range waiting {
		if i == 8 {
			fmt.Fprintf(&b, ", and %d more", len(waiting)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", h.where(), c.instruction(h))
	}
	return fmt.Errorf("the run does not end; waiting: %s", b.String())
}
