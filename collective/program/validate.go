package program

import (
	"fmt"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Validate returns an error unless the program of one rank is well formed: numbers are in
// range, instructions have their operands, and references exist. Package check proves that the
// parts of all ranks together compute the collective. An executor runs only valid programs.
func (p *Program) Validate() error {
	switch {
	case p.P < 1 || p.Rank < 0 || p.Rank >= p.P:
		return fmt.Errorf("program: rank %d of %d ranks", p.Rank, p.P)
	case p.Root < -1 || p.Root >= p.P:
		return fmt.Errorf("program of rank %d: root %d of %d ranks", p.Rank, p.Root, p.P)
	case p.Chunks < 1:
		return fmt.Errorf("program of rank %d: %d chunks", p.Rank, p.Chunks)
	}
	whole := sharding.Range{Lo: 0, Hi: p.Chunks}
	for _, held := range [2]sharding.Range{p.In, p.Out} {
		if held.Lo < 0 || held.Hi > whole.Hi || held.Lo > held.Hi {
			return fmt.Errorf("program of rank %d: a buffer holds chunks %v of %d", p.Rank, held, p.Chunks)
		}
	}
	for k, r := range p.Scratch {
		if r.Lo < 0 || r.Hi > p.Chunks || r.Lo >= r.Hi {
			return fmt.Errorf("program of rank %d: scratch %d holds chunks %v of %d", p.Rank, k, r, p.Chunks)
		}
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		for _, peer := range [2]int{l.SendPeer, l.RecvPeer} {
			if peer != NoPeer && (peer < 0 || peer >= p.P || peer == p.Rank) {
				return fmt.Errorf("program of rank %d: lane %d has peer %d of %d ranks", p.Rank, i, peer, p.P)
			}
		}
		if l.Channel < 0 || l.Channel >= MaxChannels {
			return fmt.Errorf("program of rank %d: lane %d uses channel %d of %d", p.Rank, i, l.Channel, MaxChannels)
		}
		for j := range l.Steps {
			if err := p.validateStep(l, &l.Steps[j]); err != nil {
				return fmt.Errorf("program of rank %d: lane %d step %d (%s): %w", p.Rank, i, j, &l.Steps[j], err)
			}
		}
	}
	return nil
}

func (p *Program) validateStep(l *Lane, in *Instruction) error {
	if in.Op >= numOpCodes {
		return fmt.Errorf("no such instruction")
	}
	if in.Op.Sends() && l.SendPeer == NoPeer {
		return fmt.Errorf("the lane has no peer to send to")
	}
	if in.Op.Receives() && l.RecvPeer == NoPeer {
		return fmt.Errorf("the lane has no peer to receive from")
	}
	if want := in.Op.sources(); want >= 0 && len(in.Src) != want || want < 0 && len(in.Src) == 0 {
		return fmt.Errorf("%d operands", len(in.Src))
	}
	for _, r := range in.Src {
		if err := p.validateRef(r); err != nil {
			return err
		}
	}
	if in.Op != DoSend {
		if err := p.validateRef(in.Dst); err != nil {
			return err
		}
		if in.Dst.Buffer == In {
			return fmt.Errorf("writes the input")
		}
		for _, r := range in.Src {
			if r.Chunks != in.Dst.Chunks && (p.Collective != AllToAll || r.Chunks.Len() != in.Dst.Chunks.Len()) {
				return fmt.Errorf("%s and %s are different chunks", in.Dst, r)
			}
		}
	}
	if in.Op == DoReduce {
		if _, err := CompileFold(len(in.Src), in.Fold); err != nil {
			return err
		}
	}
	for _, d := range in.After {
		if d.Lane < 0 || d.Lane >= len(p.Lanes) || d.Step < 0 || d.Step >= len(p.Lanes[d.Lane].Steps) {
			return fmt.Errorf("comes after step %d.%d, which does not exist", d.Lane, d.Step)
		}
	}
	return nil
}

func (p *Program) validateRef(r Ref) error {
	switch {
	case r.Buffer >= numBuffers:
		return fmt.Errorf("no such buffer: %s", r)
	case r.Buffer == Scratch && (r.Slot < 0 || r.Slot >= len(p.Scratch)):
		return fmt.Errorf("no such scratch slot: %s", r)
	case r.Buffer == In && (r.Slot < 0 || r.Slot >= p.Partials()):
		return fmt.Errorf("no such node of the input: %s", r)
	case r.Buffer == Out && r.Slot != 0:
		return fmt.Errorf("the output has one slot: %s", r)
	}
	if room := p.Room(r); r.Chunks.Lo < room.Lo || r.Chunks.Hi > room.Hi || r.Chunks.Empty() {
		return fmt.Errorf("%s is outside of chunks %v", r, room)
	}
	return nil
}
