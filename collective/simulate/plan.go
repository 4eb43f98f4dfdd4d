package simulate

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
)

// Work is a set of programs whose time is predicted.
type Work struct {
	P int // number of ranks

	// Program returns the program of a rank. It may be called several times for a rank, or not
	// at all.
	Program func(rank int) *program.Program

	// Layout returns the layout of a rank's program. If Layout is nil, Elements is divided
	// evenly into chunks. If Layout is not nil, symmetry is not used.
	Layout   func(rank int) program.Layout
	Elements int // number of elements of the whole data
	Elem     int // bytes of an element

	// Dims are dimensions in which the ranks may be arranged. They are a hint for finding a
	// symmetry.
	Dims []int
}

// These are limits on the size of a simulation. Within them, its state takes at most about 5
// GB.
const (
	maxHalves = 1 << 24
	maxSteps  = 1 << 27 // number of instructions, where equal programs count once
)

// newPlan compiles the programs of the ranks that need to be simulated.
func newPlan(w *Work, net *Network, opt Options) (*plan, error) {
	pl := &plan{p: w.P, unit: w.P}
	if u := net.interchangeable(w.P); u > 0 {
		pl.unit = u
	}
	whole := &compiler{elem: w.Elem, length: w.lengths(true)}
	if err := pl.findSymmetry(w, net, whole, opt); err != nil {
		return nil, err
	}
	exact := &compiler{elem: w.Elem, length: w.lengths(false)}
	if pl.symmetry == nil {
		if err := pl.compileAll(w, exact); err != nil {
			return nil, err
		}
	} else {
		exact = whole
	}
	if err := pl.connect(); err != nil {
		return nil, err
	}
	pl.cut(exact, opt)
	pl.serial = opt.serialLimit()
	return pl, nil
}

// lengths returns a function of a rank and its program. That function returns another one, which
// maps references to lengths in bytes. If rounded is set, all chunks have the same length, as if the
// data were padded to a multiple of the number of chunks.
func (w *Work) lengths(rounded bool) func(int, *program.Program) func(program.Ref) int {
	return func(rank int, p *program.Program) func(program.Ref) int {
		if rounded {
			each := (w.Elements + p.Chunks - 1) / p.Chunks
			return func(r program.Ref) int { return each * r.Chunks.Len() }
		}
		l := program.Layout{}
		if w.Layout != nil {
			l = w.Layout(rank)
		} else {
			l = program.Even(w.Elements, p.Chunks)
		}
		return l.Len
	}
}

// findSymmetry looks for a symmetry of the programs. If there is one, it sets pl.symmetry, and
// sets pl.parts for the ranks of one block.
func (pl *plan) findSymmetry(w *Work, net *Network, c *compiler, opt Options) error {
	unit := net.interchangeable(w.P)
	if opt.Full || w.Layout != nil || unit == 0 {
		return nil
	}
	known := map[int]*part{}
	partOf := func(rank int) (*part, error) {
		if p, ok := known[rank]; ok {
			return p, nil
		}
		p, err := w.compile(rank, c)
		if err == nil {
			known[rank] = p
		}
		return p, err
	}
	s, err := findSymmetry(w.P, unit, w.Dims, partOf)
	if s == nil || err != nil {
		return err
	}
	pl.symmetry = s
	for r := range s.Block {
		p, err := partOf(r)
		if err != nil {
			return err
		}
		pl.parts = append(pl.parts, p)
	}
	return nil
}

