package check

import "slices"

// clock is a vector clock of the halves of a rank. It lists, in ascending order, only the
// halves of which some parts are known to be complete, since a rank may have thousands of
// independent lanes. A clock is immutable, so that it can be shared.
type clock []tick

// tick records that all parts of a half in instructions before upTo are complete.
type tick struct{ half, upTo int32 }

// at returns upTo of the given half, or 0 if no part of the half is known to be complete.
func (c clock) at(half int32) int32 {
	i, ok := slices.BinarySearchFunc(c, half, func(t tick, half int32) int { return int(t.half - half) })
	if !ok {
		return 0
	}
	return c[i].upTo
}

// covers reports whether all parts that are complete according to o are also complete according
// to c.
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

// merge returns the union of the two clocks.
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
