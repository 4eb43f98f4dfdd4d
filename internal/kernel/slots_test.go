package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlotRows compares both forms with sums that are computed slot by slot.
func TestSlotRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for n := range 120 {
		first, size := rng.IntN(50), 1+rng.IntN(300)
		start, slots := []int64{0}, []uint32{}
		for range n {
			for range rng.IntN(1 + n/3) {
				slots = append(slots, uint32(first+rng.IntN(size)))
			}
			start = append(start, int64(len(slots)))
		}
		pairs, list := make([]int64, n), []int32{}
		for r := range pairs {
			pairs[r] = int64(rng.Uint64())
			for range rng.IntN(3) {
				list = append(list, int32(r))
			}
		}
		begin := make([]int64, size+3)
		for i := range begin {
			begin[i] = int64(i)
		}
		want := slices.Clone(begin)
		for i := range size {
			for _, r := range list {
				for _, slot := range slots[start[r]:start[r+1]] {
					if int(slot) == first+i {
						want[i] += pairs[r]
					}
				}
			}
		}
		s := NewSlotRows(start, slots, first, size)
		require.Equal(t, n, s.Rows())
		s.each = 1 + n/5 // so that there are several calls of assembly
		for name, form := range histogramForms() {
			got := slices.Clone(begin)
			s.add(form, got, pairs, list)
			require.Equal(t, want, got, fmt.Sprint(name, " ", n))
		}
	}
}

// TestSlotRowsRefuse requires a panic for invalid arguments. The assembly itself does not check
// them.
func TestSlotRowsRefuse(t *testing.T) {
	require.Panics(t, func() { NewSlotRows(nil, nil, 0, 1) })
	require.Panics(t, func() { NewSlotRows([]int64{0, 1}, []uint32{0, 0}, 0, 1) })
	require.Panics(t, func() { NewSlotRows([]int64{1, 1}, []uint32{0}, 0, 1) })
	require.Panics(t, func() { NewSlotRows([]int64{0, 2, 1}, []uint32{0}, 0, 1) })
	require.Panics(t, func() { NewSlotRows([]int64{0, 2, 1, 2}, []uint32{0, 0}, 0, 1) })
	require.Panics(t, func() { NewSlotRows([]int64{0, 1}, []uint32{4}, 5, 3) })
	require.Panics(t, func() { NewSlotRows([]int64{0, 1}, []uint32{8}, 5, 3) })
	s := NewSlotRows([]int64{0, 1}, []uint32{7}, 5, 3)
	rows := make([]int32, 50)
	require.Panics(t, func() { s.AddPacked(make([]int64, 2), []int64{1}, rows) }, "fewer sums than slots must panic")
	require.Panics(t, func() { s.AddPacked(make([]int64, 3), nil, rows) }, "fewer pairs than rows must panic")
	rows[20] = 1
	require.Panics(t, func() { s.AddPacked(make([]int64, 3), []int64{1, 1}, rows) }, "a row number that is too large must panic")
	rows[20] = -1
	require.Panics(t, func() { s.AddPacked(make([]int64, 3), []int64{1, 1}, rows) }, "a negative row number must panic")
}

func TestTakePairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	for n := range 40 {
		from, want := make([]int64, n), make([]int64, 2*n)
		for i := range from {
			g, h := rng.Int64N(1<<31-1<<18)-1<<30, int64(int32(rng.Uint32()))
			from[i], want[2*i], want[2*i+1] = Pack(g, h), g, h
		}
		for name, form := range histogramForms() {
			taken, got := slices.Clone(from), make([]int64, 2*n)
			for i := range got {
				got[i] = -1
			}
			takeHalves(form, got, taken)
			require.Equal(t, want, got, name)
			require.Equal(t, make([]int64, n), taken, name)
		}
	}
}

// BenchmarkSlotRows reports nanoseconds per update of a sum for 200,000 rows with 45 slots
// each, out of 130,000. It adds lists of all rows, of 1/4 of the rows and of 1/32 of the rows.
func BenchmarkSlotRows(b *testing.B) {
	const n, each, size = 200_000, 45, 130_000
	rng := rand.New(rand.NewPCG(1, 2))
	start, slots, pairs := make([]int64, n+1), make([]uint32, n*each), make([]int64, n)
	for i := range slots {
		slots[i] = uint32(i%each*(size/each) + rng.IntN(size/each))
	}
	for r := range start {
		start[r] = int64(r * each)
	}
	s, hist := NewSlotRows(start, slots, 0, size), make([]int64, size)
	for _, every := range []int{1, 4, 32} {
		var list []int32
		for r := range int32(n) {
			if rng.IntN(every) == 0 {
				list = append(list, r)
			}
		}
		for name, form := range histogramForms() {
			b.Run(fmt.Sprint(name, "/1:", every), func(b *testing.B) {
				for b.Loop() {
					s.add(form, hist, pairs, list)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list))/each, "ns/update")
			})
		}
	}
}