// compile generates, validates and compiles the program of a rank.
func (w *Work) compile(rank int, c *compiler) (*part, error) {
	p := w.Program(rank)
	if p == nil {
		return nil, fmt.Errorf("simulate: no program for rank %d", rank)
	}
	if p.P != w.P {
		return nil, fmt.Errorf("simulate: the program of rank %d is for %d ranks, not %d", rank, p.P, w.P)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	if w.Layout != nil {
		if err := w.Layout(rank).Check(p.Chunks); err != nil {
			return nil, fmt.Errorf("simulate: layout of rank %d: %w", rank, err)
		}
	}
	s, peers, err := c.compile(rank, p)
	return &part{s, peers}, err
}

// compileAll compiles the programs of all ranks one after another. Of equal shapes it keeps
// only one.
func (pl *plan) compileAll(w *Work, c *compiler) error {
	halves, steps, shapes := 0, 0, 0
	for r := range w.P {
		p, err := w.compile(r, c)
		if err != nil {
			return err
		}
		pl.parts = append(pl.parts, p)
		halves += 2 * (len(p.shape.lanes) - 1)
		if known := len(c.shapes); known > shapes {
			shapes = known
			steps += len(p.shape.steps)
		}
		if halves > maxHalves || steps > maxSteps {
			each := func(n int) int { return int(float64(n) / float64(r+1) * float64(w.P)) }
			return fmt.Errorf("simulate: %w: %d ranks without a symmetry have about %d lanes, and their programs about %d different instructions, which is beyond %d or %d: price fewer ranks, or a network without jitter, stragglers and placement whose hosts and racks are full",
				ErrTooLarge, w.P, each(halves/2), each(steps), maxHalves/2, maxSteps)
		}
	}
	return nil
}

// channelEnd identifies the receiving end of a channel by the receiver, the sender and the
// number of the channel.
type channelEnd struct{ to, from, channel int32 }

// connect sets pl.ends. It returns an error if several lanes use a channel in the same
// direction, or if a message has no receiver.
func (pl *plan) connect() error {
	pl.bases = make([]int32, len(pl.parts)+1)
	for r, p := range pl.parts {
		pl.bases[r+1] = pl.bases[r] + int32(2*(len(p.shape.lanes)-1))
	}
	pl.ends = make([]int32, pl.bases[len(pl.parts)])
	receivers := map[channelEnd]int32{}
	for r, p := range pl.parts {
		for l, from := range p.peers.recv {
			id := pl.bases[r] + int32(2*l)
			pl.ends[id], pl.ends[id+1] = -1, -1
			if from < 0 {
				continue
			}
			end := channelEnd{int32(r), from, p.peers.channel[l]}
			if other, ok := receivers[end]; ok {
				return fmt.Errorf("simulate: lanes %d and %d of rank %d both receive from rank %d on channel %d",
					(other-pl.bases[r])/2, l, r, from, end.channel)
			}
			receivers[end] = id
		}
	}
	for r, p := range pl.parts {
		for l, to := range p.peers.send {
			if to < 0 {
				continue
			}
			end := channelEnd{to, int32(r), p.peers.channel[l]}
			if s := pl.symmetry; s != nil {
				// Relabel the receiver and the sender such that the receiver is in block 0.
				end.to, end.from = int32(int(to)%s.Block), int32(s.move(r, int(to)/s.Block, true))
			}
			id, ok := receivers[end]
			if !ok || pl.ends[id] >= 0 {
				return fmt.Errorf("simulate: rank %d sends to rank %d on channel %d in lane %d, where no other lane receives it",
					r, to, end.channel, l)
			}
			pl.ends[id], pl.ends[pl.bases[r]+int32(2*l)+1] = pl.bases[r]+int32(2*l)+1, id
		}
	}
	return nil
}

// cut sets the length of segments. It is the requested length, doubled until there are at most
// opt.maxSegments() segments.
func (pl *plan) cut(c *compiler, opt Options) {
	pl.segment = opt.segment()
	limit := int64(opt.maxSegments())
	for {
		total, longest := int64(0), int64(0)
		for _, p := range pl.parts {
			_, _, all := p.shape.work(pl.segment)
			total += all
			longest = max(longest, p.shape.longest)
		}
		if total <= limit || longest <= pl.segment {
			break
		}
		pl.segment *= 2
	}
	for _, shapes := range c.shapes {
		for _, s := range shapes {
			s.cut(pl.segment)
		}
	}
}
