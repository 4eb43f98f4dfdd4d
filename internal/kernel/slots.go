package kernel

import "fmt"

// SlotRows has, for each of many sparse rows, the slots of the row: the indices, in a
// histogram, of the sums to which the row adds. It is immutable and may be shared by
// goroutines.
type SlotRows struct {
	start []int64  // row r has slots[start[r]:start[r+1]]
	slots []uint32 // each from first to first+size-1
	first int
	size  int
	each  int // number of rows for one call of assembly
}

// In a list of rows, the assembly reads up to slotsAhead entries after the current entry.
const slotsAhead = 32

// NewSlotRows returns SlotRows in which row r has slots[start[r]:start[r+1]]. A slot minus
// first is the index of a sum; it must be at least 0 and below size. SlotRows keeps both
// slices, which must not be modified afterwards.
func NewSlotRows(start []int64, slots []uint32, first, size int) *SlotRows {
	if len(start) == 0 || start[0] != 0 || start[len(start)-1] != int64(len(slots)) {
		panic(fmt.Sprintf("kernel: %d starts of rows do not lead through %d slots", len(start), len(slots)))
	}
	for r, at := range start[1:] {
		if at < start[r] {
			panic(fmt.Sprintf("kernel: row %d ends before it begins", r))
		}
	}
	for _, slot := range slots {
		if at := int(slot) - first; at < 0 || at >= size {
			panic(fmt.Sprintf("kernel: slot %d is none of the %d from %d on", slot, size, first))
		}
	}
	return &SlotRows{start, slots, first, size, max(1, callSize/(1+len(slots)/max(1, len(start)-1)))}
}

// Rows returns the number of rows.
func (s *SlotRows) Rows() int { return len(s.start) - 1 }

// AddPacked adds pairs[r], a packed pair, to the sums of each listed row r. hist has at least
// size sums; hist[0] is the sum of slot first.
func (s *SlotRows) AddPacked(hist []int64, pairs []int64, rows []int32) {
	s.add(active, hist, pairs, rows)
}

func (s *SlotRows) add(k dispatch, hist []int64, pairs []int64, rows []int32) {
	hist = hist[:s.size]
	if n := len(rows) - slotsAhead; k.avx2 && n > 0 && len(s.slots) > 0 {
		checkList(rows, min(s.Rows(), len(pairs)))
		for n > 0 {
			step := min(s.each, n)
			addSlots(&hist[0], s.first, &s.start[0], &s.slots[0], &pairs[0], &rows[0], step)
			rows, n = rows[step:], n-step
		}
	}
	for _, r := range rows {
		v := pairs[r]
		for _, slot := range s.slots[s.start[r]:s.start[r+1]] {
			hist[int(slot)-s.first] += v
		}
	}
}

// TakePairs sets to[2*i] and to[2*i+1] to the halves of the packed sum from[i], as Unpack
// returns them, and then sets from[i] to 0.
func TakePairs(to, from []int64) { takeHalves(active, to, from) }

func takeHalves(k dispatch, to, from []int64) {
	to = to[:2*len(from)]
	for k.avx2 && len(from) >= 4 {
		n := min(len(from)&^3, callSize)
		takePairs(&to[0], &from[0], n)
		to, from = to[2*n:], from[n:]
	}
	for i, v := range from {
		pair := to[2*i:][:2]
		pair[0], pair[1] = Unpack(v)
		from[i] = 0
	}
}
