package sharding

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplitAndOwnerAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		p := rapid.IntRange(1, 300).Draw(t, "p")
		end := 0
		for i := range p {
			r := Split(n, p, i)
			want := n / p
			if i < n%p {
				want++
			}
			require.Equal(t, want, r.Len())
			if r.Empty() {
				continue
			}
			require.Equal(t, end, r.Lo, "each part must begin where the previous one ends")
			end = r.Hi
			for x := r.Lo; x < r.Hi; x++ {
				require.Equal(t, i, Owner(n, p, x))
			}
		}
		require.Equal(t, n, end)
	})
}

func TestSplitAndOwnerOfNothing(t *testing.T) {
	for _, r := range []Range{Split(-1, 2, 0), Split(5, 0, 0), Split(5, 2, 2), Split(5, 2, -1), Split(0, 2, 0)} {
		require.True(t, r.Empty())
	}
	for _, i := range []int{Owner(5, 2, 5), Owner(5, 2, -1), Owner(5, 0, 1), Owner(0, 1, 0)} {
		require.Equal(t, -1, i)
	}
}

func TestRangeMethodsAgreeWithMembership(t *testing.T) {
	draw := rapid.IntRange(-10, 10)
	rapid.Check(t, func(t *rapid.T) {
		a := Range{draw.Draw(t, "a.lo"), draw.Draw(t, "a.hi")}
		b := Range{draw.Draw(t, "b.lo"), draw.Draw(t, "b.hi")}
		n := 0
		for x := -12; x < 12; x++ {
			in := a.Lo <= x && x < a.Hi
			require.Equal(t, in, a.Contains(x))
			require.Equal(t, in && b.Contains(x), a.Intersect(b).Contains(x))
			if in {
				n++
			}
		}
		require.Equal(t, n, a.Len())
		require.Equal(t, n == 0, a.Empty())
		require.GreaterOrEqual(t, a.Intersect(b).Hi, a.Intersect(b).Lo)
	})
}

func TestValidShards(t *testing.T) {
	for s := -3; s <= 2*MaxShards; s += max(1, s/7) {
		want := s >= 1 && s <= MaxShards && bits.OnesCount(uint(s)) == 1
		require.Equal(t, want, ValidShards(s) == nil, "%d", s)
	}
	for s := 1; s <= MaxShards; s *= 2 {
		require.NoError(t, ValidShards(s))
	}
	require.Error(t, ValidShards(2*MaxShards))
	require.ErrorContains(t, ValidShards(100), "100 shards")
}

func TestNodeRelations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t, "n")
		r := n.Range()
		require.Equal(t, 1<<n.Level, r.Len())
		require.Equal(t, n, n.Parent().Left().min(n.Parent().Right(), n.IsLeft()))
		require.Equal(t, n.Parent(), n.Sibling().Parent())
		require.NotEqual(t, n, n.Sibling())
		require.Equal(t, n, n.Sibling().Sibling())
		if n.Level > 0 {
			require.Equal(t, Range{r.Lo, r.Lo + r.Len()/2}, n.Left().Range())
			require.Equal(t, Range{r.Lo + r.Len()/2, r.Hi}, n.Right().Range())
		}
		o := drawNode(t, "o")
		inside := o.Range().Intersect(r) == o.Range()
		require.Equal(t, inside, n.Contains(o))
	})
	require.Equal(t, "2:3", Node{2, 3}.String())
	require.Equal(t, Range{12, 16}, Node{2, 3}.Range())
	require.Equal(t, Node{0, 7}, Leaf(7))
}

// min returns n if left is true, and otherwise other.
func (n Node) min(other Node, left bool) Node {
	if left {
		return n
	}
	return other
}

func drawNode(t *rapid.T, label string) Node {
	level := rapid.IntRange(0, 6).Draw(t, label+".level")
	return Node{level, rapid.IntRange(0, 64>>level).Draw(t, label+".index")}
}

// coverByDescent computes Cover(r) naively. It descends from n, whose range contains r, and
// returns the nodes that lie within r although their parents do not.
func coverByDescent(n Node, r Range) []Node {
	switch common := n.Range().Intersect(r); {
	case common.Empty():
		return nil
	case common == n.Range():
		return []Node{n}
	}
	return append(coverByDescent(n.Left(), r), coverByDescent(n.Right(), r)...)
}

func TestCoverIsExactAndMinimal(t *testing.T) {
	for lo := 0; lo <= 64; lo++ {
		for hi := lo; hi <= 64; hi++ {
			r := Range{lo, hi}
			require.Equal(t, coverByDescent(Node{6, 0}, r), Cover(r))
			if n := r.Len(); n > 1 {
				require.LessOrEqual(t, len(Cover(r)), 2*(bits.Len(uint(n-1))))
			}
		}
	}
	require.Empty(t, Cover(Range{5, 2}))
	require.Equal(t, []Node{{1, 0}}, Cover(Range{-7, 2}), "negative shards must be left out")
	require.Equal(t, []Node{{9, 9}, {0, 3}}, AppendCover([]Node{{9, 9}}, Range{3, 4}))
}

