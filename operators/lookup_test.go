package operators

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// code is a row of the table in which tests look up keys.
type code struct {
	Code string
	Rank int64
}

// lookedUp is a result row.
type lookedUp struct {
	ID    int64
	Found string
}

// TestLookup looks up keys that occur once, several times and not at all, and compares the
// result with a search of all rows.
func TestLookup(t *testing.T) {
	var codes []code
	for i := range 40 {
		codes = append(codes, code{fmt.Sprint("c", i%13), int64(i)})
	}
	find := func(id int64) (ranks []int64) {
		for _, c := range codes {
			if c.Code == fmt.Sprint("c", id) {
				ranks = append(ranks, c.Rank)
			}
		}
		return ranks
	}
	key := func(c code) string { return c.Code }
	var mapped, flat []string
	for i := range int64(20) {
		ranks := find(i)
		mapped = append(mapped, line(place(int(i), 20), i, fmt.Sprint(len(ranks), " ", slices.Max(append(ranks, -1)), " 40")))
		for _, r := range ranks {
			flat = append(flat, line(place(int(i), 20), i, r))
		}
	}
	requireRows(t, "id int64 | found utf8", mapped, func(b *engine.Builder) *engine.Dataset {
		return MapLookup(Range(b, 0, 20), FromSlice(b, codes), key, func(id int64, table *Lookup[string, code]) (lookedUp, error) {
			n, last := 0, int64(-1)
			for c := range table.All(fmt.Sprint("c", id)) {
				n, last = n+1, c.Rank
			}
			first, ok := table.Get(fmt.Sprint("c", id))
			if ok != (n > 0) || ok && first.Rank != find(id)[0] {
				return lookedUp{}, fmt.Errorf("Get found %v, %v of %d", first, ok, n)
			}
			return lookedUp{id, fmt.Sprint(n, " ", last, " ", table.Len())}, nil
		})
	})
	requireRows(t, "id int64 | found utf8", flat, func(b *engine.Builder) *engine.Dataset {
		return FlatMapLookup(Range(b, 0, 20), FromSlice(b, codes), key, func(id int64, table *Lookup[string, code], emit func(lookedUp)) error {
			for c := range table.All(fmt.Sprint("c", id)) {
				emit(lookedUp{id, fmt.Sprint(c.Rank)})
			}
			return nil
		})
	})
	requireRows(t, "value bool", []string{line(0, false)}, func(b *engine.Builder) *engine.Dataset {
		none := Filter(FromSlice(b, codes), func(code) bool { return false })
		one := PartitionByCustom(FromSlice(b, []int64{1}), func(int64, int) int { return 0 })
		return MapLookup(one, none, key, func(_ int64, table *Lookup[string, code]) (bool, error) {
			_, ok := table.Get("")
			return ok || table.Len() > 0, nil
		})
	})
}

func TestLookupFailures(t *testing.T) {
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return MapLookup(Range(b, 0, 20), FromSlice(b, []code{{"a", 1}}), func(c code) string { panic("no key") },
			func(id int64, _ *Lookup[string, code]) (int64, error) { return id, nil })
	}, engine.Parallelism(3))
	require.ErrorContains(t, err, "no key")
	require.ErrorContains(t, err, "MapLookup")
	err = runError(t, func(b *engine.Builder) *engine.Dataset {
		return MapLookup(Range(b, 0, 20), FromSlice(b, []code{{"a", 1}}), func(c code) string { return c.Code },
			func(id int64, _ *Lookup[string, code]) (int64, error) {
				if id == 11 {
					return 0, fmt.Errorf("not %d", id)
				}
				return id, nil
			})
	})
	require.ErrorContains(t, err, "not 11")
	require.ErrorContains(t, err, "row 1 of the shard")
}
