package grow

import (
	"github.com/superstep-ml/superstep/internal/kernel"
)

// slotSums accumulates the sums of the slots of sparse features as packed pairs. The packed sum
// of a slot that is stored in at most kernel.PackedRows rows cannot overflow. The other slots
// are called overflowing. Every kernel.PackedRows rows, their packed sums are added to the
// field sums and set to 0.
type slotSums struct {
	rows        *kernel.SlotRows
	overflowing []int32 // numbers of the overflowing slots, counted from the first sparse slot
	sums        []int64 // gradient and hessian sums of the overflowing slots
	work        []int64 // packed sums of all sparse slots; all 0 between histograms
}

// slotSums returns the slotSums of the subtask; the first call creates it.
func (s *State) slotSums() *slotSums {
	c := &s.slotted
	if c.rows != nil {
		return c
	}
	l, sparse := s.data.Layout, &s.data.Sparse
	n := l.Slots - l.ColumnSlots
	c.rows, c.work = kernel.NewSlotRows(sparse.RowPtr, sparse.Slots, l.ColumnSlots, n), make([]int64, n)
	stored := make([]int, n)
	for _, slot := range sparse.Slots {
		stored[int(slot)-l.ColumnSlots]++
	}
	for i, n := range stored {
		if n > kernel.PackedRows {
			c.overflowing = append(c.overflowing, int32(i))
		}
	}
	c.sums = make([]int64, 2*len(c.overflowing))
	return c
}

// packedSlots computes the sums of sparse features over rows from packed pairs. out and base
// are as in histogram.
func (s *State) packedSlots(j *job, rows []int32, out []int64, base func(owner int) int) {
	c := s.slotSums()
	clear(c.sums)
	for len(rows) > kernel.PackedRows {
		c.rows.AddPacked(c.work, j.target.packed, rows[:kernel.PackedRows])
		rows = rows[kernel.PackedRows:]
		c.unpackOverflowing()
	}
	c.rows.AddPacked(c.work, j.target.packed, rows)
	c.unpackOverflowing()
	s.eachOwned(out, base, func(first int, to []int64) {
		from := c.work[first:][:len(to)/s.width]
		if !s.countsRows() {
			kernel.TakePairs(to, from)
			return
		}
		for i, v := range from {
			to[s.width*i], to[s.width*i+1] = kernel.Unpack(v)
			from[i] = 0
		}
	})
	at := 0
	s.eachOwned(out, base, func(first int, to []int64) {
		for ; at < len(c.overflowing) && int(c.overflowing[at]) < first+len(to)/s.width; at++ {
			sum := to[(int(c.overflowing[at])-first)*s.width:]
			sum[0], sum[1] = c.sums[2*at], c.sums[2*at+1]
		}
	})
}

// unpackOverflowing adds the packed sums of overflowing slots to c.sums, and sets them to 0.
func (c *slotSums) unpackOverflowing() {
	for i, slot := range c.overflowing {
		g, h := kernel.Unpack(c.work[slot])
		c.sums[2*i] += g
		c.sums[2*i+1] += h
		c.work[slot] = 0
	}
}

// countSlots sets the row counts in the sums of sparse features: the row count of a slot is the
// number of the given rows that are stored in the slot. out and base are as in histogram.
func (s *State) countSlots(rows []int32, out []int64, base func(owner int) int) {
	c := s.slotSums()
	s.makeOnes()
	c.rows.AddPacked(c.work, s.ones, rows)
	s.eachOwned(out, base, func(first int, to []int64) {
		from := c.work[first:][:len(to)/s.width]
		for i, n := range from {
			to[s.width*i+s.width-1] = n
			from[i] = 0
		}
	})
}

// eachOwned calls f for each subtask that owns sparse features. The argument to is the part of
// out that has the sums of these features, and first is the number of their first slot, counted
// from the first sparse slot. out and base are as in histogram.
func (s *State) eachOwned(out []int64, base func(owner int) int, f func(first int, to []int64)) {
	sparse := s.data.Layout.ColumnSlots
	for o := range s.tasks {
		if lo, hi := max(s.slots.cut[o], sparse), s.slots.cut[o+1]; lo < hi {
			at := base(o)
			f(lo-sparse, out[at+lo*s.width:at+hi*s.width])
		}
	}
}
