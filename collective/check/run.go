package check

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
)

// half is the state of one half of a lane, which is a sequential process, during an abstract
// run.
type half struct {
	rank, lane   int
	index        int // index among the rank's halves
	sends        bool
	step         int   // index of the instruction whose part is next; the number of instructions if the half has ended
	completeDeps int   // number of dependencies of that instruction known to be complete
	clock        clock // parts of other halves known to be complete before that instruction
	chain        int   // length of the longest chain of messages before that instruction, including messages of this half
	known        ranks // in a barrier: ranks that are known to have begun
}

// completion is the state of an instruction that the instructions depending on it need.
type completion struct {
	parts   int8 // number of parts that are not done yet
	awaited bool // other instructions depend on it
	chain   int
	clock   clock // parts known to be complete when this instruction is complete
	known   ranks
	waiting []*half
}

// next moves the half to the next instruction in which it has a part.
func (h *half) next(steps []program.Instruction) {
	h.completeDeps = 0
	for h.step++; h.step < len(steps); h.step++ {
		if op := steps[h.step].Op; h.sends && op.Sends() || !h.sends && op != program.DoSend {
			return
		}
	}
}

// run advances halves until all halves have ended or no half can proceed.
func (c *checker) run() error {
	for len(c.ready) > 0 {
		h := c.ready[0]
		c.ready = c.ready[1:]
		for moved := true; moved; {
			var err error
			if moved, err = c.advance(h); err != nil {
				return err
			}
		}
	}
	if c.open > 0 {
		return c.stuck()
	}
	return nil
}

// current returns the next instruction of h and true if all dependencies of the instruction are
// complete. It merges the clocks of these dependencies into the clock of h.
func (c *checker) current(h *half) (*program.Instruction, bool) {
	k := &c.ranks[h.rank]
	steps := k.prog.Lanes[h.lane].Steps
	if h.step >= len(steps) {
		return nil, false
	}
	in := &steps[h.step]
	for ; h.completeDeps < len(in.After); h.completeDeps++ {
		d := &k.done[in.After[h.completeDeps].Lane][in.After[h.completeDeps].Step]
		if d.parts > 0 {
			d.waiting = append(d.waiting, h)
			return nil, false
		}
	}
	if h.sends && in.Op != program.DoSend {
		own := &k.done[h.lane][h.step]
		if own.parts > 1 { // a fused instruction receives first
			own.waiting = append(own.waiting, h)
			return nil, false
		}
		h.take(own)
	}
	for _, d := range in.After {
		h.take(&k.done[d.Lane][d.Step])
	}
	return in, true
}

// take merges the clock, the longest chain and, in a barrier, the ranks known to have begun
// from a completion into the state of the half.
func (h *half) take(d *completion) {
	h.clock = h.clock.merge(d.clock)
	h.chain = max(h.chain, d.chain)
	h.known.add(d.known)
}

// advance runs the next part of h if that is possible. A message is transferred when both the
// sending and the receiving half have reached it; the call for the second of the two halves
// transfers it.
func (c *checker) advance(h *half) (moved bool, err error) {
	in, ok := c.current(h)
	if !ok {
		return false, nil
	}
	l := &c.programs[h.rank].Lanes[h.lane]
	switch {
	case h.sends:
		rt := route{h.rank, l.SendPeer, l.Channel}
		if peer := c.wants[rt]; peer != nil {
			delete(c.wants, rt)
			c.ready = append(c.ready, peer)
			return true, c.deliver(rt, h, peer)
		}
		c.offers[rt] = h
		return false, nil
	case in.Op.Receives():
		rt := route{l.RecvPeer, h.rank, l.Channel}
		if peer := c.offers[rt]; peer != nil {
			delete(c.offers, rt)
			c.ready = append(c.ready, peer)
			return true, c.deliver(rt, peer, h)
		}
		c.wants[rt] = h
		return false, nil
	default:
		return true, c.local(h, in)
	}
}

