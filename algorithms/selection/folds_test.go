package selection_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type labelled struct {
	ID    int64
	Label *string
	Part  float64
}

// labelledRows returns n rows. Every third row is of class a, every eleventh row has no class,
// and the other rows are of class b.
func labelledRows(n int) []labelled {
	a, b := "a", "b"
	rows := make([]labelled, n)
	for i := range rows {
		rows[i] = labelled{ID: int64(i), Label: &b, Part: math.Sqrt(float64(i))}
		switch {
		case i%11 == 10:
			rows[i].Label = nil
		case i%3 == 0:
			rows[i].Label = &a
		}
	}
	return rows
}

// divided returns, for each fold, the rows to train on and the rows to test on.
func divided(t testing.TB, rows []labelled, divide func(*engine.Dataset) []selection.Fold, options ...engine.Option) (train, test [][]labelled) {
	t.Helper()
	n := 0
	r, err := trial.Try(t, func(b *engine.Builder) {
		folds := divide(operators.FromSlice(b, rows))
		n = len(folds)
		for i, f := range folds {
			engine.Collect(f.Train, fmt.Sprint("train", i))
			engine.Collect(f.Test, fmt.Sprint("test", i))
		}
	}, options...)
	require.NoError(t, err)
	defer r.Release()
	for i := range n {
		a, err := engine.Rows[labelled](r, fmt.Sprint("train", i))
		require.NoError(t, err)
		b, err := engine.Rows[labelled](r, fmt.Sprint("test", i))
		require.NoError(t, err)
		train, test = append(train, a), append(test, b)
	}
	return train, test
}

func ids(rows []labelled) []int64 {
	list := []int64{}
	for _, r := range rows {
		list = append(list, r.ID)
	}
	return list
}

// classes counts the rows of each class.
func classes(rows []labelled) map[string]int {
	count := map[string]int{}
	for _, r := range rows {
		if r.Label == nil {
			count["null"]++
		} else {
			count[*r.Label]++
		}
	}
	return count
}

func TestFoldsDivideTheRows(t *testing.T) {
	for _, stratify := range []bool{false, true} {
		for _, n := range []int{5, 23, 200} {
			divide := func(d *engine.Dataset) []selection.Fold { return selection.KFold(d, 5, 7) }
			if stratify {
				divide = func(d *engine.Dataset) []selection.Fold { return selection.Stratified(d, "label", 5, 7) }
			}
			rows := labelledRows(n)
			train, test := divided(t, rows, divide)
			require.Len(t, test, 5)
			var all []int64
			for i := range test {
				all = append(all, ids(test[i])...)
				require.True(t, slices.IsSorted(ids(test[i])) && slices.IsSorted(ids(train[i])), "rows must keep their order")
				both := append(ids(train[i]), ids(test[i])...)
				slices.Sort(both)
				require.Equal(t, ids(rows), both)
				require.InDelta(t, float64(n)/5, len(test[i]), 0.999)
				if stratify {
					for class, count := range classes(rows) {
						require.InDelta(t, float64(count)/5, classes(test[i])[class], 0.999, class)
					}
				}
			}
			slices.Sort(all)
			require.Equal(t, ids(rows), all)
			if n == 200 {
				require.NotEqual(t, ids(rows[:len(test[0])]), ids(test[0]))
			}
		}
	}
}