// expression folds the present leaves below n by plain recursion, and returns the merges as the
// text of an expression.
func expression(n Node, present map[int]bool) string {
	if n.Level == 0 {
		if present[n.Index] {
			return fmt.Sprint(n.Index)
		}
		return ""
	}
	l, r := expression(n.Left(), present), expression(n.Right(), present)
	if l == "" || r == "" {
		return l + r
	}
	return join(l, r)
}

func join(l, r string) string { return "(" + l + " " + r + ")" }

func drawPresent(t *rapid.T, shards int) map[int]bool {
	density := rapid.IntRange(0, 4).Draw(t, "density of 4")
	present := map[int]bool{}
	for s := range shards {
		if rapid.IntRange(0, 3).Draw(t, "present") < density {
			present[s] = true
		}
	}
	return present
}

// TestFoldIsIndependentOfSplit requires that the same leaves are merged in the same tree for
// every number of subtasks.
func TestFoldIsIndependentOfSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.IntRange(0, 7).Draw(t, "levels")
		shards := 1 << levels
		present := drawPresent(t, shards)
		p := rapid.IntRange(1, shards).Draw(t, "p")
		f := NewFolder(Range{}, join, nil)
		var forest []Entry[string]
		for i := range p {
			r := Split(shards, p, i)
			f.Reset(r)
			for s := r.Lo; s < r.Hi; s++ {
				if present[s] {
					f.Push(s, fmt.Sprint(s))
				}
			}
			entries := f.Forest()
			require.Equal(t, entries, f.Forest(), "a second call of Forest must return the same entries")
			checkForest(t, r, present, entries)
			forest = append(forest, entries...)
		}
		want := expression(Node{levels, 0}, present)
		require.Equal(t, want, foldBySchedule(t, forest))
		got, ok, err := MergeForests(shards, forest, join)
		require.NoError(t, err)
		require.Equal(t, len(present) > 0, ok)
		require.Equal(t, want, got)
	})
}

// checkForest checks that entries are the nodes of Cover(r) that have leaves,
// each with the expression of its subtree.
func checkForest(t *rapid.T, r Range, present map[int]bool, entries []Entry[string]) {
	var want []Entry[string]
	for _, n := range Cover(r) {
		if e := expression(n, present); e != "" {
			want = append(want, Entry[string]{n, e})
		}
	}
	require.Equal(t, len(want), len(entries))
	for i := range want {
		require.Equal(t, want[i], entries[i])
	}
}

// foldBySchedule folds a copy of a forest in the steps of FoldSchedule, and checks that each
// slot is used as a right operand only once.
func foldBySchedule(t *rapid.T, forest []Entry[string]) string {
	var nodes []Node
	var values []string
	for _, e := range forest {
		nodes, values = append(nodes, e.Node), append(values, e.Value)
	}
	steps, err := FoldSchedule(nodes, nil)
	require.NoError(t, err)
	require.Len(t, steps, max(len(nodes)-1, 0))
	for _, s := range steps {
		require.Less(t, s.Left, s.Right)
		require.NotEmpty(t, values[s.Left])
		require.NotEmpty(t, values[s.Right])
		values[s.Left] = join(values[s.Left], values[s.Right])
		values[s.Right] = ""
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// TestFolderKeepsFewBuffers requires that the number of buffers that a Folder holds is
// logarithmic in the length of its range, that it passes each merged buffer to done once, and
// that it allocates nothing after the first round.
func TestFolderKeepsFewBuffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.IntRange(0, 5000).Draw(t, "lo")
		r := Range{lo, lo + rapid.IntRange(1, 3000).Draw(t, "n")}
		gap := rapid.IntRange(1, 5).Draw(t, "gap")
		live, most := 0, 0
		returned := map[int]bool{}
		f := NewFolder(r, func(l, _ int) int { return l }, func(v int) {
			require.False(t, returned[v], "done must get each buffer only once")
			returned[v] = true
			live--
		})
		for s := r.Lo; s < r.Hi; s += gap {
			live++
			most = max(most, live)
			f.Push(s, s)
		}
		forest := f.Forest()
		require.Equal(t, live, len(forest))
		for _, e := range forest {
			require.False(t, returned[e.Value], "no buffer of the forest may have been passed to done")
		}
		require.LessOrEqual(t, most, 2*bits.Len(uint(r.Len()))+2)
	})
}

