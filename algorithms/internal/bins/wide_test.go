package bins_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// manyCategories returns n codes below limit, of which some occur once and others often.
// distinct has the distinct codes in ascending order.
func manyCategories(n, limit int) (codes []int64, distinct []int32) {
	for i := range n {
		c := i * 7919 % limit
		if i%3 == 0 {
			c %= 11
		}
		codes = append(codes, int64(c))
		distinct = append(distinct, int32(c))
	}
	slices.Sort(distinct)
	return codes, slices.Compact(distinct)
}

// TestManyCategories requires that every category has a bin, even if there are more categories
// than MaxBins and than a byte can number.
func TestManyCategories(t *testing.T) {
	codes, distinct := manyCategories(900, 5000)
	require.Greater(t, len(distinct), 500)
	var words []string
	var few []int64
	for i, c := range codes {
		words = append(words, fmt.Sprintf("w%05d", c))
		few = append(few, int64(i%40))
	}
	words[5], words[17] = "-", "-" // null
	rec := columnsRecord([]string{"word", "few", "code"}, words, few, codes)
	c := bins.Columns{Features: []string{"word", "few", "code"}, Categorical: []string{"few", "code"}}
	build := func(b *engine.Builder) {
		engine.Collect(check(b, dataset(rec)(b), c, bins.NoLabel, bins.Options{MaxBins: 4}), "seen")
	}
	trial.SameBits(t, build)
	s := collect(t, trial.Run(t, build, engine.Parallelism(3)))
	f := s.Layout.Features
	require.Equal(t, []int{0, 2}, s.Layout.Wide)
	require.Len(t, s.Layout.Columns, 1)
	require.Equal(t, 40, f[1].Bins)
	require.Equal(t, distinct, f[2].Codes)
	requireSlots(t, s.Layout)
	require.Equal(t, s.Layout.Slots, s.Layout.ColumnSlots)
	for i, row := range s.Rows {
		word, _ := slices.BinarySearch(f[0].Names, words[i])
		if words[i] == "-" {
			word = f[0].Bins
		}
		code, _ := slices.BinarySearch(distinct, int32(codes[i]))
		require.Equal(t, []int{word, i % 40, code}, row.Bins)
	}
	require.Equal(t, []int64{2, 0, 0}, s.Facts.Missing)
}

// TestManyCategoriesInVectors requires that every category of a component of dense or sparse
// vectors has a bin, even if there are more categories than a byte can number. Absent values
// must be category 0 with AbsentIsZero, and missing without it.
func TestManyCategoriesInVectors(t *testing.T) {
	codes, distinct := manyCategories(1200, bins.MaxCategory+1)
	for _, sparse := range []bool{false, true} {
		for _, absentIsZero := range []bool{false, true} {
			table := trial.Table{N: len(codes), D: 2, Sparse: sparse}
			for i, c := range codes {
				table.X = append(table.X, float64(i%5), float64(c))
			}
			s := look(t, table.Dataset, bins.Columns{CategoricalAt: []int{1}}, bins.NoLabel, bins.Options{AbsentIsZero: absentIsZero}, engine.Parallelism(2))
			own := distinct
			if sparse && !absentIsZero {
				own = distinct[1:] // sparse rows do not store zeros, so category 0 does not occur
			}
			require.Equal(t, own, s.Layout.Features[1].Codes)
			require.Equal(t, []int{1}, s.Layout.Wide)
			require.Equal(t, -1, s.Layout.Features[1].Implicit)
			requireSlots(t, s.Layout)
			for i, row := range s.Rows {
				bin, found := slices.BinarySearch(own, int32(codes[i]))
				if !found {
					bin = len(own)
				}
				require.Equal(t, bin, row.Bins[1])
			}
		}
	}
}

// TestManyCategoriesOfEvaluationRows requires that categories that training has not seen, and
// invalid codes, are missing values in evaluation rows.
func TestManyCategoriesOfEvaluationRows(t *testing.T) {
	codes, distinct := manyCategories(900, 5000)
	var words []string
	for _, c := range codes {
		words = append(words, fmt.Sprintf("w%05d", c))
	}
	last := int64(distinct[len(distinct)-1])
	unseen := []int64{-1, last + 1, bins.MaxCategory + 1, 1 << 40, -1 << 62}
	for c := range int32(20) {
		if !slices.Contains(distinct, c) {
			unseen = append(unseen, int64(c))
		}
	}
	other := append([]int64{int64(distinct[3]), last}, unseen...)
	var names []string
	for i := range other {
		names = append(names, fmt.Sprintf("new %d", i))
	}
	names[0], names[1] = words[0], words[1]
	train, held := columnsRecord([]string{"word", "code"}, words, codes), columnsRecord([]string{"word", "code"}, names, other)
	c := bins.Columns{Features: []string{"word", "code"}, Categorical: []string{"code"}}
	s := evaluated(t, train, held, c, bins.Options{})
	f := s.Layout.Features
	require.Equal(t, []int{f[0].Category(words[0]), 3}, s.Rows[0].Bins)
	require.Equal(t, []int{f[0].Category(words[1]), f[1].Bins - 1}, s.Rows[1].Bins)
	for _, row := range s.Rows[2:] {
		require.Equal(t, []int{f[0].Bins, f[1].Bins}, row.Bins)
	}
	// An evaluation set may have the codes in a column of another number type, such as one that
	// was read from a text file.
	reals := make([]float64, len(other))
	for i, c := range other {
		reals[i] = float64(c)
	}
	s = evaluated(t, train, columnsRecord([]string{"word", "code"}, names, reals), c, bins.Options{})
	require.Equal(t, []int{3, f[1].Bins - 1, f[1].Bins}, []int{s.Rows[0].Bins[1], s.Rows[1].Bins[1], s.Rows[2].Bins[1]})
	// Components of vectors may be fractions, which are not codes.
	var vectors [][]float64
	for _, c := range codes {
		vectors = append(vectors, []float64{float64(c), 1})
	}
	train = columnsRecord([]string{"v"}, vectors)
	held = columnsRecord([]string{"v"}, [][]float64{{0.5, 1}, {-0.5, 1}, {nan, 1}, {inf, 1}, {-inf, 1}, {1e30, 1}, {65535.5, 1}, {float64(last), 1}})
	s = evaluated(t, train, held, bins.Columns{Vector: "v", CategoricalAt: []int{0}}, bins.Options{})
	for i, row := range s.Rows {
		want := s.Layout.Features[0].Bins
		if i == len(s.Rows)-1 {
			want--
		}
		require.Equal(t, want, row.Bins[0], i)
	}
}

// evaluated returns the rows of held, binned as an evaluation set by the cuts of train.
func evaluated(t *testing.T, train, held arrow.Record, c bins.Columns, o bins.Options) seen {
	return collect(t, trial.Run(t, func(b *engine.Builder) {
		a, err := bins.Check("bins.Test", dataset(train)(b), c, bins.NoLabel, o)
		require.NoError(t, err)
		e, err := a.Other("held out", dataset(held)(b), false)
		require.NoError(t, err)
		engine.Collect(open(b, a, e), "seen")
	}, engine.Shards(2)))
}
