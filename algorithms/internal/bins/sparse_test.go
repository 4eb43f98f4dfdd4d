package bins_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// mixed returns n sparse rows of 23 features. Each row has exactly one of the features 0–9.
// Features 10–19 are rare, and some rows have several of them. Feature 20 is in nearly every
// row, feature 21 is in none, and feature 22 is 1 in every row.
func mixed(n int) trial.Table {
	t := trial.Table{N: n, D: 23, Sparse: true}
	r := sharding.NewRandom(6, "mixed", 0, 0)
	for range n {
		row := make([]float64, t.D)
		row[int(10*r.Float64())] = 1 + float64(int(3*r.Float64()))
		for j := 10; j < 20; j++ {
			if r.Float64() < 0.03 {
				row[j] = r.Float64() - 0.5
			}
		}
		if r.Float64() < 0.9 {
			row[20] = r.Float64()
		}
		row[22] = 1
		t.X = append(t.X, row...)
	}
	return t
}

func TestExclusiveFeaturesShareAColumn(t *testing.T) {
	table := mixed(800)
	for _, absentIsZero := range []bool{false, true} {
		s := look(t, table.Dataset, bins.Columns{}, bins.NoLabel, bins.Options{AbsentIsZero: absentIsZero}, engine.Parallelism(3))
		l := s.Layout
		column := l.Features[0].Column
		stored := 3
		if absentIsZero {
			stored = 4 // the bins of 1, 2, 3 and missing values; the bin of 0 is implicit
		}
		for j := range 10 {
			f := l.Features[j]
			require.Equal(t, column, f.Column, "features 0 to 9 never meet in a row and must share a column")
			require.Equal(t, stored, f.Stored())
		}
		require.Equal(t, l.Columns[column].Features, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
		require.Equal(t, 1+10*stored, l.Columns[column].Width)
		for j := 10; j < 20; j++ {
			require.Equal(t, -1, l.Features[j].Column)
			require.GreaterOrEqual(t, l.Features[j].Slot, l.ColumnSlots)
		}
		require.Equal(t, -1, l.Features[20].Implicit)
		require.NotEqual(t, column, l.Features[20].Column)
		require.Equal(t, -1, l.Features[21].Slot, "a feature that no row has needs no slot")
		require.Equal(t, -1, l.Features[22].Slot, "a constant feature needs no slot")
		require.Len(t, l.Columns, 2)
		requireSlots(t, l)

		s = look(t, table.Dataset, bins.Columns{}, bins.NoLabel, bins.Options{AbsentIsZero: absentIsZero, NoBundling: true})
		for j := range 10 {
			require.Equal(t, -1, s.Layout.Features[j].Column, "without bundling, too few rows store the feature for a column")
		}
		requireSlots(t, s.Layout)
	}
}

func TestAColumnHasAtMost256Slots(t *testing.T) {
	table := trial.Table{N: 960, D: 12, Sparse: true}
	for i := range table.N { // each row has one of 12 features; each feature has 40 distinct values
		row := make([]float64, table.D)
		row[i%12] = 1 + float64(i/12%40)
		table.X = append(table.X, row...)
	}
	s := look(t, table.Dataset, bins.Columns{}, bins.NoLabel, bins.Options{})
	require.Len(t, s.Layout.Columns, 2)
	require.Equal(t, []int{241, 241}, []int{s.Layout.Columns[0].Width, s.Layout.Columns[1].Width})
	requireSlots(t, s.Layout)
	for i, row := range s.Rows {
		for j, x := range table.Row(i) {
			if x == 0 {
				x = nan
			}
			requireRouted(t, &s.Layout.Features[j], row.Bins[j], x)
		}
	}
}

// requireSlots requires that no two bins share a slot, and that BinOfSlot is the inverse of
// SlotOf.
func requireSlots(t *testing.T, l bins.Layout) {
	t.Helper()
	used := map[int]bool{}
	for j := range l.Features {
		f := &l.Features[j]
		n := 0
		for b := range f.Bins + 1 {
			slot := f.SlotOf(b)
			if slot < 0 {
				require.True(t, f.Slot < 0 || b == f.Implicit)
				continue
			}
			n++
			require.False(t, used[slot])
			require.Equal(t, b, f.BinOfSlot(slot))
			require.Less(t, slot, l.Slots)
			used[slot] = true
			if f.Column >= 0 {
				c := l.Columns[f.Column]
				require.GreaterOrEqual(t, slot, c.Slot)
				require.Less(t, slot, c.Slot+c.Width)
				require.LessOrEqual(t, c.Width, 256)
			}
		}
		require.Equal(t, n, f.Stored())
	}
}

// sparseRecord returns sparse rows with the given indices and values.
func sparseRecord(size int, rows [][]int32, values [][]float64) arrow.Record {
	csr := batch.CSR{Size: size, Indptr: []int32{0}}
	for i := range rows {
		csr.Indices, csr.Values = append(csr.Indices, rows[i]...), append(csr.Values, values[i]...)
		csr.Indptr = append(csr.Indptr, int32(len(csr.Indices)))
	}
	a, err := batch.NewSparseArray(memory.NewGoAllocator(), csr)
	if err != nil {
		panic(err)
	}
	return array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "v", Type: a.DataType()}}, nil), []arrow.Array{a}, int64(len(rows)))
}

