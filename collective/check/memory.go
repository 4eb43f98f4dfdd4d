package check

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// access is an access to a chunk by one part of an instruction.
type access struct{ half, step int32 }

// before reports whether access a, which came earlier in this run, is ordered before the
// current part of half h. This is the case if a is known to be complete when the part starts,
// or if a is an access of h itself: a half runs its parts one after another, and within a part
// reads come before writes.
func (a access) before(h *half) bool {
	return int(a.half) == h.index || h.clock.at(a.half) > a.step
}

// content is the value in a chunk of a buffer, with the accesses since it was written.
type content struct {
	term    int
	defined bool
	written access   // the write of the value; its half is -1 if the chunk is input or was not written
	reads   []access // latest read by each half since the write
	used    bool     // whether the value was read since it was written
}

// setUp initialises the state k of a rank: its buffers and halves.
func (c *checker) setUp(k *rankState, p *program.Program) {
	*k = rankState{prog: p, out: blank(p.Out), in: make([][]content, p.Partials()), scratch: make([][]content, len(p.Scratch))}
	for slot := range k.in {
		k.in[slot] = blank(p.In)
		for i := range k.in[slot] {
			x := &k.in[slot][i]
			x.term, x.defined = c.terms.leaf(c.sourceOf(p.Rank, slot), p.In.Lo+i), true
		}
	}
	for slot, room := range p.Scratch {
		k.scratch[slot] = blank(room)
	}
	k.halves = make([]half, 2*len(p.Lanes))
	k.done = make([][]completion, len(p.Lanes))
	for i := range p.Lanes {
		steps := p.Lanes[i].Steps
		k.done[i] = make([]completion, len(steps))
		for j := range steps {
			if steps[j].Op.Sends() {
				k.done[i][j].parts++
			}
			if steps[j].Op != program.DoSend {
				k.done[i][j].parts++
			}
			c.open += int(k.done[i][j].parts)
		}
		for s := range 2 {
			h := &k.halves[2*i+s]
			*h = half{rank: p.Rank, lane: i, index: 2*i + s, sends: s == 1, step: -1, known: c.onlySelf(p.Rank)}
			h.next(steps)
			c.ready = append(c.ready, h)
		}
	}
	for i := range p.Lanes {
		for j := range p.Lanes[i].Steps {
			for _, d := range p.Lanes[i].Steps[j].After {
				k.done[d.Lane][d.Step].awaited = true
			}
		}
	}
}

func blank(room sharding.Range) []content {
	x := make([]content, room.Len())
	for i := range x {
		x[i].written.half = -1
	}
	return x
}

// chunks returns the contents of the chunks of r.
func (k *rankState) chunks(r program.Ref) []content {
	room := k.prog.Room(r)
	var all []content
	switch r.Buffer {
	case program.In:
		all = k.in[r.Slot]
	case program.Out:
		all = k.out
	default:
		all = k.scratch[r.Slot]
	}
	return all[r.Chunks.Lo-room.Lo : r.Chunks.Hi-room.Lo]
}

// alias returns the content of the chunk that may be the same memory as the given chunk of the
// buffer of r, or nil if there is none. For a chunk of the output, it is the chunk with the
// same number of the first input, and vice versa.
func (k *rankState) alias(r program.Ref, chunk int) *content {
	switch {
	case r.Buffer == program.In && r.Slot == 0 && k.prog.Out.Contains(chunk):
		return &k.out[chunk-k.prog.Out.Lo]
	case r.Buffer == program.Out && len(k.in) > 0 && k.prog.In.Contains(chunk):
		return &k.in[0][chunk-k.prog.In.Lo]
	default:
		return nil
	}
}

// read appends the values in the chunks of a reference to values, and records the read. In a
// barrier it does nothing, since chunks have no values.
func (c *checker) read(h *half, r program.Ref, values []int) ([]int, error) {
	if c.collective == program.Barrier {
		return values, nil
	}
	k := &c.ranks[h.rank]
	cells := k.chunks(r)
	for i := range cells {
		x, chunk := &cells[i], r.Chunks.Lo+i
		if !x.defined {
			return nil, fmt.Errorf("%s reads %s, which is not written yet", c.where(h), program.Chunk(r.Buffer, r.Slot, chunk))
		}
		if x.written.half >= 0 && !x.written.before(h) {
			return nil, fmt.Errorf("race: %s reads %s, which %s writes", c.where(h), program.Chunk(r.Buffer, r.Slot, chunk), c.place(h.rank, x.written))
		}
		if r.Buffer == program.In {
			if same := k.alias(r, chunk); same != nil && same.defined {
				return nil, fmt.Errorf("%s reads %s after %s has written out[%d], which may be the same memory",
					c.where(h), program.Chunk(r.Buffer, r.Slot, chunk), c.place(h.rank, same.written), chunk)
			}
		}
		x.noteRead(h)
		x.used = true
		values = append(values, x.term)
	}
	return values, nil
}

// leave is called when the value x is overwritten or the run has ended. It records x as unused
// if an instruction wrote x and no instruction has read x.
func (c *checker) leave(k *rankState, x *content, r program.Ref) {
	if x.written.half >= 0 && !x.used {
		c.unused = append(c.unused, fmt.Sprintf("rank %d %s makes %s, which nothing reads", k.prog.Rank, c.place(k.prog.Rank, x.written), r))
	}
}

// leaveScratch records the values in scratch that are unused at the end of the run.
func (c *checker) leaveScratch() {
	for r := range c.ranks {
		k := &c.ranks[r]
		for slot, cells := range k.scratch {
			for i := range cells {
				c.leave(k, &cells[i], program.Chunk(program.Scratch, slot, k.prog.Scratch[slot].Lo+i))
			}
		}
	}
}

// noteRead records a read by half h. The record replaces an earlier read by h, since the
// earlier read is complete whenever the new read is complete.
func (x *content) noteRead(h *half) {
	now := access{int32(h.index), int32(h.step)}
	for i := range x.reads {
		if x.reads[i].half == now.half {
			x.reads[i] = now
			return
		}
	}
	x.reads = append(x.reads, now)
}

// write stores values in the chunks of a reference. It returns an error if an earlier
// conflicting access is not ordered before this write.
func (c *checker) write(h *half, r program.Ref, values []int) error {
	if c.collective == program.Barrier {
		return nil
	}
	k := &c.ranks[h.rank]
	now := access{int32(h.index), int32(h.step)}
	cells := k.chunks(r)
	for i := range cells {
		x, chunk := &cells[i], r.Chunks.Lo+i
		if x.written.half >= 0 && !x.written.before(h) {
			return fmt.Errorf("race: %s writes %s, which %s writes too", c.where(h), program.Chunk(r.Buffer, r.Slot, chunk), c.place(h.rank, x.written))
		}
		for _, a := range x.reads {
			if !a.before(h) {
				return fmt.Errorf("race: %s writes %s, which %s reads", c.where(h), program.Chunk(r.Buffer, r.Slot, chunk), c.place(h.rank, a))
			}
		}
		if same := k.alias(r, chunk); same != nil {
			for _, a := range same.reads {
				if !a.before(h) {
					return fmt.Errorf("race: %s writes %s, and %s reads in[%d], which may be the same memory",
						c.where(h), program.Chunk(r.Buffer, r.Slot, chunk), c.place(h.rank, a), chunk)
				}
			}
		}
		c.leave(k, x, program.Chunk(r.Buffer, r.Slot, chunk))
		x.term, x.defined, x.written, x.reads, x.used = values[i], true, now, x.reads[:0], false
	}
	return nil
}
