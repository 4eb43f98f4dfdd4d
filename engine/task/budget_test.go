package task

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBudgetKeeps makes random calls and compares the counts of a budget with plain sums.
func TestBudgetKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := NewBudget("the run", 150, nil)
		b := NewBudget("slot 0", 100, run)
		var used, kept, rows int64
		var keeps, holds []int64
		drop := func(from *[]int64) (n int64, ok bool) {
			if len(*from) == 0 {
				return 0, false
			}
			i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
			n = (*from)[i]
			*from = append((*from)[:i], (*from)[i+1:]...)
			return n, true
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve and keep": func(t *rapid.T) {
				n := rapid.Int64Range(0, 60).Draw(t, "n")
				fits := used+n <= 100
				require.Equal(t, fits, b.TryReserve(n))
				if fits {
					b.KeepReserved(n)
					used, kept, keeps = used+n, kept+n, append(keeps, n)
				}
			},
			"reserve rows": func(t *rapid.T) {
				n := rapid.Int64Range(0, 60).Draw(t, "n")
				fits := used+n <= 100
				require.Equal(t, fits, b.Reserve(n) == nil)
				if fits {
					b.HoldRows(n)
					used, rows, holds = used+n, rows+n, append(holds, n)
				}
			},
			"keep": func(t *rapid.T) {
				n, with := rapid.Int64Range(0, 90).Draw(t, "n"), rapid.Bool().Draw(t, "with rows")
				all := kept + n
				if with {
					all += rows
				}
				fits := all <= 201
				require.Equal(t, fits, b.Keep(n, with))
				if fits {
					used, kept, keeps = used+n, kept+n, append(keeps, n)
				}
			},
			"give up": func(t *rapid.T) {
				if n, ok := drop(&keeps); ok {
					b.GiveUp(n)
					used, kept = used-n, kept-n
				}
			},
			"give up rows": func(t *rapid.T) {
				if n, ok := drop(&holds); ok {
					b.GiveUpRows(n)
					used, rows = used-n, rows-n
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, used, b.Used())
				require.Equal(t, used, run.Used())
				require.Equal(t, kept, b.Kept(false))
				require.Equal(t, kept+rows, b.Kept(true))
			},
		})
	})
}

// TestBudgetsOfHugeSizes requires that sizes up to the largest integer, which do not fit, are
// refused and do not change the counts.
func TestBudgetsOfHugeSizes(t *testing.T) {
	b := NewBudget("slot 0", 100, NewBudget("the run", 100, nil))
	require.True(t, b.TryReserve(40))
	for _, n := range []int64{101, 1 << 62, math.MaxInt64} {
		require.False(t, b.TryReserve(n))
		var full *BudgetError
		require.ErrorAs(t, b.Reserve(n), &full)
		require.Equal(t, int64(40), full.Used)
		if n > 201 {
			require.False(t, b.Keep(n, true))
			require.False(t, b.Keep(n, false))
		}
	}
	require.Equal(t, int64(40), b.Used())
	require.Zero(t, b.Kept(true))
	var none *Budget
	require.True(t, none.Keep(math.MaxInt64, true))
	none.HoldRows(1)
	none.GiveUpRows(1)
	require.Zero(t, none.Kept(true))
}

// TestBeside requires that what others hold beside a budget makes its users spill, and fails nothing that
// cannot be spilled. Others may hold what is free, and an eighth of the limit in any case.
func TestBeside(t *testing.T) {
	held := int64(0)
	root := NewBudget("the run", 800, nil)
	root.Beside(func() int64 { return held })
	slot := NewBudget("slot 0", 800, root)
	require.True(t, root.RoomBeside(800))
	require.False(t, root.RoomBeside(801))
	held = 300
	require.True(t, root.RoomBeside(500))
	require.False(t, root.RoomBeside(501))
	require.False(t, slot.TryReserve(501))
	require.Zero(t, slot.Used())
	require.Zero(t, root.Used())
	require.True(t, slot.TryReserve(500))
	require.False(t, root.RoomBeside(1))
	require.NoError(t, slot.Reserve(300), "copies fail nothing")
	require.Error(t, slot.Reserve(1))
	require.True(t, slot.Keep(400, false), "nor do they count as kept")
	slot.GiveUp(400)
	held = 60
	require.True(t, root.RoomBeside(40))
	require.False(t, root.RoomBeside(41))
	slot.Release(800)
	require.True(t, slot.TryReserve(740))
	require.Equal(t, int64(740), root.Used())
}