func TestFewOfVeryManyFeatures(t *testing.T) {
	rec := sparseRecord(2_000_000_000, [][]int32{{5, 1_999_999_999}, {}, {5}, {70_000}}, [][]float64{{1, 2}, {}, {3}, {4}})
	s := look(t, dataset(rec), bins.Columns{}, bins.NoLabel, bins.Options{}, engine.Shards(1))
	require.Equal(t, 2_000_000_000, s.Facts.Declared)
	require.Len(t, s.Layout.Features, 3)
	require.Equal(t, []int{5, 70_000, 1_999_999_999}, []int{s.Layout.Features[0].Number, s.Layout.Features[1].Number, s.Layout.Features[2].Number})
	require.Equal(t, "f70000", s.Layout.Features[1].Name)
	require.Equal(t, [][]int{{0, 1, 0}, {2, 1, 1}, {1, 1, 1}, {2, 0, 1}}, [][]int{s.Rows[0].Bins, s.Rows[1].Bins, s.Rows[2].Bins, s.Rows[3].Bins})
	require.Equal(t, []int64{2, 3, 3}, s.Facts.Missing)
}

func TestSparseCategories(t *testing.T) {
	rec := sparseRecord(0, [][]int32{{0, 1}, {0}, {1}, {}, {0, 1}}, [][]float64{{7, 1}, {9}, {2}, {}, {7, nan}})
	for _, absentIsZero := range []bool{false, true} {
		s := look(t, dataset(rec), bins.Columns{CategoricalAt: []int{0}}, bins.NoLabel, bins.Options{AbsentIsZero: absentIsZero})
		var got [][]int
		for _, row := range s.Rows {
			got = append(got, row.Bins)
		}
		if absentIsZero {
			require.Equal(t, []int32{0, 7, 9}, s.Layout.Features[0].Codes)
			require.Equal(t, [][]int{{1, 1}, {2, 0}, {0, 2}, {0, 0}, {1, 3}}, got)
			require.Equal(t, []int64{0, 1}, s.Facts.Missing)
			continue
		}
		require.Equal(t, []int32{7, 9}, s.Layout.Features[0].Codes)
		require.Equal(t, [][]int{{0, 0}, {1, 2}, {2, 1}, {2, 2}, {0, 2}}, got)
		require.Equal(t, []int64{2, 3}, s.Facts.Missing)
	}
}

func TestABlockHasAtMost32Columns(t *testing.T) {
	for _, d := range []int{1, 32, 33, 70} {
		table := trial.Gaussian(uint64(d), 40, d)
		data := bins.Dense(table.X, table.N, d, bins.Options{MaxBins: 5})
		columns := 0
		for b, block := range data.Blocks {
			require.LessOrEqual(t, block.Stride, 32)
			require.Equal(t, columns, block.First)
			require.Len(t, block.Bins, table.N*block.Stride)
			for o := range block.Stride {
				c := data.Layout.Columns[columns]
				require.Equal(t, []int{b, o}, []int{c.Block, c.Offset})
				columns++
			}
		}
		require.Equal(t, d, columns)
		requireSlots(t, *data.Layout)
		for i := range table.N {
			for j, x := range table.Row(i) {
				requireRouted(t, &data.Layout.Features[j], data.Bin(i, j), x)
			}
		}
		s := look(t, table.Dataset, bins.Columns{}, bins.NoLabel, bins.Options{MaxBins: 5})
		require.Equal(t, *data.Layout, s.Layout, "bins.Dense and a job must give the same layout")
	}
}
