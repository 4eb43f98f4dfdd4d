package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// histogramForms returns the forms of the loops that this processor can run.
func histogramForms() map[string]dispatch {
	return map[string]dispatch{"assembly": available(), "go": {}}
}

// TestHistograms compares all forms with the sums of sumsByBin, for all numbers of rows up to a
// bound and all numbers of columns.
func TestHistograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 15, 16, 17, 18, 33, 100, 3000} {
		for stride := 1; stride <= HistogramColumns; stride += 1 + n/1000*5 {
			bins := make([]byte, n*stride)
			top := 1 + rng.IntN(256)
			for i := range bins {
				bins[i] = byte(rng.IntN(top))
			}
			pairs := make([]int64, 2*n)
			for i := range pairs {
				pairs[i] = int64(rng.Uint64())
			}
			list := make([]int32, 0, n)
			for r := range n {
				for range rng.IntN(3) {
					list = append(list, int32(r))
				}
			}
			all := make([]int32, n)
			for r := range all {
				all[r] = int32(r)
			}
			for name, form := range histogramForms() {
				for _, s := range []histogramSums{packedSums, countedSums, wideSums} {
					what := fmt.Sprint(name, " sums ", s, " rows ", n, " columns ", stride)
					start := make([]int64, s.words()*stride*HistogramStride)
					for i := range start {
						start[i] = int64(i)
					}
					got := slices.Clone(start)
					histogramAt(form, s, got, bins, stride, pairs, list)
					require.True(t, slices.Equal(sumsByBin(s, start, bins, stride, pairs, list), got), what)
					got = slices.Clone(start)
					histogramRows(form, s, got, bins, stride, pairs[:n*s.pairWords()], n)
					require.True(t, slices.Equal(sumsByBin(s, start, bins, stride, pairs, all), got), what)
				}
			}
		}
	}
}

// sumsByBin returns start plus the sums of the rows. It adds one pair at a time.
func sumsByBin(s histogramSums, start []int64, bins []byte, stride int, pairs []int64, rows []int32) []int64 {
	sums := slices.Clone(start)
	for _, r := range rows {
		for c := range stride {
			at := c*HistogramStride + int(bins[int(r)*stride+c])
			switch s {
			case packedSums:
				sums[at] += pairs[r]
			case countedSums:
				sums[2*at] += pairs[r]
				sums[2*at+1]++
			case wideSums:
				sums[2*at] += pairs[2*r]
				sums[2*at+1] += pairs[2*r+1]
			}
		}
	}
	return sums
}

// TestHistogramsRefuse requires a panic for invalid arguments. The assembly itself does not
// check them.
func TestHistogramsRefuse(t *testing.T) {
	hist, bins, pairs := make([]int64, HistogramStride), make([]byte, 20), make([]int64, 20)
	long := make([]int32, 20)
	long[1] = 20
	require.Panics(t, func() { HistogramPackedAt(hist, bins, 1, pairs, long) })
	long[1] = -1
	require.Panics(t, func() { HistogramPackedAt(hist, bins, 1, pairs, long) })
	require.Panics(t, func() { HistogramPacked(hist, bins, 2, pairs[:10]) })
	require.Panics(t, func() { HistogramPacked(hist, bins[:5], 1, pairs[:10]) })
	require.Panics(t, func() { HistogramWide(hist, bins, 1, pairs) })
	require.Panics(t, func() {
		PartitionRows(long, bins, 1, new([256]byte), make([]int32, 20), make([]int32, 20))
	})
	clear(long)
	require.Panics(t, func() {
		PartitionRows(long, bins, 1, &[256]byte{7: 2}, make([]int32, 20), make([]int32, 20))
	})
}

func TestPack(t *testing.T) {
	for _, g := range []int64{0, 1, -1, PackedMax, -PackedMax} {
		for _, h := range []int64{0, 1, -1, PackedMax, -PackedMax} {
			var sum int64
			for range PackedRows {
				sum += Pack(g, h)
			}
			sumG, sumH := Unpack(sum)
			require.Equal(t, [2]int64{PackedRows * g, PackedRows * h}, [2]int64{sumG, sumH})
		}
	}
}

func TestFoldPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 40 {
		from, start := make([]int64, n), make([]int64, 2*n)
		want := make([]int64, 2*n)
		for i := range from {
			g, h := rng.Int64N(1<<31-1<<18)-1<<30, int64(int32(rng.Uint32()))
			from[i] = Pack(g, h)
			start[2*i], start[2*i+1] = rng.Int64N(1<<60), -rng.Int64N(1<<60)
			want[2*i], want[2*i+1] = start[2*i]+g, start[2*i+1]+h
		}
		for name, form := range histogramForms() {
			got := slices.Clone(start)
			foldHalves(form, got, from)
			require.Equal(t, want, got, name)
		}
	}
}

func TestSubtractIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 60 {
		dst, src, want := make([]int64, n), make([]int64, n), make([]int64, n)
		for i := range dst {
			dst[i], src[i] = int64(rng.Uint64()), int64(rng.Uint64())
			want[i] = dst[i] - src[i]
		}
		for name, form := range histogramForms() {
			got := slices.Clone(dst)
			subtractAll(form, got, src)
			require.Equal(t, want, got, name)
		}
	}
}

func TestPartitionRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		stride := 1 + rng.IntN(32)
		bins := make([]byte, n*stride)
		for i := range bins {
			bins[i] = byte(rng.IntN(256))
		}
		var table [256]byte
		for i := range table {
			table[i] = byte(rng.IntN(2))
		}
		rows := make([]int32, 0, n)
		for r := range n {
			for range rng.IntN(3) {
				rows = append(rows, int32(r))
			}
		}
		var wantLeft, wantRight []int32
		for _, r := range rows {
			if table[bins[int(r)*stride]] == 1 {
				wantLeft = append(wantLeft, r)
			} else {
				wantRight = append(wantRight, r)
			}
		}
		for name, form := range histogramForms() {
			left, right := slices.Clone(rows), make([]int32, len(rows))
			l := partitionList(form, left, bins, stride, &table, left, right)
			require.Equal(t, len(wantLeft), l, name)
			require.Equal(t, wantLeft, append([]int32(nil), left[:l]...), name)
			require.Equal(t, wantRight, append([]int32(nil), right[:len(rows)-l]...), name)
		}
	}
}

// BenchmarkHistogram reports nanoseconds per update of a sum for 1,000,000 rows of 28 columns:
// for all rows in order, and for a list of half of the rows.
func BenchmarkHistogram(b *testing.B) {
	const n, stride = 1_000_000, 28
	rng := rand.New(rand.NewPCG(1, 2))
	bins, pairs := make([]byte, n*stride), make([]int64, 2*n)
	for i := range bins {
		bins[i] = byte(rng.IntN(255))
	}
	var list []int32
	for r := range int32(n) {
		if rng.IntN(16) == 0 {
			list = append(list, r)
		}
	}
	hist := make([]int64, 2*stride*HistogramStride)
	for name, form := range histogramForms() {
		for s, kind := range []string{"packed", "counted", "wide"} {
			s := histogramSums(s)
			b.Run(name+"/"+kind+"/all", func(b *testing.B) {
				for b.Loop() {
					histogramRows(form, s, hist, bins, stride, pairs[:n*s.pairWords()], n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/stride, "ns/update")
			})
			b.Run(name+"/"+kind+"/listed", func(b *testing.B) {
				for b.Loop() {
					histogramAt(form, s, hist, bins, stride, pairs, list)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list))/stride, "ns/update")
			})
		}
	}
}
