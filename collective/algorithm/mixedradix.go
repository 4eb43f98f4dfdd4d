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
// the data into as many parts as the first base, and each reduces the part of its digit. The
// members that differ only in the second digit divide that part, and so on, until each member
// has one window. An all-gather goes through the digits in reverse. With digits in this order,
// and the contributions of a level folded in the order of digits, all folds join neighbouring
// ranges of members in order, so that operators need not commute.
type grid struct {
	rank   func(member int) int                        // rank that acts for a member
	chunks func(windows sharding.Range) sharding.Range // the chunks of windows
}

// level describes one digit of one member.
type level struct {
	size, digit int
	first       int // the member with 0 for this digit and the same other digits
	stride      int // difference between the members with digits i and i + 1
	lo, width   int // part i of the level has windows [lo + i·width, lo + (i+1)·width)
}

// member returns the member that has digit i at this level and otherwise the same digits.
func (l level) member(i int) int { return l.first + i*l.stride }

// part returns the range of windows that the member with digit i reduces.
func (l level) part(i int) sharding.Range {
	return sharding.Range{Lo: l.lo + i*l.width, Hi: l.lo + (i+1)*l.width}
}

// own returns the windows that this member reduces at this level, which the next level divides
// further.
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

// openDirect makes the lanes to all partners, beginning with the partners of the last level. If
// program.SerialOrder has no other preference, a rank receives messages in the order of lanes,
// and the all-gather begins with the last level.
func (b *builder) openDirect(g *grid, levels []level) {
	for n := len(levels) - 1; n >= 0; n-- {
		l := levels[n]
		for k := 1; k < l.size; k++ {
			b.with(g.rank(l.member((l.digit + k) % l.size)))
		}
	}
}

// scatterDirect adds one level of a reduce-scatter by messages between all pairs. Each member
// sends to every other member that member's part, and folds all contributions to its own part
// in the fold tree over digits. The data is read from buffer from. The own part is written to
// buffer to, which may be the same buffer.
//
// If there is more than one part to fold, the parts are received into scratch. In serial order
// a rank must not wait for them while other ranks need its messages of the level before, so it
// receives them only after its own part of the level before is complete.
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

// gatherDirect adds one level of an all-gather by messages between all pairs.
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

// oneFold is the fold of two operands.
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
