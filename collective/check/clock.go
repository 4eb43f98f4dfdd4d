package check

import "slices"

// clock is a vector clock of the halves of a rank: in the order of halves, those
// of which something is known to be complete. It is kept sparse, since a rank may
// have thousands of lanes that know of none but their own, and never changed, so
// that those who know the same share it.
type clock []tick

// tick says that the parts of a half in instructions before upTo are complete.
type tick struct{ half, upTo int32 }

// at is how far a half is known to be.
func (c clock) at(half int32) int32 {
	i, ok := slices.BinarySearchFunc(c, half, func(t tick, half int32) int { return int(t.half - half) })
	if !ok {
		return 0
	}
	return c[i].upTo
}

// covers says whether all that o knows is known.
func (c clock) covers(o clock) bool {
	if len(o) > len(c) {
		return false
	}
	i := 0
	for _, t := range o {
		for i < len(c) && c[i].half < t.half {
			i++
		}
		if i == len(c) || c[i].half != t.half || c[i].upTo < t.upTo {
			return false
		}
	}
	return true
}

// merge is what is known to one of the two.
func (c clock) merge(o clock) clock {
	if c.covers(o) {
		return c
	}
	if o.covers(c) {
		return o
	}
	m := make(clock, 0, len(c)+len(o))
	i := 0
	for _, t := range o {
		for i < len(c) && c[i].half < t.half {
			m = append(m, c[i])
			i++
		}
		if i < len(c) && c[i].half == t.half {
			t.upTo = max(t.upTo, c[i].upTo)
			i++
		}
		m = append(m, t)
	}
	return append(m, c[i:]...)
}