// TestFoldsAreTheSameEverywhere requires that the fold of a row depends only on the seed and on
// the position of the row in the dataset.
func TestFoldsAreTheSameEverywhere(t *testing.T) {
	rows := labelledRows(120)
	divide := func(seed uint64) func(*engine.Dataset) []selection.Fold {
		return func(d *engine.Dataset) []selection.Fold {
			return append(selection.Stratified(d, "label", 3, seed), selection.Split(d, selection.SplitOptions{Seed: seed}))
		}
	}
	_, want := divided(t, rows, divide(1))
	for _, shards := range []int{1, 2, 64} {
		_, got := divided(t, rows, divide(1), engine.Shards(shards), engine.Parallelism(min(shards, 3)), engine.BatchRows(3))
		require.Equal(t, want, got)
	}
	_, other := divided(t, rows, divide(2))
	require.NotEqual(t, want, other)
	_, seeded := divided(t, rows, divide(0), engine.Seed(1))
	require.Equal(t, want, seeded)
	trial.SameBits(t, func(b *engine.Builder) {
		for i, f := range divide(5)(operators.FromSlice(b, rows)) {
			engine.Collect(f.Test, fmt.Sprint(i))
		}
	})
}

func TestSplitHasTheProportion(t *testing.T) {
	for _, c := range []struct {
		n    int
		test float64
		want int
	}{{100, 0, 25}, {100, 0.1, 10}, {7, 0.5, 4}, {2, 0.01, 1}, {2, 0.99, 1}, {1, 0.5, 1}, {1, 0.2, 0}, {0, 0.5, 0}} {
		for _, stratify := range []string{"", "label"} {
			train, test := divided(t, labelledRows(c.n), func(d *engine.Dataset) []selection.Fold {
				return []selection.Fold{selection.Split(d, selection.SplitOptions{Test: c.test, Stratify: stratify, Seed: 3})}
			})
			require.Len(t, test[0], c.want)
			require.Len(t, train[0], c.n-c.want)
			if c.n == 100 && stratify != "" {
				for class, count := range classes(labelledRows(c.n)) {
					require.InDelta(t, float64(count*c.want)/100, classes(test[0])[class], 1, class)
				}
			}
		}
	}
}

func TestFoldsRefuseWhatTheyCannotDivide(t *testing.T) {
	for text, divide := range map[string]func(*engine.Dataset) []selection.Fold{
		"k is 1: want 2 to 10000 folds":         func(d *engine.Dataset) []selection.Fold { return selection.KFold(d, 1, 0) },
		"k is -3":                               func(d *engine.Dataset) []selection.Fold { return selection.KFold(d, -3, 0) },
		"4 rows cannot be divided into 5 parts": func(d *engine.Dataset) []selection.Fold { return selection.KFold(d, 5, 0) },
		"the label column is not named":         func(d *engine.Dataset) []selection.Fold { return selection.Stratified(d, "", 2, 0) },
		`selection.Stratified: `:                func(d *engine.Dataset) []selection.Fold { return selection.Stratified(d, "labels", 2, 0) },
		"Test is 1: want more than 0": func(d *engine.Dataset) []selection.Fold {
			return []selection.Fold{selection.Split(d, selection.SplitOptions{Test: 1})}
		},
		"Test is NaN": func(d *engine.Dataset) []selection.Fold {
			return []selection.Fold{selection.Split(d, selection.SplitOptions{Test: math.NaN()})}
		},
		`column "v" is vector[2]: want numbers, text`: func(d *engine.Dataset) []selection.Fold {
			return selection.Stratified(operators.Vectorize(d, "v", "id", "part"), "v", 2, 0)
		},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			for i, f := range divide(operators.FromSlice(b, labelledRows(4))) {
				engine.Collect(f.Test, fmt.Sprint(i))
			}
		}, text)
	}
	trial.Fails(t, func(b *engine.Builder) {
		f := selection.Stratified(operators.Range(b, 0, 30_000), "value", 2, 0)
		engine.Collect(f[0].Test, "test")
	}, "has more than 10000 distinct values")
}

// TestFoldsKeepAllColumns requires that a column may have the same name as the internal column
// of part numbers.
func TestFoldsKeepAllColumns(t *testing.T) {
	train, _ := divided(t, labelledRows(9), func(d *engine.Dataset) []selection.Fold { return selection.KFold(d, 3, 0) })
	for _, r := range train[1] {
		require.Equal(t, math.Sqrt(float64(r.ID)), r.Part)
	}
}
