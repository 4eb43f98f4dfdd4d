// These tests run on one goroutine, where the race detector finds nothing.

//go:build !race

package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sparseMixed draws n rows of up to most entries in d columns. The first row need not begin at
// the first entry of the slices.
func sparseMixed(rng *rand.Rand, n, d, most, style int) CSR {
	x := CSR{RowPtr: []int64{int64(rng.IntN(3))}}
	total := int(x.RowPtr[0])
	for range n {
		total += rng.IntN(most + 1)
		x.RowPtr = append(x.RowPtr, int64(total))
	}
	x.Val = mixed[float64](rng, total+2, 1, style)
	for range total + 2 {
		x.Col = append(x.Col, int32(rng.IntN(d)))
	}
	for i := range n {
		col, _ := x.Row(i)
		slices.Sort(col)
	}
	return x
}

// testSparse compares the assembly with pure Go for the rows of x that begin with row from.
func testSparse(t *testing.T, rng *rand.Rand, x CSR, d, from, style int) {
	x.RowPtr = x.RowPtr[from:]
	n := x.Rows()
	w, coef := mixed[float64](rng, d, 3, style), mixed[float64](rng, n, 1, style)
	want := mixed[float64](rng, n, 2, 0)
	sum := mixed[float64](rng, d, 1, style)
	product, added := clone(want), clone(sum)
	dotCSR(dispatch{}, x, w, product)
	addScaledCSR(dispatch{}, x, coef, added)
	pairs, zeros := mixed[float64](rng, 2*d, 1, style), mixed[float64](rng, d, 1, 0)
	clear(zeros)
	moments, top := clone(pairs), clone(zeros)
	finite := x
	finite.Val = slices.Clone(x.Val)
	for p, v := range x.Val {
		if v != v {
			finite.Val[p] = -3
		}
	}
	addMomentsCSR(dispatch{}, finite, moments, top)
	for _, form := range assembled {
		for _, rows := range []CSR{finite, checkedCSR(form, finite, d)} {
			gotPairs, gotTop := clone(pairs), clone(zeros)
			addMomentsCSR(form, rows, gotPairs, gotTop)
			same(t, moments, gotPairs, "moments of %d rows in %d columns from %d, style %d", n, d, from, style)
			same(t, top, gotTop, "largest of %d rows in %d columns from %d, style %d", n, d, from, style)
		}
		got := clone(want)
		dotCSR(form, x, w, got)
		same(t, product, got, "dot of %d rows in %d columns from %d, style %d", n, d, from, style)
		got = clone(sum)
		addScaledCSR(form, x, coef, got)
		same(t, added, got, "sum of %d rows in %d columns from %d, style %d", n, d, from, style)
		for _, next := range []CSR{{}, {RowPtr: []int64{0}}, {RowPtr: []int64{0, 1}, Col: []int32{0}, Val: []float64{1}}, {RowPtr: []int64{-1, 1 << 40}}, x} {
			before := x
			before.Before(&next)
			got = clone(sum)
			addScaledCSR(form, before, coef, got)
			same(t, added, got, "sum of %d rows in %d columns from %d, style %d, before others", n, d, from, style)
		}
	}
}

func TestFormsOfSparseRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	for n := range 14 {
		for _, most := range []int{0, 1, 5, 70} {
			for style := range 3 {
				d := []int{1, 7, 300, 2000}[rng.IntN(4)]
				if n == 13 {
					d = 70_000 // columns need more than two bytes
				}
				x := sparseMixed(rng, n, d, most, style)
				testSparse(t, rng, x, d, 0, style)
				testSparse(t, rng, x, d, min(n, 1), style)
			}
		}
	}
	// There are more entries than one call takes: in all rows together, and in a single row.
	testSparse(t, rng, sparseMixed(rng, 300, 1000, 1000, 1), 1000, 2, 1)
	long := sparseMixed(rng, 2, 1000, 3*callSize, 0)
	long.RowPtr = []int64{1, 3, int64(len(long.Col) - 2), int64(len(long.Col) - 1)}
	testSparse(t, rng, long, 1000, 0, 2)
}

func FuzzSparseRows(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(9), uint8(60), uint16(500))
	f.Fuzz(func(t *testing.T, a, b uint64, n, most uint8, d uint16) {
		rng := rand.New(rand.NewPCG(a, b))
		style := rng.IntN(3)
		columns := int(d) + 1
		testSparse(t, rng, sparseMixed(rng, int(n), columns, int(most), style), columns, rng.IntN(int(n)+1), style)
	})
}

