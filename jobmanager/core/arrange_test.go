package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// keptShards returns how many shards stay where they are if the shares have the given order. It counts the
// shards that the subtasks of each share own before and after. Their number is a multiple of both numbers
// of subtasks, so that no rounding is involved.
func (a *arrangement) keptShards(order []int) (n int) {
	shards := a.was * a.now
	owned := func(slots wire.SlotRange, p int) map[int]bool {
		all := map[int]bool{}
		for t := slots.Lo; t < slots.Hi; t++ {
			for s, r := 0, sharding.Split(shards, p, t); s < r.Len(); s++ {
				all[r.Lo+s] = true
			}
		}
		return all
	}
	lo := 0
	for _, i := range order {
		before := owned(a.former[i], a.was)
		for s := range owned(wire.SlotRange{Lo: lo, Hi: lo + a.counts[i]}, a.now) {
			if before[s] {
				n++
			}
		}
		lo += a.counts[i]
	}
	return n
}

// sum returns the sum that arrange maximises, for a given order.
func (a *arrangement) sum(order []int) (n int) {
	lo := 0
	for _, i := range order {
		n += a.common(i, lo)
		lo += a.counts[i]
	}
	return n
}

func (a *arrangement) arrange() []int { return arrange(a.counts, a.former, a.was) }

// eachOrder calls f with every order of 0..n-1, the first in the order of indices first.
func eachOrder(n int, f func([]int)) {
	var order []int
	var next func()
	next = func() {
		if len(order) == n {
			f(order)
		}
		for i := range n {
			if !slices.Contains(order, i) {
				order = append(order, i)
				next()
				order = order[:len(order)-1]
			}
		}
	}
	next()
}

// drawArrangement returns a job whose workers had random numbers of slots, of which some are lost, some
// now have other numbers of slots, and some are new.
func drawArrangement(r *rand.Rand, most int) *arrangement {
	a := &arrangement{}
	for range 1 + r.IntN(most) {
		n := 1 + r.IntN(4)
		had := wire.SlotRange{Lo: a.was, Hi: a.was + n}
		a.was += n
		switch r.IntN(4) {
		case 0:
			continue // lost, and not replaced
		case 1:
			had = wire.SlotRange{}
		case 2:
			n = 1 + r.IntN(4)
		}
		a.counts, a.former = append(a.counts, n), append(a.former, had)
	}
	for range 1 + r.IntN(2) {
		if len(a.counts) < most {
			a.counts, a.former = append(a.counts, 1+r.IntN(4)), append(a.former, wire.SlotRange{})
		}
	}
	r.Shuffle(len(a.counts), func(i, k int) {
		a.counts[i], a.counts[k] = a.counts[k], a.counts[i]
		a.former[i], a.former[k] = a.former[k], a.former[i]
	})
	for _, n := range a.counts {
		a.now += n
	}
	return a
}

// TestArrangeIsBest compares arrange with the first best of all orders. Whether an order is better is
// decided by the number of shards that stay.
func TestArrangeIsBest(t *testing.T) {
	cases := testsize.Of(400, 20_000)
	for seed := range cases {
		a := drawArrangement(rand.New(rand.NewPCG(uint64(seed), 1)), 3+seed%4)
		if seed >= cases-testsize.Raced(3, 1) {
			a = drawArrangement(rand.New(rand.NewPCG(uint64(seed), 1)), 8)
		}
		var best []int
		most := -1
		eachOrder(len(a.counts), func(order []int) {
			if n := a.sum(order); n > most {
				best, most = slices.Clone(order), n
			}
		})
		require.Equal(t, best, a.arrange(), "seed %d: %+v", seed, a)
		require.Equal(t, a.keptShards(best), most, "seed %d: the sum is the number of shards that stay", seed)
	}
}

// TestArrangeAtMost8 compares arrange with all orders of 8 shares.
func TestArrangeAtMost8(t *testing.T) {
	for seed := range testsize.Of(10, 300) {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		a := drawArrangement(r, 8)
		for len(a.counts) != 8 {
			a = drawArrangement(r, 8)
		}
		most := 0
		eachOrder(8, func(order []int) { most = max(most, a.sum(order)) })
		require.Equal(t, most, a.keptShards(a.arrange()), "seed %d: %+v", seed, a)
	}
}

