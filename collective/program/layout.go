package program

import (
	"fmt"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Layout has the lengths of the chunks of a program for one run: chunk c has the elements
// [Out[c], Out[c+1]) of the data. In has the offsets of the input, and Out has the offsets of
// the output. In and Out are equal except in an AllToAll of blocks of different lengths, in
// which a rank's input is divided differently from its output. Both lists have one more entry
// than there are chunks. Offsets begin at 0 and never decrease.
type Layout struct{ In, Out []int }

// Even returns a layout that divides n elements evenly. The first (n mod chunks) chunks are
// longer by one element.
func Even(n, chunks int) Layout {
	off := make([]int, chunks+1)
	for c := range chunks {
		off[c+1] = sharding.Split(n, chunks, c).Hi
	}
	return Layout{off, off}
}

// Blocks returns a layout in which chunk c has counts[c] elements.
func Blocks(counts []int) Layout {
	off := offsets(counts)
	return Layout{off, off}
}

// Exchange returns the layout of one rank in an AllToAll: in[d] has send[d] elements and out[s]
// has recv[s] elements.
func Exchange(send, recv []int) Layout { return Layout{offsets(send), offsets(recv)} }

func offsets(counts []int) []int {
	off := make([]int, len(counts)+1)
	for c, n := range counts {
		off[c+1] = off[c] + n
	}
	return off
}

// Len returns the number of elements of the chunks of r.
func (l Layout) Len(r Ref) int {
	off := l.offsetsOf(r.Buffer)
	return off[r.Chunks.Hi] - off[r.Chunks.Lo]
}

// Elements returns the range of the elements of r within its buffer. room is the range of
// chunks that the buffer holds.
func (l Layout) Elements(r Ref, room sharding.Range) sharding.Range {
	off := l.offsetsOf(r.Buffer)
	base := off[room.Lo]
	return sharding.Range{Lo: off[r.Chunks.Lo] - base, Hi: off[r.Chunks.Hi] - base}
}

// Size returns the number of elements of buffer b if it holds the chunks in room.
func (l Layout) Size(b Buffer, room sharding.Range) int {
	if room.Empty() {
		return 0
	}
	off := l.offsetsOf(b)
	return off[room.Hi] - off[room.Lo]
}

func (l Layout) offsetsOf(b Buffer) []int {
	if b == In {
		return l.In
	}
	return l.Out
}

// Check returns an error unless the layout is valid for the given number of chunks.
func (l Layout) Check(chunks int) error {
	for _, off := range [2][]int{l.In, l.Out} {
		if len(off) != chunks+1 || off[0] != 0 {
			return fmt.Errorf("a layout of %d chunks for a program of %d", len(off)-1, chunks)
		}
		for c := range chunks {
			if off[c+1] < off[c] {
				return fmt.Errorf("chunk %d has %d elements", c, off[c+1]-off[c])
			}
		}
	}
	return nil
}

// Room returns the range of chunks that the buffer of r holds.
func (p *Program) Room(r Ref) sharding.Range {
	switch r.Buffer {
	case In:
		return p.In
	case Out:
		return p.Out
	default:
		return p.Scratch[r.Slot]
	}
}
