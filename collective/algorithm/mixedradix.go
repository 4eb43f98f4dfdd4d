package algorithm

import (
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// grid arranges members in a mixed-radix system: the number of a member is written in digits,
// each with its own base (see levelsOf). The first digit is the least significant: members with
// neighbouring numbers differ in it. The data is divided into one window for each member.
//
// A reduce-scatter goes digit by digit. The members that differ only in the first digit divide
// the data into parts, one for each value of that digit, and each member reduces the part with
// the number of its digit. The members that differ only in the second digit divide that part,
// and so on, until each member has one window. An all-gather goes through the digits in
// reverse. The contributions of a level are folded in the order of digits. So all folds join
// neighbouring ranges of members in order, and operators need not commute.
type grid struct {
	rank   func(member int) int                        // rank that acts for a member
	chunks func(windows sharding.Range) sharding.Range // range of chunks that a range of windows has
}

// level describes one digit of one member.
type level struct {
	size, digit int
	first       int // member whose digit at this level is 0 and whose other digits are the same
	stride      int // difference between the members with digits i and i + 1
	lo, width   int // part i of the level has windows [lo + i·width, lo + (i+1)·width)
}

// member returns the member whose digit at this level is i and whose other digits are the same.
func (l level) member(i int) int { return l.first + i*l.stride }

// part returns the range of windows that the member with digit i reduces.
func (l level) part(i int) sharding.Range {
	return sharding.Range{Lo: l.lo + i*l.width, Hi: l.lo + (i+1)*l.width}
}

// own returns the range of windows that this member reduces at this level. The next level
// divides this range further.
func (l level) own() sharding.Range { return l.part(l.digit) }

// levelsOf returns the levels of a member, without the levels of size 1.
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

// twos returns the dimensions of a grid of 2^levels members: the base 2 at each level.
func twos(levels int) []int {
	dims := make([]int, levels)
	for i := range dims {
		dims[i] = 2
	}
	return dims
}

// refOf returns the reference to a range of windows in a slot of a buffer.
func (g *grid) refOf(buffer program.Buffer, slot int, windows sharding.Range) program.Ref {
	return spanOf(buffer, slot, g.chunks(windows))
}

// openDirect makes the lanes to all partners, beginning with the partners of the last level. If
// program.SerialOrder has no other preference, a rank receives messages in the order of lanes,
// and the all-gather begins with the last level.
func (b *builder) openDirect(g *grid, levels []level) {
	for n := len(levels) - 1; n >= 0; n-- {
		l := levels[n]
		for k := 1; k < l.size; k++ {
			b.exchangeLane(g.rank(l.member((l.digit + k) % l.size)))
		}
	}
}

// scatterDirect adds one level of a reduce-scatter, by messages between all pairs of members.
// Each member sends to every other member the part which that member reduces, and folds all
// contributions to its own part in the fold tree over digits. The parameters from and to are
// references: the data is read from the buffer of from, and the own part is written to the
// buffer of to, which may be the same buffer.
//
// If there is more than one part to fold, the parts are received into scratch. In serial order
// a rank must not wait for these parts while other ranks need its messages of the previous
// level, so it receives them only after its own part of the previous level is complete.
func (b *builder) scatterDirect(g *grid, l level, from, to program.Ref) {
	part := func(i int) program.Ref { return g.refOf(from.Buffer, from.Slot, l.part(i)) }
	own := part(l.digit)
	result := g.refOf(to.Buffer, to.Slot, l.own())
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		b.send(b.exchangeLane(g.rank(l.member(i))), part(i))
	}
	if l.size == 2 {
		i := 1 - l.digit
		b.recvReduce(b.exchangeLane(g.rank(l.member(i))), result, own, i < l.digit)
		return
	}
	operands := make([]program.Ref, l.size)
	operands[l.digit] = own
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		operands[i] = spanOf(program.Scratch, b.newSlot(own.Chunks), own.Chunks)
		b.recvAfter(own, b.exchangeLane(g.rank(l.member(i))), operands[i])
	}
	b.reduce(result, operands, sharding.RankSchedule(l.size, nil))
}

// gatherDirect adds one level of an all-gather, by messages between all pairs of members.
func (b *builder) gatherDirect(g *grid, l level) {
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		b.send(b.exchangeLane(g.rank(l.member(i))), g.refOf(program.Out, 0, l.own()))
	}
	for k := 1; k < l.size; k++ {
		i := (l.digit + k) % l.size
		b.recv(b.exchangeLane(g.rank(l.member(i))), g.refOf(program.Out, 0, l.part(i)))
	}
}

// oneFold is the fold of two operands.
var oneFold = []sharding.FoldStep{{Left: 0, Right: 1}}

// ringLane returns the number of the lane that connects this member in the ring of level l.
func (b *builder) ringLane(g *grid, l level) int {
	next, last := (l.digit+1)%l.size, (l.digit+l.size-1)%l.size
	return b.lane(g.rank(l.member(next)), g.rank(l.member(last)), 0)
}

// inRing returns the ring of level l, which consists of the members that differ only in the
// digit of l.
func (b *builder) inRing(g *grid, l level) ring {
	return ring{size: l.size, index: l.digit, lane: b.ringLane(g, l),
		part: func(i int) sharding.Range { return g.chunks(l.part(i)) }}
}
