package operators

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestCollectMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		engine.Collect(nil, "rows")
		return nil
	}, "collect_test.go:", `Collect "rows": the dataset is nil`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		engine.Collect(FromSlice(b, []int{1}), "")
		return nil
	}, "collect_test.go:", "name")
	var kept *engine.Dataset
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		FromSlice(b, []int{1})
		if kept == nil {
			_ = runError(t, func(other *engine.Builder) *engine.Dataset {
				kept = FromSlice(other, []int{1})
				engine.Collect(kept, "")
				return nil
			})
		}
		engine.Collect(kept, "rows")
		return nil
	}, "belongs to another job")
}

// TestSingleColumnsAsValues requires that results, rows of functions and keys of groups that
// have one column can be read as values, whatever the column's name.
func TestSingleColumnsAsValues(t *testing.T) {
	type named struct{ Name string }
	type at struct{ When time.Time }
	type sparse struct{ X SparseVector }
	type two struct{ A, B int64 }
	noon := time.Unix(12*3600, 0).UTC()
	vector := SparseVector{Size: 0, Indices: []int32{3}, Values: []float64{7}}
	for _, opts := range [][]engine.Option{nil, {engine.Workers(2)}} {
		result, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
			names := FromSlice(b, []named{{"a"}, {"b"}, {"a"}})
			engine.Collect(Count(names), "n")
			engine.Collect(Count(Filter(names, func(string) bool { return false })), "none")
			engine.Collect(Map(names, func(name string) int { return len(name) }), "sizes")
			engine.Collect(FoldGroups(GroupBy(names, "name"), func() int64 { return 0 },
				func(n int64, _ named) int64 { return n + 1 }, func(name string, n int64) string { return name + line(n) }), "of each")
			engine.Collect(FromSlice(b, []at{{noon}}), "when")
			engine.Collect(FromSlice(b, []sparse{{vector}}), "sparse")
			engine.Collect(FromSlice(b, []two{{1, 2}}), "pairs")
			return nil
		}), struct{}{}, append(opts, engine.Allocator(batchtest.Allocator(t)), engine.Shards(4))...)
		require.NoError(t, err)
		defer result.Release()
		requireValues(t, result, "n", []int64{3})
		requireValues(t, result, "n", []float64(nil), `result "n": float64 wants count float64; found columns: count int64: column "count" is int64, which does not fit float64 of type float64 (column type float64); where the type was inferred from text, name it: CSVOptions.Types, or ReadCSVAs for the fields of a struct`)
		requireValues(t, result, "n", []string(nil), `column "count" is int64, which does not fit string of type string (column type utf8)`)
		requireValues(t, result, "n", []struct{ N int64 }(nil), `no column "n" for struct`, "found columns: count int64")
		three := int64(3)
		requireValues(t, result, "n", []*int64{&three})
		requireValues(t, result, "n", []struct{ Count int64 }{{3}})
		requireValues(t, result, "none", []int64{0})
		requireValues(t, result, "sizes", []int64{1, 1, 1})
		requireValues(t, result, "when", []time.Time{noon})
		requireValues(t, result, "sparse", []SparseVector{vector})
		of, err := engine.Rows[string](result, "of each")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a2", "b1"}, of)
		requireValues(t, result, "pairs", []int64(nil), `result "pairs": int64 wants value int64; found columns: a int64, b int64: no column "value" for int64`,
			`a int64 reads the only column there is, or the one named "value"`)
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, []named{}), func(n int64) int64 { return n })
	}, "collect_test.go:", `Map: int64 wants name int64; found columns: name utf8: column "name" is utf8, which does not fit int64`)
}

// requireValues requires that reading a result returns the rows want or, if words are given, an
// error that contains all of them.
func requireValues[T any](t *testing.T, r *engine.Result, name string, want []T, words ...string) {
	t.Helper()
	got, err := engine.Rows[T](r, name)
	if len(words) == 0 {
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, word := range words {
		require.ErrorContains(t, err, word)
	}
}
