package operators

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

type shopKey struct {
	Shop *string
	Kind float64
}

// history is the folded value of a group: all rows that add got, in order.
type history struct {
	Shop *string
	Kind float64
	Seen string
}

func foldHistory(d *engine.Dataset) *engine.Dataset {
	type seen struct {
		Index int64
		Note  *string
	}
	return FoldGroups(GroupBy(d, "shop", "kind"),
		func() []string { return []string{"begin"} },
		func(acc []string, s seen) []string {
			if s.Note == nil {
				return append(acc, fmt.Sprint(s.Index))
			}
			return append(acc, fmt.Sprintf("%d %s", s.Index, *s.Note))
		},
		func(key shopKey, acc []string) history {
			return history{key.Shop, key.Kind, strings.Join(acc, ",")}
		})
}

func TestFoldGroups(t *testing.T) {
	for _, n := range []int{0, 1, 500} {
		rows := sales(n)
		// PartitionByHash sends each row to the shard of its group and keeps the order of rows.
		moved := groupOutcome[sale](t, func(b *engine.Builder) *engine.Dataset {
			return PartitionByHash(FromSlice(b, rows), "shop", "kind")
		}, engine.Shards(testShards))
		var order []string
		want := make(map[string]string)
		for _, r := range moved {
			if want[r.key()] == "" {
				order = append(order, r.key())
				want[r.key()] = "begin"
			}
			want[r.key()] += "," + fmt.Sprint(r.Index)
			if r.Note != nil {
				want[r.key()] += " " + *r.Note
			}
		}
		forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
			got := groupOutcome[history](t, func(b *engine.Builder) *engine.Dataset { return foldHistory(FromSlice(b, rows)) }, opts...)
			require.Len(t, got, len(order))
			for i, h := range got {
				key := sale{Shop: h.Shop, Kind: h.Kind}.key()
				require.Equal(t, order[i], key)
				require.Equal(t, want[key], h.Seen)
			}
		})
	}
}

func TestFoldGroupsOnDisk(t *testing.T) {
	rows := manyKeys()
	type key struct{ Key int64 }
	type outcome struct {
		Key  int64
		Last float64
		Rows int64
	}
	requireSameOnDisk(t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, rows), "key"),
			func() outcome { return outcome{} },
			func(acc outcome, row saleSmall) outcome {
				if row.Price != nil {
					acc.Last = acc.Last/2 + *row.Price // the result depends on the order of rows
				}
				acc.Rows++
				return acc
			},
			func(k key, acc outcome) outcome {
				acc.Key = k.Key
				return acc
			})
	})
}

func TestFoldGroupsFailures(t *testing.T) {
	type row struct{ Width float64 }
	type key struct{ Name string }
	fold := func(d *engine.Dataset) *engine.Dataset {
		return FoldGroups(GroupBy(d, "name"), func() int64 { return 0 },
			func(n int64, _ row) int64 { return n + 1 }, func(key, int64) row { return row{} })
	}
	err := runError(t, func(b *engine.Builder) *engine.Dataset { return fold(FromSlice(b, flowers(5))) })
	require.ErrorContains(t, err, `column "width" is null`)
	require.ErrorContains(t, err, "FoldGroups")
	require.ErrorContains(t, err, "of the shard: column")

	type named struct {
		Name  string
		Width *float64
	}
	rows := make([]named, 40)
	for i := range rows {
		rows[i] = named{"all", new(float64)}
	}
	rows[23].Width = nil
	err = runError(t, func(b *engine.Builder) *engine.Dataset { return fold(FromSlice(b, rows)) }, engine.BatchRows(7))
	require.ErrorContains(t, err, "row 23 of the shard")
	for _, name := range []string{"a", "b", "c", "d", "e"} { // the index in the error must be the row's index within its shard
		behind := append(rows[:20:20], named{Name: name})
		err = runError(t, func(b *engine.Builder) *engine.Dataset { return fold(FromSlice(b, behind)) }, engine.Parallelism(1))
		require.ErrorContains(t, err, "row 0 of the shard", name)
	}

	err = runError(t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, flowers(5)), "name"), func() int64 { return 0 },
			func(n int64, _ key) int64 { panic("no idea") }, func(key, int64) row { return row{} })
	})
	require.ErrorContains(t, err, "no idea")
	requirePoisonSpreads(t, fold)
	requireNilDataset(t, fold)
}

func TestFoldGroupsMisuse(t *testing.T) {
	type row struct{ Width *float64 }
	type key struct{ Name string }
	type other struct{ ID int64 }
	count := func(n int64, _ row) int64 { return n + 1 }
	zero := func() int64 { return 0 }
	var none func(int64, row) int64
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, flowers(1)), "name"), zero, count, func(other, int64) row { return row{} })
	}, "FoldGroups: the key", `"id"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, flowers(1)), "name"), zero, none, func(key, int64) row { return row{} })
	}, "FoldGroups: the function is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, flowers(1)), "nme"), zero, count, func(key, int64) row { return row{} })
	}, "GroupBy", `"name"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, []int64{1}), "value"), zero, count, func(int64, int64) row { return row{} })
	}, "FoldGroups", `"width"`)
}
