package grow

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// slots says which subtask owns which features, and where the sums of a slot are in the buffer
// of ReduceScatter. The buffer is ordered by subtask, then by node, then by slot, with
// State.width words per slot.
type slots struct {
	layout *bins.Layout
	// cut has the first slot of each subtask's range, followed by the number of slots.
	cut []int
	// own has the indices in Layout.Features of the features that the subtask owns.
	own []int32
	// runs has pieces of the columns of bytes. The slots of a piece belong to one subtask.
	runs []run
	// wide[i] is the subtask that owns the feature Layout.Wide[i].
	wide []int
}

// run is a range of slots of a column.
type run struct {
	block, column int // the block, and the column's index within the block
	from          int // first byte value of the range
	slot, n       int // first slot, and number of slots
	owner         int
}

// newSlots divides the slots of a layout among subtasks, in ranges of about equal size. A range
// begins with the first slot of a feature or column. task is the subtask for which own is set.
func newSlots(l *bins.Layout, tasks, task int) *slots {
	starts := []int{0}
	for _, c := range l.Columns {
		starts = append(starts, c.Slot)
	}
	for i := range l.Features {
		// If several features share a column, the first slot of the column is for rows that
		// store none of them. It belongs to the owner of the first feature.
		if f := &l.Features[i]; f.Slot >= 0 && (f.Column < 0 || f.Slot > l.Columns[f.Column].Slot+1) {
			starts = append(starts, f.Slot)
		}
	}
	slices.Sort(starts)
	s := &slots{layout: l, cut: make([]int, tasks+1)}
	for r := 1; r < tasks; r++ {
		want := int(int64(l.Slots) * int64(r) / int64(tasks))
		i, _ := slices.BinarySearch(starts, want)
		switch {
		case i == len(starts):
			s.cut[r] = l.Slots
		case i > 0 && want-starts[i-1] < starts[i]-want:
			s.cut[r] = starts[i-1]
		default:
			s.cut[r] = starts[i]
		}
	}
	s.cut[tasks] = l.Slots
	for i := range l.Features {
		if f := &l.Features[i]; f.Slot >= s.cut[task] && f.Slot < s.cut[task+1] && f.Stored() > 0 {
			s.own = append(s.own, int32(i))
		}
	}
	for _, f := range l.Wide {
		owner := 0
		for l.Features[f].Slot >= s.cut[owner+1] {
			owner++
		}
		s.wide = append(s.wide, owner)
	}
	for _, c := range l.Columns {
		owner := 0
		for b := 0; b < c.Width; {
			for c.Slot+b >= s.cut[owner+1] {
				owner++
			}
			n := min(c.Width-b, s.cut[owner+1]-c.Slot-b)
			s.runs = append(s.runs, run{c.Block, c.Offset, b, c.Slot + b, n, owner})
			b += n
		}
	}
	return s
}

// place returns the index of a slot in a buffer with one word per slot. The subtask owner owns
// the slot, m is the number of the node, and nodes is the number of nodes in the buffer.
func (s *slots) place(owner, slot, m, nodes int) int {
	lo, hi := s.cut[owner], s.cut[owner+1]
	return nodes*lo + m*(hi-lo) + slot - lo
}

// size returns the number of slots that a subtask owns.
func (s *slots) size(task int) int { return s.cut[task+1] - s.cut[task] }