// TestFolderMergesAtOnce requires that subtrees are merged as soon as they are complete. In an
// aligned range, the number of live buffers after n shards is then the number of one bits in n.
func TestFolderMergesAtOnce(t *testing.T) {
	live := 0
	f := NewFolder(Range{64, 128}, func(l, _ *int) *int { return l }, func(*int) { live-- })
	for n := 1; n <= 64; n++ {
		live++
		f.Push(63+n, new(int))
		require.Equal(t, bits.OnesCount(uint(n)), live)
	}
	f.Reset(Range{0, 4})
	for _, e := range f.stack[:cap(f.stack)] {
		require.Nil(t, e.Value, "after Reset the stack must hold no reference to a value")
	}
}

func TestFolderAllocatesNothingInSteadyState(t *testing.T) {
	r := Range{5, 100}
	f := NewFolder(r, func(l, r float64) float64 { return l + r }, func(float64) {})
	require.Zero(t, testing.AllocsPerRun(20, func() {
		f.Reset(r)
		for s := r.Lo; s < r.Hi; s++ {
			f.Push(s, 1)
		}
		f.Forest()
	}))
}

func TestFolderRefusesDisorder(t *testing.T) {
	f := NewFolder(Range{2, 10}, join, nil)
	require.Panics(t, func() { f.Push(1, "") }, "Push must panic for a shard before the range")
	require.Panics(t, func() { f.Push(10, "") }, "Push must panic for a shard after the range")
	f.Push(5, "5")
	require.Panics(t, func() { f.Push(5, "") }, "Push must panic for a shard that was pushed already")
	require.Panics(t, func() { f.Push(4, "") }, "Push must panic for a shard below the last one pushed")
	f.Forest()
	require.Panics(t, func() { f.Push(9, "") }, "Push must panic after Forest")
	f.Reset(Range{2, 10})
	require.Empty(t, f.Forest(), "Reset must drop all values")
}

func TestFoldRefusesBadEntries(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []Node
		says  string
	}{
		{"overlap", []Node{{1, 0}, {0, 1}}, "entry 1, node 0:1, begins at shard 1"},
		{"twice", []Node{{0, 3}, {0, 3}}, "disjoint"},
		{"order", []Node{{0, 3}, {0, 1}}, "in order"},
		{"negative level", []Node{{-1, 0}}, "not a node"},
		{"negative index", []Node{{0, -1}}, "not a node"},
		{"too wide", []Node{{63, 0}}, "not a node"},
		{"overflow", []Node{{40, 1 << 30}}, "not a node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := []FoldStep{{7, 8}}
			steps, err := FoldSchedule(c.nodes, before)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, steps)
			entries := make([]Entry[string], len(c.nodes))
			for i, n := range c.nodes {
				entries[i].Node = n
			}
			_, ok, err := MergeForests(8, entries, func(l, r string) string { panic("merged") })
			require.ErrorContains(t, err, c.says)
			require.False(t, ok)
		})
	}
	_, _, err := MergeForests(8, []Entry[string]{{Node{2, 2}, ""}}, join)
	require.ErrorContains(t, err, "outside the 8 shards")
	_, _, err = MergeForests(6, nil, join)
	require.ErrorContains(t, err, "power of two")
}

// rankExpression returns the expression of the canonical tree over p ranks by its definition.
// With q the largest power of two up to p and r = p − q, the first r pairs become one value
// each, and the resulting q values are folded in a perfect tree.
func rankExpression(p int) string {
	q := 1
	for 2*q <= p {
		q *= 2
	}
	var values []string
	for rank := 0; rank < p; rank++ {
		if rank < 2*(p-q) {
			values = append(values, join(fmt.Sprint(rank), fmt.Sprint(rank+1)))
			rank++
		} else {
			values = append(values, fmt.Sprint(rank))
		}
	}
	var perfect func(v []string) string
	perfect = func(v []string) string {
		if len(v) == 1 {
			return v[0]
		}
		return join(perfect(v[:len(v)/2]), perfect(v[len(v)/2:]))
	}
	return perfect(values)
}

func TestFoldRanksFollowsTheCanonicalTree(t *testing.T) {
	for p := 1; p <= 130; p++ {
		values := make([]string, p)
		for i := range values {
			values[i] = fmt.Sprint(i)
		}
		require.Equal(t, rankExpression(p), FoldRanks(slices.Clone(values), join), "p = %d", p)
		steps := RankSchedule(p, []FoldStep{{9, 9}})
		require.Len(t, steps, p, "RankSchedule must append p−1 steps to dst")
	}
	require.Equal(t, "(((0 1) (2 3)) (4 5))"[:0], FoldRanks(nil, join))
	require.Empty(t, RankSchedule(0, nil))
	require.Empty(t, RankSchedule(-5, nil))
}