// TestCheckedRange requires that the rows of a range are checked when they are requested, and
// that the block has the mark of Checked once all ranges were requested in order.
func TestCheckedRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(75, 76))
	const n, d = 50, 400
	for _, form := range assembled {
		x := sparseMixed(rng, n, d, 30, 0)
		for lo := 0; lo < n; lo += 8 {
			require.Zero(t, x.below)
			part := checkedRange(form, &x, lo, min(lo+8, n), d)
			require.Equal(t, d, part.below)
			require.Equal(t, min(8, n-lo), part.Rows())
		}
		require.Equal(t, d, x.below)
		for _, limit := range []int{d, d + 1} {
			var part CSR
			x.CheckedRange(&part, 3, 9, limit)
			require.Equal(t, CSR{RowPtr: x.RowPtr[3:10], Col: x.Col, Val: x.Val, below: d}, part)
		}

		y := sparseMixed(rng, n, d, 30, 0)
		checkedRange(form, &y, 0, 20, d)
		checkedRange(form, &y, 30, n, d) // rows before these were not requested
		require.Zero(t, y.below)
		checkedRange(form, &y, 20, n, d)
		require.Equal(t, d, y.below)

		z := sparseMixed(rng, n, d, 30, 0)
		checkedRange(form, &z, 0, 20, d)
		checkedRange(form, &z, 20, n, d+1) // the preceding rows were checked against another limit
		require.Zero(t, z.below)

		bad := sparseMixed(rng, n, d, 30, 0)
		bad.Col[bad.RowPtr[21]] = d
		for _, lo := range []int{0, 20, 40} {
			part := checkedRange(form, &bad, lo, min(lo+20, n), d)
			require.Equal(t, lo == 20, part.below == 0)
			if lo == 20 {
				require.Panics(t, func() { dotCSR(form, part, make([]float64, d), make([]float64, 20)) })
			}
		}
		require.Zero(t, bad.below)
	}
}

// TestColumnsOnDiskAreNotBelieved requires that columns in a file are checked before every use.
// If a column has become invalid after a check, the next use must panic, and must not read or
// write memory out of range.
func TestColumnsOnDiskAreNotBelieved(t *testing.T) {
	rng := rand.New(rand.NewPCG(77, 78))
	const n, d = 50, 400
	for _, form := range append([]dispatch{{}}, assembled...) {
		x := sparseMixed(rng, n, d, 30, 0)
		x.OnDisk = true
		w, coef, out := mixed[float64](rng, d, 0, 0), mixed[float64](rng, n, 0, 0), make([]float64, n)
		views := []CSR{checkedCSR(form, x, d), checkedRange(form, &x, 0, n, d)}
		var part CSR
		checkedRange(form, &x, 0, n, d)
		x.CheckedRange(&part, 0, n, d)
		for _, view := range append(views, part) {
			dotCSR(form, view, w, out)
			addScaledCSR(form, view, coef, w)
		}
		x.Col[x.RowPtr[n]-1] = 1 << 30 // as if the page was read again from a changed file
		for _, view := range append(views, part) {
			require.Panics(t, func() { dotCSR(form, view, w, out) })
			require.Panics(t, func() { addScaledCSR(form, view, coef, w) })
			require.Panics(t, func() { addMomentsCSR(form, view, make([]float64, 2*d), make([]float64, d)) })
		}
	}
}

// TestSparseColumnsOutOfRangePanic requires that a column out of range panics in every form,
// before memory out of range is read or written.
func TestSparseColumnsOutOfRangePanic(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	for _, entries := range []int{3, 64, 200, momentEntries, 3*momentEntries + 7, callSize + 5} {
		for _, at := range []int{0, entries / 2, entries - 1} {
			for _, column := range []int32{-1, 40, 1 << 30} {
				x := CSR{RowPtr: []int64{0, int64(entries / 3), int64(entries)}, Col: make([]int32, entries), Val: make([]float64, entries)}
				x.Col[at] = column
				for _, form := range append([]dispatch{{}}, assembled...) {
					w := mixed[float64](rng, 40, 0, 0)
					require.Panics(t, func() { dotCSR(form, x, w, make([]float64, 2)) })
					require.Panics(t, func() { addScaledCSR(form, x, []float64{1, 1}, w) })
					require.Panics(t, func() { dotCSR(form, checkedCSR(form, x, 40), w, make([]float64, 2)) })
					require.Panics(t, func() { addMomentsCSR(form, x, make([]float64, 80), make([]float64, 40)) })
					require.Panics(t, func() {
						y := checkedCSR(form, CSR{RowPtr: x.RowPtr, Col: make([]int32, entries), Val: x.Val}, 40)
						dotCSR(form, y, nil, make([]float64, 2)) // columns are known to be below 40, but w has no elements
					})
					same(t, w, clone(w))
				}
			}
		}
	}
	bad := []CSR{
		{RowPtr: []int64{0, 4, 2}, Col: make([]int32, 4), Val: make([]float64, 4)}, // a row ends before it begins
		{RowPtr: []int64{0, 5}, Col: make([]int32, 5), Val: make([]float64, 4)},
		{RowPtr: []int64{-1, 2}, Col: make([]int32, 5), Val: make([]float64, 4)},
	}
	for _, x := range bad {
		for _, form := range append([]dispatch{{}}, assembled...) {
			for _, y := range []CSR{x, checkedCSR(form, x, 3)} {
				require.Zero(t, y.below)
				require.Panics(t, func() { dotCSR(form, y, make([]float64, 3), make([]float64, 2)) })
				require.Panics(t, func() { addScaledCSR(form, y, make([]float64, 2), make([]float64, 3)) })
			}
		}
	}
}