// deliver transfers a message between two halves, and completes the current parts of both.
func (c *checker) deliver(rt route, from, to *half) error {
	out, in := c.instruction(from), c.instruction(to)
	src := out.Dst
	if out.Op == program.DoSend {
		src = out.Src[0]
	}
	if c.collective != program.AllToAll && src.Chunks != in.Dst.Chunks || !c.sameLengths(rt.from, src, rt.to, in.Dst) {
		return fmt.Errorf("rank %d sends %s (%s) where rank %d receives %s (%s)", rt.from, src, c.where(from), rt.to, in.Dst, c.where(to))
	}
	values, err := c.read(from, src, c.room(0))
	if err != nil {
		return err
	}
	if in.Op.Reduces() {
		own, err := c.read(to, in.Src[0], c.room(1))
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
	c.ranks[rt.from].sent = append(c.ranks[rt.from].sent, src)
	c.messages++
	chain := from.chain + 1
	c.steps = max(c.steps, chain)
	to.known.add(from.known)
	to.chain = max(to.chain, chain)
	from.chain = chain
	c.complete(from)
	c.complete(to)
	return nil
}

// local runs a DoCopy or a DoReduce.
func (c *checker) local(h *half, in *program.Instruction) error {
	for i, r := range in.Src {
		if c.collective == program.AllToAll && !c.sameLengths(h.rank, r, h.rank, in.Dst) {
			return fmt.Errorf("%s (%s): %s and %s differ in length", c.where(h), in, r, in.Dst)
		}
		v, err := c.read(h, r, c.room(i))
		if err != nil {
			return err
		}
		c.operands[i] = v
	}
	for _, s := range in.Fold {
		right, left := c.operands[s.Right], c.operands[s.Left]
		for i, v := range right {
			left[i] = c.terms.join(left[i], v)
		}
	}
	if err := c.write(h, in.Dst, c.operands[0]); err != nil {
		return err
	}
	c.complete(h)
	return nil
}

// room returns list k of c.operands, emptied for reuse.
func (c *checker) room(k int) []int {
	for len(c.operands) <= k {
		c.operands = append(c.operands, nil)
	}
	return c.operands[k][:0]
}

// complete marks the half's current part as complete and moves the half to its next part.
func (c *checker) complete(h *half) {
	k := &c.ranks[h.rank]
	d := &k.done[h.lane][h.step]
	d.parts--
	if d.parts > 0 || d.awaited {
		d.clock = d.clock.merge(h.clock).merge(clock{{int32(h.index), int32(h.step) + 1}})
		d.chain = max(d.chain, h.chain)
		d.known = d.known.with(h.known)
	}
	c.ready = append(c.ready, d.waiting...)
	d.waiting = nil
	c.open--
	h.next(k.prog.Lanes[h.lane].Steps)
}

func (c *checker) instruction(h *half) *program.Instruction {
	return &c.programs[h.rank].Lanes[h.lane].Steps[h.step]
}

func (c *checker) where(h *half) string {
	return fmt.Sprintf("rank %d %s", h.rank, c.place(h.rank, access{int32(h.index), int32(h.step)}))
}

// place returns a description of an access within its rank.
func (c *checker) place(rank int, a access) string {
	lane := int(a.half) / 2
	return fmt.Sprintf("lane %d step %d (%s)", lane, a.step, &c.programs[rank].Lanes[lane].Steps[a.step])
}

// stuck returns the error for a run in which no half can proceed. The error says which half
// waits for what.
func (c *checker) stuck() error {
	const most = 8
	var waits []string
	more := 0
	for r := range c.ranks {
		for i := range c.ranks[r].halves {
			h := &c.ranks[r].halves[i]
			if h.step >= len(c.programs[r].Lanes[h.lane].Steps) {
				continue
			}
			if len(waits) == most {
				more++
				continue
			}
			waits = append(waits, c.where(h)+" for "+c.missing(h))
		}
	}
	text := strings.Join(waits, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Errorf("the run does not end: waiting are %s", text)
}

// missing returns a description of what a half waits for.
func (c *checker) missing(h *half) string {
	in, l := c.instruction(h), &c.programs[h.rank].Lanes[h.lane]
	switch {
	case h.completeDeps < len(in.After):
		return fmt.Sprintf("step %d.%d", in.After[h.completeDeps].Lane, in.After[h.completeDeps].Step)
	case h.sends && in.Op != program.DoSend && c.ranks[h.rank].done[h.lane][h.step].parts > 1:
		return "what it passes on"
	case h.sends:
		return fmt.Sprintf("rank %d to receive", l.SendPeer)
	default:
		return fmt.Sprintf("rank %d to send", l.RecvPeer)
	}
}

// ranks is a set of ranks, as bits. It is nil in all collectives except barriers.
type ranks []uint64

// onlySelf returns the initial set of a half of a barrier, which has only its own rank.
func (c *checker) onlySelf(rank int) ranks {
	if c.collective != program.Barrier {
		return nil
	}
	s := make(ranks, (len(c.programs)+63)/64)
	s[rank/64] = 1 << (rank % 64)
	return s
}

func (s ranks) add(o ranks) {
	for i := range o {
		s[i] |= o[i]
	}
}

// with returns the union of s and o as a new set.
func (s ranks) with(o ranks) ranks {
	if o == nil {
		return s
	}
	u := make(ranks, len(o))
	copy(u, o)
	u.add(s)
	return u
}

func (s ranks) len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
