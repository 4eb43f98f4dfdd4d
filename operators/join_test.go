package operators

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// joinedPair is the row that the joins of the tests make from a pair.
type joinedPair struct {
	Left, Right *int64
	Text        string
}

func pairOf(l *leftRow, r *rightRow) (p joinedPair) {
	if l != nil {
		p.Left, p.Text = &l.ID, fmt.Sprint(deref(l.Text), deref(l.Real))
	}
	if r != nil {
		p.Right, p.Text = &r.ID, p.Text+fmt.Sprint(deref(r.Text), deref(r.Flag))
	}
	return p
}

// gathered is the row that CoGroup makes from a key in the tests: the ids of the rows of both
// groups.
type gathered struct{ Rows string }

func gather(left *Group[leftRow], right *Group[rightRow], emit func(gathered)) error {
	var text []string
	for l := range left.Rows() {
		for r := range right.Rows() {
			text = append(text, fmt.Sprintf("%d-%d", l.ID, r.ID))
		}
	}
	for l := range left.Rows() {
		text = append(text, fmt.Sprint(l.ID))
		break
	}
	text = append(text, fmt.Sprint(left.Len(), "/", right.Len()))
	for r := range right.Rows() {
		text = append(text, fmt.Sprint(r.ID))
	}
	emit(gathered{strings.Join(text, " ")})
	if left.Len() > right.Len() {
		emit(gathered{"more"})
	}
	return nil
}

// joinReference computes the results of all joining operators for two tables by comparing each
// left row with each right row.
func joinReference(left []leftRow, right []rightRow, key int) map[string][]string {
	k := joinedKeys[key]
	type place struct {
		shard int
		key   string
		null  bool
	}
	placeOf := func(values []any) (p place) {
		p.shard, p.key, p.null = shardOfKey(values, testShards)
		return p
	}
	var lefts, rights []place
	for _, r := range left {
		lefts = append(lefts, placeOf(k.left(r)))
	}
	for _, r := range right {
		rights = append(rights, placeOf(k.right(r)))
	}
	partners := func(l, r place) bool { return !l.null && !r.null && l.key == r.key }
	out := map[string][]string{"inner": {}, "left": {}, "right": {}, "full": {}, "semi": {}, "anti": {}, "group": {}, "distinct": {}}
	for shard := range testShards {
		add := func(l *leftRow, r *rightRow, kinds ...string) {
			p := pairOf(l, r)
			for _, kind := range kinds {
				out[kind] = append(out[kind], line(shard, deref(p.Left), deref(p.Right), p.Text))
			}
		}
		addLeft := func(name string, r leftRow) {
			out[name] = append(out[name], line(shard, r.ID))
		}
		seen, met := map[string]bool{}, make([]bool, len(right))
		groups := func(p place) {
			if seen[p.key] {
				return
			}
			seen[p.key] = true
			var text []string
			var ls, rs []int
			for i := range left {
				if lefts[i].key == p.key {
					ls = append(ls, i)
				}
			}
			for i := range right {
				if rights[i].key == p.key {
					rs = append(rs, i)
				}
			}
			for _, l := range ls {
				for _, r := range rs {
					text = append(text, fmt.Sprintf("%d-%d", l, r))
				}
			}
			if len(ls) > 0 {
				text = append(text, fmt.Sprint(ls[0]))
			}
			text = append(text, fmt.Sprint(len(ls), "/", len(rs)))
			for _, r := range rs {
				text = append(text, fmt.Sprint(r))
			}
			out["group"] = append(out["group"], line(shard, strings.Join(text, " ")))
			if len(ls) > len(rs) {
				out["group"] = append(out["group"], line(shard, "more"))
			}
		}
		for i := range left {
			if lefts[i].shard != shard {
				continue
			}
			if !seen[lefts[i].key] {
				addLeft("distinct", left[i])
			}
			groups(lefts[i])
			found := false
			for j := range right {
				if partners(lefts[i], rights[j]) {
					found, met[j] = true, true
					add(&left[i], &right[j], "inner", "left", "right", "full")
				}
			}
			if found {
				addLeft("semi", left[i])
			} else {
				addLeft("anti", left[i])
				add(&left[i], nil, "left", "full")
			}
		}
		for j := range right {
			if rights[j].shard == shard {
				groups(rights[j])
				if !met[j] {
					add(nil, &right[j], "right", "full")
				}
			}
		}
	}
	return out
}

// joinEverything returns a function that builds the datasets whose rows joinReference computes.
// Joins hold at most most rows or keys in memory.
func joinEverything(left []leftRow, right []rightRow, key, most int) func(b *engine.Builder) map[string]*engine.Dataset {
	return func(b *engine.Builder) map[string]*engine.Dataset {
		on := joinedKeys[key].on
		l, r := FromSlice(b, left), FromSlice(b, right)
		ids := func(d *engine.Dataset) *engine.Dataset { return Select(d, "id") }
		out := map[string]*engine.Dataset{
			"semi":     ids(addSemiJoin("SemiJoin", l, r, on, false, most)),
			"anti":     ids(addSemiJoin("AntiJoin", l, r, on, true, most)),
			"distinct": ids(addDistinct("Distinct", l, on.left, most)),
			"group":    addCoGroup("CoGroup", l, r, on, most, gather),
		}
		for kind := Inner; kind <= Full; kind++ {
			out[kind.String()] = addJoin("Join", l, r, on, kind, most, pairOf, false, func(l *leftRow, r *rightRow) (joinedPair, error) {
				return pairOf(l, r), nil
			})
		}
		return out
	}
}

// TestJoins compares all joining operators with the reference, at all settings, with enough
// memory and with so little memory that rows are sorted on disk.
func TestJoins(t *testing.T) {
	settings := append(asAWhole(), testsize.AsWorkers[setting]()...)
	for seed := range joinSeeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		left, right := joinTables(r)
		key, most := seed%len(joinedKeys), []int{0, 0, 1, 3, 7}[r.IntN(5)]
		s := settings[r.IntN(len(settings))]
		want := joinReference(left, right, key)
		got := joinOutcomes(t, joinEverything(left, right, key, most), s.options()...)
		for _, name := range sortedKeys(want) {
			require.Equal(t, want[name], got[name], "seed %d: %s of %d and %d rows on %v, %v, at most %d in memory",
				seed, name, len(left), len(right), joinedKeys[key].on, s, most)
		}
	}
}

// TestJoinsEverywhere requires that joins have the same result at every setting.
func TestJoinsEverywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var left []leftRow
	var right []rightRow
	for len(left) < 30 || len(right) < 30 {
		left, right = joinTables(r)
	}
	for _, most := range testsize.Raced([]int{0, 3}, []int{3}) {
		want := joinReference(left, right, 5)
		forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
			require.Equal(t, want, joinOutcomes(t, joinEverything(left, right, 5, most), opts...))
		})
	}
}

// sortedKeys returns the keys of a map in ascending order.
func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
