package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestPlaceSurvivors requires, of random offers and kept processes, that the task managers of the processes
// get the slots that these had before others get any, and that everything that holds for Place otherwise does.
func TestPlaceSurvivors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := drawOffers(t)
		r := Request{Slots: rapid.IntRange(1, 20).Draw(t, "want"), Policy: Policy(rapid.IntRange(0, 1).Draw(t, "policy")), Kept: map[string]wire.SlotRange{}}
		for _, o := range offers {
			if n := rapid.IntRange(0, 5).Draw(t, "had"); n > 0 {
				if rapid.Bool().Draw(t, "kept") {
					r.Kept[o.ID] = wire.SlotRange{Lo: r.Was, Hi: r.Was + n}
				}
				r.Was += n
			}
		}
		free, theirs, liked, best := 0, 0, 0, make([]int, len(offers))
		for i, o := range offers {
			free += o.Free
			if had := r.Kept[o.ID]; !o.Avoided {
				best[i] = min(o.Free, had.Hi-had.Lo)
				liked += o.Free
				theirs += best[i]
			}
		}
		before := slices.Clone(offers)
		shares, short := Place(offers, r)
		require.Equal(t, before, offers)
		if free < r.Slots {
			require.NotNil(t, short)
			return
		}
		next, taken := 0, make([]int, len(offers))
		for _, s := range shares {
			require.Equal(t, next, s.Slots.Lo, "the ranges of slots must be contiguous")
			require.Zero(t, taken[s.Offer], "a task manager must get at most one worker")
			next, taken[s.Offer] = s.Slots.Hi, s.Slots.Hi-s.Slots.Lo
			require.Positive(t, taken[s.Offer])
			require.LessOrEqual(t, taken[s.Offer], offers[s.Offer].Free)
		}
		require.Equal(t, r.Slots, next)
		avoided := 0
		for i, o := range offers {
			if r.Slots >= theirs {
				require.GreaterOrEqual(t, taken[i], best[i], "%s must get what its process had", o.ID)
			} else {
				require.LessOrEqual(t, taken[i], best[i], "%s must get no more than its process had", o.ID)
			}
			if o.Avoided {
				avoided += taken[i]
			}
		}
		require.Equal(t, max(0, r.Slots-liked), avoided, "avoided task managers get only the slots that others do not have")
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Perm(len(offers))
		shuffled := make([]Offer, len(offers))
		for i, k := range order {
			shuffled[i] = offers[k]
		}
		again, _ := Place(shuffled, r)
		text := func(offers []Offer, shares []Share) (s string) {
			for _, share := range shares {
				s += fmt.Sprint(offers[share.Offer].ID, share.Slots)
			}
			return s
		}
		require.Equal(t, text(offers, shares), text(shuffled, again), "the order of the offers must not matter")
	})
}

// TestHeld requires that what the workers have kept is left out if nobody has kept anything, or if it would
// not fit into a message.
func TestHeld(t *testing.T) {
	of := func(sizes ...int) [][]byte {
		j := &job{}
		for _, n := range sizes {
			j.workers = append(j.workers, &worker{held: make([]byte, n)})
		}
		return j.held()
	}
	require.Nil(t, of())
	require.Nil(t, of(0, 0))
	require.Equal(t, [][]byte{{}, {0, 0}, {}}, of(0, 2, 0))
	full := slices.Repeat([]int{wire.MaxHeld}, maxAllHeld/wire.MaxHeld)
	require.Len(t, of(full...), len(full))
	require.Nil(t, of(append(full, 1)...))
}