func TestArrange(t *testing.T) {
	none := wire.SlotRange{}
	for _, test := range []struct {
		what   string
		counts []int
		former []wire.SlotRange
		was    int
		order  []int
	}{
		{"nothing to keep", []int{2, 1, 3}, []wire.SlotRange{none, none, none}, 6, []int{0, 1, 2}},
		{"all stay", []int{2, 2}, []wire.SlotRange{{Lo: 2, Hi: 4}, {Lo: 0, Hi: 2}}, 4, []int{1, 0}},
		{"the first is replaced", []int{2, 2, 2}, []wire.SlotRange{{Lo: 2, Hi: 4}, {Lo: 4, Hi: 6}, none}, 6, []int{2, 0, 1}},
		{"the middle is replaced", []int{2, 2, 2}, []wire.SlotRange{none, {Lo: 4, Hi: 6}, {Lo: 0, Hi: 2}}, 6, []int{2, 0, 1}},
		{"one is replaced by two", []int{1, 2, 1}, []wire.SlotRange{none, {Lo: 2, Hi: 4}, none}, 4, []int{0, 2, 1}},
		{"half of the slots", []int{1, 1}, []wire.SlotRange{{Lo: 2, Hi: 4}, {Lo: 0, Hi: 2}}, 4, []int{1, 0}},
		{"the last of three is lost", []int{1, 1}, []wire.SlotRange{{Lo: 1, Hi: 2}, {Lo: 0, Hi: 1}}, 3, []int{1, 0}},
		{"one share", []int{3}, []wire.SlotRange{{Lo: 1, Hi: 2}}, 2, []int{0}},
	} {
		require.Equal(t, test.order, arrange(test.counts, test.former, test.was), test.what)
	}
}

// TestArrangeReplaced requires that all processes keep exactly their range if the lost workers are
// replaced by others with as many slots, for any number of workers.
func TestArrangeReplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := arrangement{}
		workers := rapid.IntRange(1, 40).Draw(t, "workers")
		same := rapid.IntRange(1, 4).Draw(t, "slots")
		lost := rapid.IntRange(0, workers-1).Draw(t, "lost")
		for i := range workers {
			n := same
			if i == lost { // as only one is lost, its size does not matter
				n = rapid.IntRange(1, 8).Draw(t, "its slots")
			}
			had := wire.SlotRange{Lo: a.was, Hi: a.was + n}
			if i == lost {
				had = wire.SlotRange{}
			}
			a.counts, a.former, a.was = append(a.counts, n), append(a.former, had), a.was+n
		}
		a.now = a.was
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 3)).Shuffle(workers, func(i, k int) {
			a.counts[i], a.counts[k] = a.counts[k], a.counts[i]
			a.former[i], a.former[k] = a.former[k], a.former[i]
		})
		lo := 0
		for _, i := range a.arrange() {
			if a.former[i].Hi > 0 {
				require.Equal(t, wire.SlotRange{Lo: lo, Hi: lo + a.counts[i]}, a.former[i])
			}
			lo += a.counts[i]
		}
	})
}

// TestArrangeMany requires that the order for many shares has every share once, and keeps nearly as much
// as the best order, over all cases.
func TestArrangeMany(t *testing.T) {
	got, best := 0.0, 0.0
	for seed := range testsize.Of(100, 3_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		a := drawArrangement(r, 12)
		order := a.improve(a.greedy())
		sorted := slices.Sorted(slices.Values(order))
		for i := range a.counts {
			require.Equal(t, i, sorted[i], "%v", order)
		}
		whole := float64(a.was * a.now)
		if whole > 0 {
			got += float64(a.sum(order)) / whole
			best += float64(a.sum(a.best())) / whole
		}
	}
	require.GreaterOrEqual(t, got, 0.9*best)
	require.Less(t, got, best, "it is only a good order, or this test compares the best with itself")
}

func ExampleRequest_kept() {
	offers := []Offer{
		{ID: "1", Name: "a", Slots: 4, Free: 4},
		{ID: "2", Name: "b", Slots: 4, Free: 4},
		{ID: "3", Name: "c", Slots: 8, Free: 8},
	}
	r := Request{Slots: 4, Was: 4, Kept: map[string]wire.SlotRange{"1": {Lo: 2, Hi: 4}}}
	for _, r.Policy = range []Policy{Pack, Spread} {
		shares, _ := Place(offers, r)
		fmt.Print(r.Policy, ":")
		for _, s := range shares {
			fmt.Printf(" %s %v", offers[s.Offer].Name, s.Slots)
		}
		fmt.Println()
	}
	// Output:
	// pack: a {0 4}
	// spread: b {0 1} c {1 2} a {2 4}
}
