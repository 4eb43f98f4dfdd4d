package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// grid arranges members in a mixed-radix system: a member has the digits of its number in
// several bases (see levelsOf). The first digit is the least significant, in which neighbours
// differ. The data is divided into as many windows as there are members.
//
// A reduce-scatter goes digit by digit. The members that differ only in the first digit divide
// the data into as many parts as the first base, and each reduces the part of its digit. Those
// that differ only in the second digit divide that part, and so on, until each has one window.
// An all-gather goes back in the same way. With digits in this order, and the contributions of
// a level folded in the order of digits, all folds join neighbouring ranges of members in
// order, so that operators need not commute.
type grid struct {
	rank   func(member int) int                        // rank that acts for a member
	chunks func(windows sharding.Range) sharding.Range // the chunks of windows
}

// level is the meaning of a digit for one member.
type level struct {
	size, digit int
	first       int // the member with digit 0 here and the same digits elsewhere
	stride      int // from one digit to the next
	lo, width   int // part i of the level has windows [lo + i·width, lo + (i+1)·width)
}

// member returns the member that differs from this one only by having digit i.
func (l level) member(i int) int { return l.first + i*l.stride }

// part returns the range of windows of digit i.
func (l level) part(i int) sharding.Range {
	return sharding.Range{Lo: l.lo + i*l.width, Hi: l.lo + (i+1)*l.width}
}

// own returns the part that the member reduces, which is the rest of its data after this level.
func (l level) own() sharding.Range { return l.part(l.digit) }

// levelsOf returns a member's levels, without those of size 1.
func levelsOf(member int, dims []int) []level {
	width := 1
	for _, d := range dims {
		width *= d
	}
	levels := make([]level, 0, len(dims))
	stride, lo := 1, 0
	for _, d := range dims {
		digit := member / stride % d
		width /= d
		if d > 1 {
			levels = append(levels, level{size: d, digit: digit, first: member - digit*stride, stride: stride, lo: lo, width: width})
		}
		lo += digit * width
		stride *= d
	}
	return levels
}

// twos returns the dimensions of 2^levels members with two members per level.
func twos(levels int) []int {
	dims := make([]int, levels)
	for i := range dims {
		dims[i] = 2
	}
	return dims
}

// at returns a reference to windows in a buffer.
func (g *grid) at(buffer program.Buffer, slot int, windows sharding.Range) program.Ref {
	return spanOf(buffer, slot, g.chunks(windows))
}

// openDirect makes the lanes to all partners, those of the last level first. In serial
// execution a rank receives messages of equal weight in the order of lanes, and the all-gather
// begins with the last level.
func (b *builder) openDirect(g *grid, levels []level) {
	for n := len(levels) - 1; n >= 0; n-- {
		l := levels[n]
		for k := 1; k < l.size; k++ {
			b.with(g.rank(l.member((l.digit + k) % l.size)))
		}
	}
}

// scatterDirect makes a level of a reduce-scatter by messages between all pairs. Each member
// sends every other its part, and folds all contributions to its own part in the fold tree over
// digits. The data is read from one buffer; the own part goes to another, or the same.
//
// If there is more than one part to fold, the parts are received into scratch. In serial
// execution a rank must not wait for them while it still has to send for the level before, so
// it receives none before that is done.
func (b *builder) scatterDirect(g *grid, l level, from, to program.Ref) {
	part := func(i int) program.Ref { return g.at(from.Buffer, from.Slot, l.part(i)) }
	own := part(l.digit)
	result := g.at(to.Buffer, to.Slot, l.own())
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		b.send(b.with(g.rank(l.member(i))), part(i))
	}
	if l.size == 2 {
		i := 1 - l.digit
		b.recvReduce(b.with(g.rank(l.member(i))), result, own, i < l.digit)
		return
	}
	operands := make([]program.Ref, l.size)
	operands[l.digit] = own
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		operands[i] = spanOf(program.Scratch, b.room(own.Chunks), own.Chunks)
		b.recvOnce(own, b.with(g.rank(l.member(i))), operands[i])
	}
	b.reduce(result, operands, sharding.RankSchedule(l.size, nil))
}

// gatherDirect makes a level of an all-gather by messages between all pairs.
func (b *builder) gatherDirect(g *grid, l level) {
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		b.send(b.with(g.rank(l.member(i))), g.at(program.Out, 0, l.own()))
	}
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		b.recv(b.with(g.rank(l.member(i))), g.at(program.Out, 0, l.part(i)))
	}
}

// oneFold joins two operands.
var oneFold = []sharding.FoldStep{{Left: 0, Right: 1}}

// ringLane returns the lane of a level's ring.
func (b *builder) ringLane(g *grid, l level) int {
	next, last := (l.digit+1)%l.size, (l.digit+l.size-1)%l.size
	return b.lane(g.rank(l.member(next)), g.rank(l.member(last)), 0)
}

// inRing returns a level's ring.
func (b *builder) inRing(g *grid, l level) ring {
	return ring{size: l.size, at: l.digit, lane: b.ringLane(g, l),
		part: func(i int) sharding.Range { return g.chunks(l.part(i)) }}
}
