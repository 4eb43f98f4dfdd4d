package copies

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// chosenState returns the state that Choose should choose for a queue, by trying all states.
func chosenState(held [][]Held, queue string) (best State, ok bool) {
	for superstep := 1; superstep <= 4; superstep++ {
		for _, ended := range []bool{false, true} {
			for of := 1; of <= 4; of++ {
				s := State{queue, superstep, ended, of}
				whole := true
				for piece := range of {
					somewhere := false
					for _, list := range held {
						for _, h := range list {
							somewhere = somewhere || h.State == s && slices.Contains(h.Pieces, piece)
						}
					}
					whole = whole && somewhere
				}
				newer := !ok || ended && !best.Ended || ended == best.Ended && superstep >= best.Superstep
				if whole && newer {
					best, ok = s, true
				}
			}
		}
	}
	return best, ok
}

// TestChoose compares Choose with an exhaustive search over few states, and requires that it names
// exactly the holders of each piece, and does not depend on the order of a list.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := make([][]Held, rapid.IntRange(0, 4).Draw(t, "workers"))
		queues := []string{"", "means", "trees"}
		for w := range held {
			for _, queue := range queues {
				for range rapid.IntRange(0, 3).Draw(t, "states") {
					s := State{queue, rapid.IntRange(1, 4).Draw(t, "superstep"), rapid.IntRange(0, 3).Draw(t, "ended") == 0, rapid.IntRange(1, 4).Draw(t, "of")}
					h := Held{State: s}
					for piece := range s.Of {
						if rapid.IntRange(0, 3).Draw(t, "held") > 0 {
							h.Pieces = append(h.Pieces, piece)
						}
					}
					if !slices.ContainsFunc(held[w], func(other Held) bool { return other.State == s }) {
						held[w] = append(held[w], h)
					}
				}
			}
		}
		got := Choose(held)
		for w := range held {
			slices.Reverse(held[w])
		}
		require.Equal(t, got, Choose(held))
		for _, queue := range queues {
			best, ok := chosenState(held, queue)
			if !ok {
				continue
			}
			require.NotEmpty(t, got)
			require.Equal(t, best, got[0].State)
			require.NoError(t, got[0].checkHolders(len(held)))
			for piece, of := range got[0].Holders {
				for w := range held {
					holds := slices.ContainsFunc(held[w], func(h Held) bool { return h.State == best && slices.Contains(h.Pieces, piece) })
					require.Equal(t, holds, slices.Contains(of, w), "piece %d, worker %d", piece, w)
				}
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(of))), len(of))
			}
			got = got[1:]
		}
		require.Empty(t, got)
	})
}

// TestChooseSpreads requires that no worker is the first holder of more pieces than necessary, where
// all hold all.
func TestChooseSpreads(t *testing.T) {
	for workers := 1; workers <= 5; workers++ {
		s := State{"means", 3, false, 11}
		held := make([][]Held, workers)
		for w := range held {
			held[w] = []Held{{s, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}}
		}
		first := make([]int, workers)
		for _, of := range Choose(held)[0].Holders {
			require.Len(t, of, workers)
			first[of[0]]++
		}
		require.LessOrEqual(t, slices.Max(first)-slices.Min(first), 1)
	}
}

// TestChooseIgnoresNonsense requires that Choose survives lists that no Store makes.
func TestChooseIgnoresNonsense(t *testing.T) {
	s := State{"means", 3, false, 2}
	require.Empty(t, Choose([][]Held{{{s, []int{1, 1}}}, {{s, []int{-1, 2, 5}}}, {{State{Queue: "means", Of: -4}, nil}}, {{State{"means", 1, false, 1 << 60}, []int{0}}}}))
	got := Choose([][]Held{{{s, []int{1, 1, 9}}}, nil, {{s, []int{0}}}})
	require.Equal(t, []Choice{{s, [][]int{{2}, {0}}}}, got)
}

// TestLacks requires that the copies that are sent before an attempt continues bring each piece to as
// many workers as there should be, and to none twice.
func TestLacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, copies := rapid.IntRange(1, 6).Draw(t, "workers"), rapid.IntRange(1, 4).Draw(t, "copies")
		c := Choice{State: State{"means", 3, false, rapid.IntRange(1, 6).Draw(t, "of")}}
		for range c.Of {
			c.Holders = append(c.Holders, rapid.Permutation(seq(workers)).Draw(t, "holders")[:rapid.IntRange(1, workers).Draw(t, "number")])
		}
		then := make([][]int, c.Of)
		for i, of := range c.Holders {
			then[i] = slices.Clone(of)
		}
		for w := range workers {
			for _, l := range c.lacks(w, workers, copies) {
				require.Equal(t, w, c.Holders[l.piece][0])
				require.NotContains(t, then[l.piece], l.to)
				then[l.piece] = append(then[l.piece], l.to)
			}
		}
		for i, of := range then {
			require.Len(t, of, max(len(c.Holders[i]), min(workers, copies+1)))
		}
	})
}

// seq returns 0..n-1.
func seq(n int) (s []int) {
	for i := range n {
		s = append(s, i)
	}
	return s
}
